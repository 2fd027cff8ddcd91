#!/usr/bin/env python3
"""Everyday programs and their twins that leak: who is named, how much it is, and that nothing is said of those that are well."""
# timeout: 120
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import gpu
import mt

PROGRAM = os.path.join(mt.TOP, "tests/scenarios/habits.py")
MIB = 1 << 20


@mt.once
def run(kind, *options):
    if kind == "shapes" and not mt.has_module("torch"):
        mt.skip("torch is not installed (scripts/setup check)")
    done = mt.shimmed([mt.python(), PROGRAM, kind, *options], env={"MEMTRACE_PAUSED": "1"})
    mt.equal(done.status, 0, "%r: status" % done)
    done.trace.settle()
    done.account = gpu.account(done.out)
    return done


def verdict(kind):
    report = run(kind, "--sick").trace.report
    mt.equal([v["kind"] for v in report["verdicts"]], ["leak"], "%s: verdicts" % kind)
    return report["verdicts"][0]


def no_leak(kind, *options):
    said, = [r["evidence"] for r in run(kind, *options).trace.report["ruled_out"] if r["kind"] == "leak" and r["device"] == "host"]
    return said


@mt.variants("epochs", "walk", "load", "tokens", "tasks", "shapes")
def case_no_verdict(kind):
    report = run(kind).trace.report
    mt.equal((report["status"], report["verdicts"]), ("ok", []), "%s: status and verdicts" % kind)


@mt.variants("epochs", "walk", "load")
def case_all_that_is_kept(kind):
    """Up to a quarter of the steps may be taken for the program's start."""
    one, kept = verdict(kind), run(kind, "--sick").account["kept_bytes"]
    mt.check("habits.py" in one["sites"][0], "sites: %s" % one["sites"])
    mt.between(0.7 * kept, one["bytes"], 1.03 * kept, "bytes")


def case_small_objects():
    """What the interpreter's arenas are for is the line's that fills them."""
    one, report = verdict("tokens"), run("tokens", "--sick").trace.report
    mt.equal(report["steps"]["count"], 500, "steps")
    mt.check("habits.py" in one["sites"][0] and "tokens" in one["sites"][0], "sites: %s" % one["sites"])
    mapped = max(p["map"]["peak_bytes"] for p in report["processes"])
    mt.check(one["bytes"] > 0.7 * mapped and "more of the interpreter's arenas stays" in one["evidence"], "%d bytes of %d: %s" % (one["bytes"], mapped, one["evidence"]))
    for told in (one["advice"], " ".join(run("tokens", "--sick").trace.tool("leaks").out.split())):
        mt.check("MEMTRACE_PYTHON_ALLOCATORS=1 shows whose" in told, "any line's objects lie in an arena: %s" % told)
    mt.check("bigger blocks" not in run("tokens", "--sick").trace.tool("report").out, "arenas are of one size")


def case_what_only_keeps_is_said():
    """It isn't told from loading, but neither is it nothing."""
    said = no_leak("tasks", "--sick")
    mt.check("habits.py" in said and "loading, or a leak" in said, said)
    mt.equal([r["kind"] for r in run("tasks", "--sick").trace.report["ruled_out"] if r["open"]], ["leak"], "neither proven nor ruled out")


def case_kernels_of_each_shape():
    done = run("shapes")
    if "dnnl::" not in done.trace.tool("export", "--format", "folded", "--device", "host").out:
        mt.skip("PyTorch has no oneDNN kernel for a linear layer on this CPU")
    leaks = done.trace.tool("leaks").out
    mt.check("oneDNN's cache of kernels" in leaks, leaks)


mt.main(at_once=4)
