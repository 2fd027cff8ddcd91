#!/usr/bin/env python3
"""Each way to run out of a device's memory: ledger, failures, segments and cause equal what PyTorch and the stand-in driver say of themselves."""
# timeout: 400
import functools
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import gpu
import mt
from failures import adds_up, certain, compare_ledger, compare_ooms, compare_refusals, device, held, is_explained, near, one_cause, ruled_out

GIB = 1 << 30


def bytes_of(text):
    """0.43G as the stand-in reads it."""
    unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1])
    return int(float(text[:-1]) * unit) if unit else int(text)


def context_of(name):
    return bytes_of(gpu.settings_of(os.path.join(gpu.SCENARIOS, name + ".py")).get("context", "64M"))


@functools.lru_cache(None)
def run(name, *arguments):
    """One run of a scenario for all that is asked of it."""
    return gpu.scenario(name, *arguments, paused=True)


def charged(log, pid=None):
    """What the driver had charged that process with when memory ran out (its granularity is larger than its callers' bytes);
    without pid the one whose request failed or, where the driver was not asked, who did the most."""
    failures = [e for e in log if e["op"] == "fail"] or [e for e in log if e["op"] != "exit"]
    until, pid = failures[-1]["ns"], pid or failures[-1]["pid"]
    return [e for e in log if e["pid"] == pid and e["ns"] <= until and e["op"] != "exit"][-1]["charged"]


# ---- failures and ledgers ----------------------------------------------------------------------------------------


@mt.variants("capacity", "fragmentation", "fraction", "expandable")
def case_ledger(name):
    done = run(name)
    said, ledger = done.account["ooms"][-1], device(done)["ledger"]
    is_explained(ledger)
    mt.equal(ledger["pool_allocated"], said["allocated_bytes"], "pool_allocated")
    mt.equal(ledger["pool_free"], said["reserved_bytes"] - said["allocated_bytes"], "pool_free")
    mt.equal(ledger["free"], said["free_bytes"], "free")
    mt.equal(ledger["total"], said["total_bytes"], "total")
    mt.equal(ledger["other_own"], context_of(name), "other_own is the context")
    if name != "expandable":  # there the driver refuses while it holds the pages that are given back then
        mt.equal(ledger["total"] - ledger["free"], charged(done.log), "all that is not free is this process's")
    mt.equal(ledger["other_processes"], 0, "other_processes")


@mt.variants("capacity", "fragmentation", "fraction", "caught", "retry", "expandable")
def case_failures(name):
    done = run(name)
    mt.equal(len(done.trace.report["devices"]), 1, "devices")
    mt.equal(done.status, 0 if name in ("caught", "retry") else 1, "status of %r" % done)
    end = done.account.get("end") or done.account["ooms"][-1]
    mt.equal((device(done)["num_ooms"], device(done)["retries"]), (end["ooms"], end["retries"]), "num_ooms and num_alloc_retries")
    ooms = compare_ooms(done)
    for oom in ooms:
        mt.check(len(oom["refusals"]) <= 3, "%d refusals" % len(oom["refusals"]))
        mt.check(any(f["function"] == "bytes_of" or "account.py" in (f["file"] or "") for f in oom["stack"]), "the stack lacks Python")
    mt.check((name == "fraction") == any(o["limit_bytes"] for o in ooms), "limit_bytes")


@mt.variants("capacity", "fraction")
def case_fatal(name):
    """Fraction: no driver call failed, and the request would have been a fraction of what is free."""
    done = run(name)
    oom, = device(done)["ooms"]
    compare_refusals(done, oom)
    mt.equal(not oom["refusals"], name == "fraction", "the driver was not asked")
    compare_ledger(oom)
    if name == "capacity":  # to its user it was so
        figures = [oom[k] / GIB for k in ("requested_bytes", "free_bytes", "allocated_bytes", "reserved_bytes", "total_bytes")]
        mt.equal(["%.2f" % f for f in figures], ["2.50", "1.89", "21.45", "21.50", "23.69"])


def case_retry():
    """The driver refused once, the program never noticed."""
    done = run("retry")
    mt.equal((device(done)["ooms"], device(done)["num_ooms"], device(done)["retries"]), ([], 0, 1))
    mt.equal(len([e for e in done.log if e["op"] == "fail"]), 1)
    mt.equal((certain(done), done.trace.report["status"]), ([], "ok"))


def case_handles_that_are_mapped_nowhere():
    """Physical memory is charged, and said to be unmapped."""
    done = run("handles")
    oom, = compare_ooms(done, ["requested_bytes", "free_bytes", "total_bytes", "outcome"])
    said = done.account
    for ledger in (device(done)["ledger"], oom["ledger"]):
        adds_up(ledger)
        parts = {p["name"]: p["bytes"] for p in ledger["other_own_parts"]}
        mt.equal((ledger["unmapped"], parts["program"]), (said["unmapped_bytes"], said["created_bytes"]), "unmapped of the program's own")
        mt.equal(ledger["pool_allocated"] + ledger["pool_free"], 0, "pool")
        # the context, where the driver was asked before the program had ended
        mt.check(ledger["other_own"] - said["created_bytes"] in (0, context_of("handles")), "other_own of %s" % ledger)
    verdict = done.trace.report["verdicts"][0]
    mt.equal((verdict["kind"], verdict["bytes"]), (said["verdict"], said["unmapped_bytes"]))


# ---- neighbours --------------------------------------------------------------------------------------------------


def untraced(done):
    return {p["pid"]: p["bytes"] for p in device(done)["processes"] if not p["traced"]}


def case_neighbours_are_rows():
    done = run("neighbours")
    ledger, said = device(done)["ledger"], done.account
    is_explained(ledger)
    want = {n["pid"]: charged(done.log, n["pid"]) for n in said["neighbours"]}
    mt.equal(untraced(done), want, "neighbours")
    mt.equal(ledger["other_processes"], sum(want.values()), "other_processes")
    mt.equal(ledger["other_own"], said["context_bytes"], "other_own")


def case_a_traced_neighbour_is_no_other_process():
    done = run("neighbours", "--traced")
    small, large = done.account["neighbours"]
    ledger = device(done)["ledger"]
    is_explained(ledger)
    traced = {p["pid"]: p for p in device(done)["processes"] if p["traced"]}
    mt.check(large["pid"] in traced and len(traced) == 2, "traced: %s" % traced)
    mt.equal(traced[large["pid"]]["bytes"], charged(done.log, large["pid"]), "its bytes, with its context")
    mt.equal(ledger["other_processes"], charged(done.log, small["pid"]), "other_processes")


@mt.variants((), ("--traced",))
def case_neighbours(*arguments):
    done = run("neighbours", *arguments)
    oom, = compare_ooms(done)
    compare_ledger(oom)
    held_by = [n["bytes"] for n in done.account["neighbours"]]
    ours = sum(held_by[len(held_by) - len(arguments):])
    mt.equal(oom["ledger"]["other_processes"], sum(held_by) - ours, "other, untraced processes")
    mt.equal("%.2f of %.2f" % (sum(held_by) / GIB, oom["total_bytes"] / GIB), "15.24 of 23.52")
    verdict = held(done, "other_process")
    ruled_out(done, "fragmentation", "capacity", "leak")
    mt.equal(certain(done, "cuda:0"), ["other_process"])
    mt.equal(verdict["bytes"], sum(held_by), "bytes of the neighbours, traced or not")
    mt.check("3 were on it" in verdict["advice"], verdict["advice"])


def case_in_a_container_the_drivers_pids_are_others():
    done = gpu.scenario("neighbours", "--traced", paused=True, pid_shift=1000000)
    is_explained(device(done)["ledger"])
    small = done.account["neighbours"][0]["pid"]
    mt.equal(untraced(done), {small + 1000000: charged(done.log, small)})
    mt.check(all(p["guessed"] for p in device(done)["processes"] if p["traced"]), "ours were found otherwise")


# ---- causes ------------------------------------------------------------------------------------------------------


def case_capacity_is_the_cause():
    done = run("capacity")
    verdict, _ = one_cause(done)
    oom = done.account["ooms"][0]
    mt.equal(verdict["bytes"], oom["requested_bytes"] - oom["free_bytes"], "short by")


def case_fragmentation_of_a_first_request():
    """A packing would have served it, and as much again: the holes are the cause. What it would have gone on to is a remark."""
    done = run("fragmentation")
    verdict, text = one_cause(done)
    oom = done.account["ooms"][0]
    mt.equal((verdict["kind"], verdict["certainty"]), ("fragmentation", "medium"))
    mt.check("no earlier step says what would still have been asked for" in verdict["evidence"], verdict["evidence"])
    mt.equal(verdict["bytes"], oom["reserved_bytes"] - oom["allocated_bytes"], "unused")
    mt.equal(verdict["bytes"], done.account["unused_bytes"])
    mt.check("expandable_segments" in verdict["advice"], "no advice on expandable segments: %s" % verdict["advice"])
    mt.check(re.search(r"largest +64.0 MiB account.py:\d+ bytes_of \(x\d+\)", text), "equal blocks are not counted together: %s" % text)


def case_a_fraction_is_the_cause():
    done = run("fraction")
    verdict, text = one_cause(done)
    near(done.account["ooms"][0]["reserved_bytes"] + verdict["bytes"], done.account["limit_bytes"], 0.25, "what the pool may take")
    said = re.search(r"the pool may take ([\d.]+) ([KMG])iB to ([\d.]+) ([KMG])iB:", verdict["evidence"]).groups()
    least, most = (float(number) * 1024 ** ("KMG".index(unit) + 1) for number, unit in (said[:2], said[2:]))
    mt.check(least <= 1.001 * done.account["limit_bytes"] and done.account["limit_bytes"] < 1.001 * most, "%s, of %d" % (said, done.account["limit_bytes"]))
    mt.check("refused by the pool itself, which may take %s %siB to %s %siB" % said in text, text)


def case_caught_is_no_problem():
    done = run("caught")
    mt.equal(done.trace.report["status"], "ok")
    mt.check("leak" not in certain(done) and "fragmentation" not in certain(done), "verdicts: %s" % certain(done))


# ---- other commands at the same moment ---------------------------------------------------------------------------


def where(shown):
    return [(s["address"], s["size_bytes"], [(b["address"], b["size_bytes"]) for b in s["blocks"]]) for s in shown["segments"]]


def case_frag_shows_the_same_moment():
    done = run("fragmentation")
    said, (shown,) = done.account["ooms"][-1], done.trace.json("frag", "--device", "cuda:0")["devices"]
    mt.equal((shown["reserved_bytes"], shown["allocated_bytes"]), (said["reserved_bytes"], said["allocated_bytes"]))
    mt.equal(shown["largest_hole_bytes"], said["largest_hole_bytes"], "largest hole")
    mt.equal(sum(b["size_bytes"] for s in shown["segments"] for b in s["blocks"]), said["allocated_bytes"], "blocks")
    mt.equal(sum(s["size_bytes"] for s in shown["segments"]), said["reserved_bytes"], "segments")
    mt.check(not shown["fits_hole"] and not shown["fits_after_return"], "it should not fit")
    mt.between(0.49, shown["fragmentation"], 0.51, "fragmentation")
    at = done.trace.json("frag", "--device", "cuda:0", "--at", "oom")["devices"][0]
    mt.equal(where(at), where(shown), "segments and blocks --at oom")


def case_expandable_segments_are_mapped_pages():
    said = run("expandable").account["ooms"][-1]
    (shown,) = run("expandable").trace.json("frag", "--device", "cuda:0")["devices"]
    mt.check(shown["segments"] and all(s["expandable"] for s in shown["segments"]), "not expandable: %s" % where(shown)[:2])
    mt.equal(sum(s["size_bytes"] for s in shown["segments"]), said["reserved_bytes"], "mapped pages")
    mt.equal((shown["allocated_bytes"], shown["largest_hole_bytes"]), (said["allocated_bytes"], said["largest_hole_bytes"]))


def case_peak_at_an_oom():
    done = run("caught")
    for number, said in enumerate(done.account["ooms"], 1):
        moment = done.trace.json("peak", "--device", "cuda:0", "--at", "oom:%d" % number)["devices"][0]
        mt.equal(moment["pool"]["bytes"], said["allocated_bytes"], "pool at oom:%d" % number)
        mt.equal(moment["device"]["bytes"], said["reserved_bytes"], "driver's allocations at oom:%d" % number)


mt.main()
