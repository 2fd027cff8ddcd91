#!/usr/bin/env python3
"""What only looks ill on a host, as real programs: no verdict, and what the kernel and the program say of it; and the twin that is ill."""
# timeout: 120
import functools
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import gpu
import mt

PROGRAM = os.path.join(mt.TOP, "tests/scenarios/looks.py")
MIB = 1 << 20


@functools.lru_cache(None)
def run(kind, *options):
    done = mt.shimmed([sys.executable, PROGRAM, kind, *options], env={"MEMTRACE_PAUSED": "1"})
    mt.equal(done.status, 0, "%r: status" % done)
    done.trace.settle()
    done.account = gpu.account(done.out)
    return done


def leaks(done):
    return [v for v in done.trace.report["verdicts"] if v["kind"] == "leak"]


@mt.variants("lru", "mapped", "touched", "spike")
def case_no_verdict(kind):
    report = run(kind).trace.report
    mt.equal((report["status"], report["verdicts"]), ("ok", []), "%s: status and verdicts" % kind)


@mt.variants("lru", "mapped", "spike")
def case_twin_leaks(kind):
    done = run(kind, "--sick")
    verdict, = leaks(done)
    mt.check("looks.py" in verdict["sites"][0] and "work" in verdict["sites"][0], "sites: %s" % verdict["sites"])
    if kind != "spike":  # from the first steps that are seen on
        mt.between(0.95 * done.account["kept_bytes"], verdict["bytes"], done.account["kept_bytes"] + MIB, "bytes")


def case_why_it_only_looks_so():
    """A cache that fills levels off; what a worker touched, it copied, and allocated nothing."""
    said = {kind: " ".join(r["evidence"] for r in run(kind).trace.report["ruled_out"] if r["kind"] == "leak") for kind in ("lru", "touched")}
    mt.check("no site of the heap grows" in said["lru"] or "levels off" in said["lru"], said["lru"])
    copied = run("touched").account["copied_bytes"]
    mt.check(copied > 64 * MIB and "they allocated nothing" in said["touched"], "%d bytes copied: %s" % (copied, said["touched"]))


mt.main(at_once=4)
