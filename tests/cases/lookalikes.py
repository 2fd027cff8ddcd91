#!/usr/bin/env python3
"""What only looks ill on a host, as real programs: no verdict, and what the kernel and the program say of it; and the twin that is ill."""
# timeout: 120
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import gpu
import mt
from cgroup import Cgroup

PROGRAM = os.path.join(mt.TOP, "tests/scenarios/looks.py")
MIB = 1 << 20


@mt.once
def run(kind, *options):
    return finished(mt.shimmed([sys.executable, PROGRAM, kind, *options], env={"MEMTRACE_PAUSED": "1"}))


def finished(done):
    mt.equal(done.status, 0, "%r: status" % done)
    done.trace.settle()
    done.account = gpu.account(done.out)
    return done


def leaks(done):
    return [v for v in done.trace.report["verdicts"] if v["kind"] == "leak"]


@mt.variants("lru", "mapped", "touched", "spike", "copying")
def case_no_verdict(kind):
    report = run(kind).trace.report
    mt.equal((report["status"], report["verdicts"]), ("ok", []), "%s: status and verdicts" % kind)


@mt.variants("lru", "mapped", "spike", "copying")
def case_twin_leaks(kind):
    done = run(kind, "--sick")
    verdict, = leaks(done)
    mt.check("looks.py" in verdict["sites"][0] and "work" in verdict["sites"][0], "sites: %s" % verdict["sites"])
    if kind != "spike":  # from the first steps that are seen on
        mt.between(0.95 * done.account["kept_bytes"], verdict["bytes"], 1.01 * done.account["kept_bytes"] + MIB, "bytes")  # mappings are whole pages


@mt.variants((), ("--sick",))
def case_freed_as_it_ends(*options):
    """Where 120 MiB are much; what the twin frees long before its end its allocator keeps."""
    with Cgroup(500 * MIB) as group:
        done = finished(mt.shimmed(group.command([sys.executable, PROGRAM, "ending", *options]), env={"MEMTRACE_PAUSED": "1"}))
    found = [(v["kind"], v["certainty"]) for v in done.trace.report["verdicts"]]
    mt.equal(found, [("retained", "high")] if options else [], "verdicts")
    for verdict in done.trace.report["verdicts"]:
        mt.between(0.9 * done.account["freed_bytes"], verdict["bytes"], 1.1 * done.account["freed_bytes"], "what is kept")


def case_why_it_only_looks_so():
    """A cache that fills levels off; what a worker touched, it copied, and allocated nothing."""
    said = {kind: " ".join(r["evidence"] for r in run(kind).trace.report["ruled_out"] if r["kind"] == "leak") for kind in ("lru", "touched", "copying")}
    mt.check("nothing that one line makes goes on growing" in said["lru"] or "and not since" in said["lru"], said["lru"])
    mt.check("is one of the copies" in said["copying"], said["copying"])
    copied = run("touched").account["copied_bytes"]
    mt.check(copied > 64 * MIB and "they allocated nothing" in said["touched"], "%d bytes copied: %s" % (copied, said["touched"]))
    mt.between(0.9 * copied, run("touched").trace.report["system"]["ledger"]["copied"], 1.1 * copied, "what the worker copied, in the ledger")


mt.main(at_once=4)
