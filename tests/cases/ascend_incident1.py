#!/usr/bin/env python3
"""Incident 1 (copies at the peak) and its fix on the Ascend stand-in: the trace has what the program says of itself, to the byte."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import ascend
import mt

MODEL = 29536614400  # Qwen3-14B in 16 bits
REQUEST = 3111649280


def live(events):
    """Highest sum of device memory, and what is alive in the end."""
    sizes, now, peak = {}, 0, 0
    for what, _, kind, _, addr, size, _, _ in events:
        if what == "alloc" and kind == "device":
            sizes[addr] = size
            now += size
            peak = max(peak, now)
        elif what == "free":
            now -= sizes.pop(addr)
    return peak, now


def case_it_fails_as_it_did():
    run, account = ascend.scenario("incident1/main.py")
    mt.check(run.done.status == 1 and "OutOfMemory" in run.done.err, "it did not run out of memory: %s" % run.done)
    run.trace.intact()
    ascend.compare(run)
    mt.equal([p["host_bytes"] + p["device_bytes"] for p in account["phases"]], [MODEL * n for n in (1, 2, 3, 4)], "t1 to t4")
    events = next(iter(run.events().values()))
    failures = [i for i, e in enumerate(events) if e[0] == "fail"]
    mt.equal([events[i][4] for i in failures], [REQUEST], "failed requests")
    before = events[failures[0] - 1]
    mt.equal((before[0], before[4], before[5]), ("info", account["failure"]["free"], account["failure"]["total"]), "free and total")
    mt.equal(live(events)[0], account["device_peak"], "peak of the device")
    host = run.trace.host["peak_bytes"]
    mt.between(2 * MODEL, host, 2 * MODEL + (16 << 20), "peak of the heap: two dictionaries and the interpreter")


def case_the_fix_works():
    run, account = ascend.scenario("incident1/fixed.py")
    mt.equal((run.done.status, account["failure"]), (0, None), "status, failure")
    run.trace.intact()
    ascend.compare(run)
    mt.equal([p["device_bytes"] for p in account["phases"]][:4], [0, MODEL, MODEL, MODEL], "device memory in t1 to t4")
    events = next(iter(run.events().values()))
    mt.equal(live(events)[0], account["device_peak"], "peak of the device")
    mt.between(MODEL, run.trace.host["peak_bytes"], MODEL + (16 << 20), "peak of the heap: one dictionary at a time")


def case_smaller_by_a_factor():
    run, account = ascend.scenario("incident1/main.py", SCENARIO_SCALE="16")
    mt.equal((run.done.status, account["failure"]), (0, None), "16 times smaller it fits")
    mt.equal(account["phases"][0]["host_bytes"] // 1000000, MODEL // 16 // 1000000, "megabytes of the dictionary")
    ascend.compare(run)


mt.main()
