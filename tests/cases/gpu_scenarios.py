#!/usr/bin/env python3
"""The report's figures of scenarios whose reason to fail is known equal the scenarios' own accounting and the driver's."""
# timeout: 600
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import gpu
import mt

GIB = 1 << 30
KEYS = ["requested_bytes", "free_bytes", "total_bytes", "allocated_bytes", "reserved_bytes", "largest_hole_bytes", "outcome"]


def device(done, number=0):
    for one in done.trace.report["devices"]:
        if one["name"] == "cuda:%d" % number:
            return one
    mt.fail("no cuda:%d in the report of %s" % (number, done))



def compare_ooms(done, keys=KEYS):
    """Each failure in the report is one of the program's, with its circumstances."""
    ooms, wanted = device(done)["ooms"], done.account["ooms"]
    mt.equal(len(ooms), len(wanted), "failures")
    for oom, facts in zip(ooms, wanted):
        for key in keys:
            mt.equal(oom[key], facts[key], key)
    return ooms


def compare_ledger(oom):
    """Its rows add up to the device, and say what the driver charged at that moment."""
    ledger = oom["ledger"]
    mt.equal(ledger["unexplained"], 0, "what is not explained in %s" % ledger)
    rows = sum(ledger[k] or 0 for k in ("pool_allocated", "pool_free", "other_own", "other_processes", "free", "unexplained"))
    mt.equal(rows, ledger["total"], "the ledger's sum")
    mt.equal(ledger["free"], oom["free_bytes"])
    mt.equal(ledger["pool_allocated"], oom["allocated_bytes"])
    mt.equal(ledger["pool_free"], oom["reserved_bytes"] - oom["allocated_bytes"])


def refusals(done):
    """What the driver refused last, before anything succeeded again: other refusals were retries that helped."""
    mine = [e for e in done.log if e["pid"] == device(done)["ooms"][0]["pid"]]
    given = max(i for i, e in enumerate(mine) if e["op"] == "alloc")
    return [e for e in mine[given:] if e["op"] == "fail"]


@mt.variants("capacity", "evaluation")
def case_fatal(name):
    done = gpu.scenario(name, paused=True)
    mt.equal(done.status, 1, "status of %r" % done)
    oom, = compare_ooms(done)
    compare_ledger(oom)
    mt.equal(len(oom["refusals"]), len(refusals(done)), "driver calls that failed for it")
    mt.equal([r["bytes"] for r in oom["refusals"]], [e["bytes"] for e in refusals(done)])
    mt.equal(device(done)["num_ooms"], 1)
    if name == "capacity":  # to its user it was so
        figures = [oom[k] / GIB for k in ("requested_bytes", "free_bytes", "allocated_bytes", "reserved_bytes", "total_bytes")]
        mt.equal(["%.2f" % f for f in figures], ["2.50", "1.89", "21.45", "21.50", "23.69"])


def case_fraction():
    """No driver call failed, and the request would have been a fraction of what is free."""
    done = gpu.scenario("fraction", paused=True)
    oom, = compare_ooms(done)
    mt.equal(oom["refusals"], [], "failed driver calls")
    mt.equal(refusals(done), [], "failed driver calls of the driver's own account")


def case_caught():
    """Two failures, both caught, and a run that ends well."""
    done = gpu.scenario("caught", paused=True)
    mt.equal(done.status, 0)
    compare_ooms(done)
    mt.equal(device(done)["num_ooms"], done.account["end"]["ooms"])
    mt.equal(device(done)["retries"], done.account["end"]["retries"])


def case_retry():
    """The driver refused once, the program never noticed."""
    done = gpu.scenario("retry", paused=True)
    mt.equal(done.status, 0)
    mt.equal(device(done)["ooms"], [])
    mt.equal((device(done)["num_ooms"], device(done)["retries"]), (0, 1))
    mt.equal(len([e for e in done.log if e["op"] == "fail"]), 1)


def case_handles():
    """Physical memory that is mapped nowhere is charged, and said to be unmapped."""
    done = gpu.scenario("handles", paused=True)
    oom, = compare_ooms(done, ["requested_bytes", "free_bytes", "total_bytes", "outcome"])
    mt.equal(oom["ledger"]["other_own"] - oom["ledger"].get("context", 0), done.account["created_bytes"])
    mt.equal(oom["ledger"]["unmapped"], done.account["unmapped_bytes"])
    verdict = done.trace.report["verdicts"][0]
    mt.equal((verdict["kind"], verdict["bytes"]), (done.account["verdict"], done.account["unmapped_bytes"]))


@mt.variants((), ("--traced",))
def case_neighbours(*arguments):
    done = gpu.scenario("neighbours", *arguments, paused=True)
    oom, = compare_ooms(done)
    compare_ledger(oom)
    held = sum(n["bytes"] for n in done.account["neighbours"])
    ours = sum(n["bytes"] for n in done.account["neighbours"][len(done.account["neighbours"]) - len(arguments):]) if arguments else 0
    mt.equal(oom["ledger"]["other_processes"], held - ours, "other, untraced processes")
    mt.equal("%.2f of %.2f" % (held / GIB, oom["total_bytes"] / GIB), "15.24 of 23.52")


mt.main()
