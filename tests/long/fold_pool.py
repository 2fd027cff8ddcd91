#!/usr/bin/env python3
"""A training for long: a hundred million events of a device's pool, many times the limit; the same figures, leak and forecast as of the whole."""
# timeout: 3000
import json
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import ascend
import mt

MIB = 1 << 20
STEPS = int(os.environ.get("STEPS", 700000))  # of 150 events and more
LIMIT = int(os.environ.get("LIMIT", 64)) * MIB  # from 4 on: less has no room for two chunks, and events are lost however long the program waits
HOOK = os.path.join(mt.BUILD, "libmemtrace_libascend_kernel_hook.so")


def train(steps, limit):
    env = ascend.settings(devices="64G", MEMTRACE_LIMIT=str(limit), MEMTRACE_ASCEND_POOL="1")
    chunks = limit // MIB if limit else 40
    done = mt.shimmed([os.path.join(ascend.folder(), "week"), str(steps), "65536", str(chunks)], env=env, shim=HOOK, timeout=2500)
    mt.equal((done.status, done.err), (0, ""), "how it ended")
    done.trace.settle()
    return done.trace, json.loads(done.out)


def growth(trace):
    steps = trace.json("report")["steps"]
    name = [n for n in steps["growth"] if n.endswith(" pool")]
    return steps, steps["growth"][name[0]]


def case_a_week():
    trace, account = train(STEPS, LIMIT)
    report = trace.report
    pool = report["devices"][0]["pool"]
    mt.check(report["complete"], "events are missing: %s" % report["losses"] if "losses" in report else "events are missing")
    mt.check(report["folded"]["blocks"] > account["blocks"] // 10 * 6, "too little was folded: %s of %s" % (report["folded"], account))
    mt.equal({k: pool[k] for k in ("allocations", "frees", "allocated_bytes", "live_bytes", "peak_allocated_bytes")},
             {"allocations": account["blocks"], "frees": account["frees"], "allocated_bytes": account["bytes"], "live_bytes": account["live"],
              "peak_allocated_bytes": account["peak"]}, "the pool")
    steps, seen = growth(trace)
    mt.between(STEPS * 0.99, steps["count"], STEPS * 1.01, "steps")
    mt.equal((seen["kind"], seen["certainty"]), ("linear", "high"))
    mt.between(0.98 * 65536 / 64, seen["bytes_per_step"], 1.02 * 65536 / 64, "bytes a step")


if __name__ == "__main__":
    mt.main()
