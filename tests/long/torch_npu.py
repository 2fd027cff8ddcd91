#!/usr/bin/env python3
"""The real torch_npu on the Ascend stand-in: what is traced of its pool is what it says of itself."""
# timeout: 1200
# serial: real PyTorch
import functools
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import ascend
import mt

WHEEL = os.path.join(mt.TOP, "build/venv-npu")  # where scripts/setup puts it
CANN = os.path.join(mt.BUILD, "standin/ascend/torch_npu")


@functools.lru_cache(None)
def environment():
    if not os.path.isdir(os.path.join(WHEEL, "torch_npu")):
        mt.skip("torch_npu is not installed (scripts/setup long)")
    if not mt.has_module("torch"):
        mt.skip("no torch")
    torch = subprocess.run([mt.python(), "-c", "import torch; print(torch.__path__[0])"], stdout=subprocess.PIPE, text=True, check=True)
    subprocess.run([os.path.join(mt.TOP, "tests/standin/ascend/mkstubs.py"), os.path.join(WHEEL, "torch_npu"), torch.stdout.strip(), CANN],
                   stdout=subprocess.DEVNULL, check=True)
    return {"PYTHONPATH": WHEEL, "LD_LIBRARY_PATH": CANN + "/cann/lib64", "ASCEND_HOME_PATH": CANN + "/cann", "ASCEND_OPP_PATH": CANN + "/cann/opp",
            "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "OMP_NUM_THREADS": "1"}


@functools.lru_cache(None)
def run(seed, **more):
    found = ascend.Run([mt.python(), os.path.join(mt.TOP, "tests/programs/npu_pool.py"), str(seed)], plain=False, devices="2G,2G",
                       MEMTRACE_STANDIN_GRANULARITY=None, MEMTRACE_STANDIN_CONTEXT=None, **environment(), **more)
    mt.equal(found.done.status, 0, "status (%s)" % found.done)
    lines = [line for line in found.done.out.splitlines() if line.startswith("ACCOUNT ")]
    mt.check(lines, "no account: %s" % found.done)
    found.trace.intact()
    return found, json.loads(lines[0][8:])


def pool_events(found):
    """Of each device: what the pool was asked for and what is left, from the trace."""
    books = {}
    for what, _, kind, place, addr, size, _, _ in max(found.events().values(), key=len):
        if kind != "pool":
            continue
        if what == "alloc":
            book = books.setdefault(place, {"allocated": 0, "bytes": 0, "live": {}})
            book["allocated"] += 1
            book["bytes"] += size
            book["live"][addr] = size
        else:
            for book in books.values():
                book["live"].pop(addr, None)
    return books


@mt.variants((1, "False"), (2, "False"), (3, "True"))
def case_pool(seed, expandable):
    found, account = run(seed, MEMTRACE_ASCEND_POOL="1", PYTORCH_NPU_ALLOC_CONF="expandable_segments:" + expandable)
    ascend.compare(found)
    books = pool_events(found)
    mt.equal(account["failed"], 1, "failures the program caught")
    for number, device in enumerate(account["devices"]):
        stats, book = device["stats"], books["NPU-%d" % number]
        mt.equal(book["allocated"], stats["allocation.all.allocated"], "blocks that NPU-%d's pool handed out" % number)
        mt.equal(book["bytes"], stats["allocated_bytes.all.allocated"], "their bytes")
        mt.equal(sorted(map(list, book["live"].items())), device["blocks"], "blocks alive")
        row = [d for d in found.trace.report["devices"] if d["uuid"] == "NPU-%d" % number][0]
        mt.equal((row["pool"]["peak_allocated_bytes"], row["pool"]["reserved_bytes"]),
                 (stats["allocated_bytes.all.peak"], stats["reserved_bytes.all.current"]), "the report's pool of NPU-%d" % number)
        mt.equal(row["num_ooms"], stats["num_ooms"], "out of memory, as torch_npu counts")


def case_without_pools():
    found, account = run(4)
    ascend.compare(found)
    mt.equal(pool_events(found), {}, "blocks of pools that nobody asked for")
    stats = [d["stats"] for d in account["devices"]]
    for number in (0, 1):
        row = [d for d in found.trace.report["devices"] if d["uuid"] == "NPU-%d" % number][0]
        mt.equal((row["allocations"], row["peak_bytes"]), (stats[number]["segment.all.allocated"], stats[number]["reserved_bytes.all.peak"]),
                 "segments of NPU-%d" % number)


def whatif(found, *words):
    """Pools of a run, by device."""
    return {pool["device"]: pool for pool in found.trace.json("whatif", *words)["pools"]}


def said(outcome):
    return outcome["most_reserved_bytes"], outcome["most_used_bytes"], outcome["retries"]


SETTINGS = ("expandable_segments:False", "expandable_segments:True", "max_split_size_mb:24", "large_segment_size_mb:40")


@mt.variants(*SETTINGS)
def case_replayed(setting):
    """Each block lies where it lay, what failed fails, and torch_npu's own counters say what is said of it, and of the run under any other
    setting, which each was made under."""
    found, _ = run(1, MEMTRACE_ASCEND_POOL="1", PYTORCH_NPU_ALLOC_CONF=setting)
    pools = whatif(found)
    mt.equal(sorted(pools), ["npu:0", "npu:1"], "pools")
    mt.equal([pools["npu:%d" % n]["requests_refused"] for n in (0, 1)], [1, 0], "failures")
    for device, pool in pools.items():
        mt.equal((pool["differs"], pool["not_modelled"], pool["unknown_sizes"], pool["framework_version"]), (None, None, 0, "2.13.0"), device)
    # a run in expandable segments does not tell whether the driver's addresses rise or fall, on which the others depend
    for other in SETTINGS if setting != "expandable_segments:True" else (setting,):
        _, account = run(1, MEMTRACE_ASCEND_POOL="1", PYTORCH_NPU_ALLOC_CONF=other)
        outcomes = whatif(found, "--alloc-conf", other)
        for number, device in enumerate(account["devices"]):
            real, outcome = device["stats"], outcomes["npu:%d" % number]["settings"][0]
            mt.equal(said(outcome), (real["reserved_bytes.all.peak"], real["allocated_bytes.all.peak"], real["num_alloc_retries"]),
                     "npu:%d under %s, from a run under %s" % (number, other, setting))


mt.main()
