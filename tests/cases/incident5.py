#!/usr/bin/env python3
"""Incident 5: a model on eight GPUs, each with its own figures on the screen; diff proves the fix."""
import functools
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import gpu
import mt
import screen
from failures import device

@functools.lru_cache(None)
def incident5(layers):
    done = gpu.scenario("incident5", layers, paused=True, timeout=120)
    done.trace.settle()
    return done


def case_eight_devices():
    done = incident5(30)
    mt.equal(len(done.trace.report["devices"]), 8)
    for number, facts in enumerate(done.account["pools"]):
        one = device(done, number)
        mt.equal(one["uuid"], "GPU-" + done.account["uuids"][number])
        mt.equal(one["pool"]["peak_allocated_bytes"], facts["peak_allocated_bytes"])
        mt.equal(one["pool"]["peak_reserved_bytes"], facts["peak_reserved_bytes"])


@mt.variants(30, 1)
def case_the_screen_of_eight_gpus(layers):
    """Both fit: nothing is a problem, and each GPU's figures are PyTorch's and the driver's."""
    done = incident5(layers)
    mt.equal((done.status, done.trace.report["status"], done.trace.report["verdicts"]), (0, "ok", []), "status, verdicts")
    seen, pools = screen.Screen(done.trace.tool("report").out), done.account["pools"]
    steps = done.trace.report["steps"] or {"growth": {}}  # what it does when all is loaded may be in a loop
    growing = [name for name, growth in steps["growth"].items() if name.startswith("cuda") and growth["kind"] != "none"]
    mt.equal((growing, seen.has("GROWTH  cuda")), ([], False), "what only loads grows in steps")
    mt.equal((seen.why()[0], seen.has("OUT OF MEMORY"), seen.has("DO$")), ([], False, False), "causes, a failure, advice")
    rows = seen.devices()
    mt.equal(sorted(rows), ["cuda:%d" % n for n in range(len(pools))], "devices")
    for number, said in enumerate(pools):
        row = rows["cuda:%d" % number]
        calls = [e for e in done.log if e["op"] == "alloc" and e["device"] == number and e["kind"] == "linear"]
        mt.equal((row["calls"].value, row["blocks"].value), (len(calls), said["allocations"]), "cuda:%d: calls, blocks" % number)
        for name, exact in [("total", said["total_bytes"]), ("peak", said["peak_reserved_bytes"]), ("pool", said["peak_allocated_bytes"]),
                            ("reserved", said["peak_reserved_bytes"])]:
            row[name].shows(exact, "cuda:%d: %s" % (number, name))
    said = pools[0]
    pid = next(p for p, *_ in seen.ledger() if p)
    context = said["total_bytes"] - said["free_bytes"] - said["reserved_bytes"]
    want = {(pid, "blocks in use"): said["peak_allocated_bytes"], (None, "total"): said["total_bytes"], (None, "free"): said["free_bytes"],
            (pid, "unused in pool"): said["peak_reserved_bytes"] - said["peak_allocated_bytes"], (pid, "outside pool"): context,
            (None, "unexplained"): 0}
    for owner, name, figure, _ in seen.ledger():
        figure.shows(want[owner, name], name)
    if any(name == "free" for _, name, *_ in seen.ledger()):  # a run of a second may end before its device is sampled
        seen.compare_ledger(want)
    if seen.has("OVER TIME"):  # a full screen leaves it out
        seen.peaks()[pid][1].shows(said["peak_reserved_bytes"], "most")
    _, of = seen.categories()
    of["parameters"].shows(done.account["pools"][0]["allocated_bytes"], "parameters")
    if "unknown" in of:  # what is less than a thousandth is left out
        of["unknown"].shows(said["peak_allocated_bytes"] - said["allocated_bytes"], "what infers")


def case_diff_proves_eight_gpus():
    before, after = incident5(30), incident5(1)
    done = mt.execute([mt.MEMTRACE, "diff", "--json", before.trace.path, after.trace.path])
    mt.equal(done.status, 0, "status")
    rows = {(r["name"], r["figure"]): r for r in json.loads(done.out)["devices"]}
    for side, run in (("before_bytes", before), ("after_bytes", after)):
        for number, facts in enumerate(run.account["pools"]):
            mt.equal(rows["cuda:%d" % number, "pool peak"][side], facts["peak_allocated_bytes"], "cuda:%d %s" % (number, side))
        mt.equal(rows["all devices", "pool peak"][side], sum(f["peak_allocated_bytes"] for f in run.account["pools"]), side)


mt.main()
