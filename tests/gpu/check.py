#!/usr/bin/env python3
"""The device tests on a real NVIDIA GPU: PyTorch's own accounting, a real failure, another process, what-if, JAX, and what tracing costs.

usage: check.py [--python PYTHON] [--standin] [CASE...]

PYTHON (python3) has PyTorch with CUDA. --standin tries the tests themselves on the stand-in devices: costs are then the stand-in's.
"""
# timeout: 1200
import argparse
import functools
import json
import os
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests/lib"))

PROBE = "import torch; n = torch.cuda.device_count(); print(torch.__version__, n, torch.cuda.get_device_name(0) if n else '-', sep='|')"
MIB = 1 << 20
# Nanoseconds that tracing with full stacks may add to one report of the caching allocator; a pair is two, an allocation and a free.
GOAL = 1000


def refuse(why):
    print("check-gpu: " + why)
    sys.exit(1)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default="python3")
    parser.add_argument("--standin", action="store_true")
    parser.add_argument("cases", nargs="*")
    chosen = parser.parse_args()
    sys.argv[1:] = chosen.cases
    return chosen


def choose(chosen):
    """The real GPU's Python goes to tests/lib/gpu.py, or nothing for the stand-in."""
    if chosen.standin:
        return print("# on the stand-in: what it says of costs is of no GPU")
    if not os.path.exists("/dev/nvidiactl"):
        refuse("there is no NVIDIA GPU on this machine (no /dev/nvidiactl); --standin tries the test without")
    probe = subprocess.run([chosen.python, "-c", PROBE], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if probe.returncode or probe.stdout.split("|")[1] == "0":
        refuse("%s has no PyTorch that sees a GPU: %s" % (chosen.python, (probe.stderr.strip().splitlines() or [probe.stdout])[-1]))
    path = subprocess.run([chosen.python, "-c", "import sys; print(sys.executable)"], stdout=subprocess.PIPE, text=True).stdout.strip()
    os.environ["MEMTRACE_TEST_GPU"] = path
    return print("# PyTorch %s, %s GPUs, %s" % tuple(probe.stdout.strip().split("|")))


if __name__ == "__main__":
    choose(arguments())
import gpu  # noqa: E402
import mt  # noqa: E402
import replays  # noqa: E402
import torchbooks  # noqa: E402



def here(name):
    return os.path.join(TOP, "tests/gpu", name)


def device(done):
    return next(d for d in done.trace.report["devices"] if d["name"] == "cuda:0")


@mt.variants(("segments", 1, False), ("expandable", 1, True))
def case_equals_pytorch(name, processes, expandable):
    torchbooks.check(name, processes, expandable, room=700 * MIB if gpu.REAL else 0)


def case_two_processes():
    """One fills the device as far as the other lets it; both equal their own accounting."""
    torchbooks.check("two processes", 2, False, room=0 if not gpu.REAL else 1400 * MIB)


@mt.variants("caught", "fatal")
def case_out_of_memory(outcome):
    done = gpu.run([gpu.python(), here("oom.py"), outcome], devices="2G", timeout=240)
    mt.equal(done.status, 0 if outcome == "caught" else 1, "status of %r" % done)
    (oom,), (facts,) = device(done)["ooms"], done.account["ooms"]
    for key in ("requested_bytes", "total_bytes", "allocated_bytes", "reserved_bytes", "largest_hole_bytes", "outcome"):
        mt.equal(oom[key], facts[key], key)
    # Of a real device others may take or return something between our look and the program's.
    mt.between(facts["free_bytes"] - (64 * MIB if gpu.REAL else 0), oom["free_bytes"], facts["free_bytes"] + (64 * MIB if gpu.REAL else 0), "free")
    ledger = oom["ledger"]
    rows = sum(ledger[k] or 0 for k in ("pool_allocated", "pool_free", "other_own", "other_processes", "free", "unexplained"))
    mt.equal(rows, ledger["total"], "the ledger's sum")
    print("# %s ledger: %s" % (outcome, json.dumps(ledger)))


def case_another_process():
    """What another, untraced process holds is in the ledger. (Pids may be another namespace's, so bytes are what counts.)"""
    holder = "import torch, sys; t = torch.empty(%d, dtype=torch.uint8, device='cuda'); print('held', flush=True); sys.stdin.read()" % (512 * MIB)
    folder = mt.scratch("standin")
    env = mt.clean_env(**gpu.environment(folder, devices="2G"))
    with subprocess.Popen([gpu.python(), "-c", holder], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        mt.equal(other.stdout.readline().strip(), "held")
        done = gpu.run([gpu.python(), here("oom.py"), "caught"], folder=folder, devices="2G", timeout=240)
        other.stdin.close()
    oom, = device(done)["ooms"]
    held = oom["ledger"]["other_processes"]
    mt.check(held is not None, "other processes were not sampled: %s" % oom["ledger"])
    mt.check(held >= 512 * MIB, "another process has 512 MiB and a context, the ledger says %d" % held)


@functools.lru_cache(None)
def cap(mib):
    """The setting that gives a program so many MiB of a large card; the stand-in's card is as small."""
    if not gpu.REAL:
        return None
    total = int(mt.plain([gpu.python(), "-c", "import torch; print(torch.cuda.mem_get_info()[1])"]).out)
    return "per_process_memory_fraction:%.6f" % (mib * MIB / total)


def capped(setting, mib):
    return ",".join(filter(None, (setting, cap(mib)))) or None


@mt.variants((None, 4, ()), (replays.EXPANDABLE, 5, ()), (None, 6, ("--plain",)), (replays.EXPANDABLE, 7, ("--plain",)))
def case_replay(setting, seed, words):
    """Each request gets the block that it got, and PyTorch has counted what the replay counts."""
    setting = capped(setting, replays.SHORT - replays.CONTEXT)
    replays.check_itself(setting, replays.SHORT, seed=seed, words=words)
    mt.check(replays.run(setting, replays.SHORT, True, seed=seed, words=words).said["retries"] > 0, "no retry")


@mt.variants((None, replays.EXPANDABLE), (replays.EXPANDABLE, replays.ROUNDED))
def case_replay_of_another_setting(setting, changed):
    replays.check_other(setting, changed, mib=70000 if gpu.REAL else replays.ROOM)


@mt.variants(2, 31, 38, 44, 47)
def case_replay_of_mixed(seed):
    """Several threads, streams, pinned memory, graphs, expandable segments by turns, failures."""
    replays.check_mixed(capped(None, 400 - replays.CONTEXT), 400, seed)


def case_jax():
    """Buffers of XLA's plugin for CUDA: bytes at 20 moments, and each array its line's."""
    done = gpu.run([gpu.python(), here("arrays.py")], env={"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.05", "MEMTRACE_PAUSED": "1"}, timeout=240)
    if "no JAX" in done.out:
        mt.skip("no JAX for CUDA")
    mt.equal(done.status, 0, done.err[-2000:])
    told = json.loads(done.out.splitlines()[-1])
    seen = torchbooks.replay(done.trace)
    (moments, books), = seen.values()
    got = [sum(b[1] for one in m.values() for b in one["blocks"]) for m in moments]
    mt.equal(got, told["moments"], "bytes at each moment")
    lines = [(s["bytes"], s["blocks"]) for s in done.trace.json("leaks", "--device", "cuda:0")["sites"] if any(f["function"] == "keep" for f in s["stack"])]
    mt.equal([sum(x) for x in zip(*lines)], [told["kept"], told["kept_blocks"]], "what keep() holds at the end")


def cost(env=None, traced=True, *options):
    done = gpu.run([gpu.python(), here("cost.py"), *options], traced=traced, env=env, timeout=240)
    mt.equal(done.status, 0, "status of %r" % done)
    return json.loads(done.out.splitlines()[-1])


def case_costs():
    """Nanoseconds added to a run without anything, by the shim and by PyTorch's memory history."""
    plain = cost(traced=False)
    runs = {"full stacks": cost(), "MEMTRACE_STACKS=none": cost({"MEMTRACE_STACKS": "none"}), "PyTorch's history": cost(None, False, "--history")}
    print("# %-22s %s" % ("ns a pair, without", "  ".join("%s %.0f" % item for item in plain.items())))
    for name, run in runs.items():
        print("# %-22s %s" % (name + " adds", "  ".join("%s %.0f" % (k, run[k] - plain[k]) for k in plain)))
    for key in ("block", "block_20_deep"):
        added = (runs["full stacks"][key] - plain[key]) / 2
        mt.check(added <= GOAL, "%s: %.0f ns added to a report, the goal is %d" % (key, added, GOAL))


if __name__ == "__main__":
    mt.main()
