#!/usr/bin/env python3
"""A device's ledger, its failures and its segments equal what PyTorch and the stand-in driver say of themselves."""
# timeout: 400
import functools
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import gpu
import mt

ROWS = ("pool_allocated", "pool_free", "other_own", "other_processes", "free", "unexplained")


def bytes_of(text):
    """0.43G as the stand-in reads it."""
    unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1])
    return int(float(text[:-1]) * unit) if unit else int(text)


def context_of(name):
    return bytes_of(gpu.settings_of(os.path.join(gpu.SCENARIOS, name + ".py")).get("context", "64M"))


@functools.lru_cache(None)
def run(name, *arguments):
    done = gpu.scenario(name, *arguments)
    done.trace.settle()
    return done


def device_of(trace):
    """The device that failed, in a report of all there is."""
    devices = [d for d in trace.report["devices"] if d["ooms"]]
    mt.equal(len(devices), 1, "devices that failed")
    return devices[0]


def charged(log, pid=None):
    """What the driver had charged that process with when memory ran out (its granularity is larger than its callers' bytes);
    without pid the one whose request failed or, where the driver was not asked, who did the most."""
    failures = [e for e in log if e["op"] == "fail"] or [e for e in log if e["op"] != "exit"]
    until, pid = failures[-1]["ns"], pid or failures[-1]["pid"]
    return [e for e in log if e["pid"] == pid and e["ns"] <= until and e["op"] != "exit"][-1]["charged"]


def adds_up(ledger):
    mt.equal(sum(ledger[row] or 0 for row in ROWS), ledger["total"], "sum of %s" % ledger)


@mt.variants(("capacity",), ("fragmentation",), ("fraction",), ("expandable",))
def case_equals_the_stand_ins_account(name):
    done = run(name)
    device, said = device_of(done.trace), done.account["ooms"][-1]
    ledger = device["ledger"]
    adds_up(ledger)
    mt.equal(ledger["pool_allocated"], said["allocated_bytes"], "pool_allocated")
    mt.equal(ledger["pool_free"], said["reserved_bytes"] - said["allocated_bytes"], "pool_free")
    mt.equal(ledger["free"], said["free_bytes"], "free")
    mt.equal(ledger["total"], said["total_bytes"], "total")
    mt.equal(ledger["other_own"], context_of(name), "other_own is the context")
    if name != "expandable":  # there the driver refuses while it holds the pages that are given back then
        mt.equal(ledger["total"] - ledger["free"], charged(done.log), "all that is not free is this process's")
    mt.equal(ledger["other_processes"], 0, "other_processes")
    mt.equal(ledger["unexplained"], 0, "unexplained")


@mt.variants(("capacity",), ("fragmentation",), ("fraction",), ("caught",), ("retry",), ("expandable",))
def case_failures_equal_pytorchs(name):
    done = run(name)
    devices = done.trace.report["devices"]
    mt.equal(len(devices), 1, "devices")
    ooms, said = devices[0]["ooms"], done.account["ooms"]
    mt.equal((len(ooms), devices[0]["num_ooms"]), (len(said), len(said)), "ooms")
    end = done.account.get("end") or said[-1]
    mt.equal((devices[0]["num_ooms"], devices[0]["retries"]), (end["ooms"], end["retries"]), "num_ooms and num_alloc_retries")
    for got, want in zip(ooms, said):
        for key in ("requested_bytes", "free_bytes", "total_bytes", "reserved_bytes", "allocated_bytes", "largest_hole_bytes", "outcome"):
            mt.equal(got[key], want[key], key)
        mt.check(len(got["refusals"]) <= 3, "%d refusals" % len(got["refusals"]))
        mt.check(any(f["function"] == "bytes_of" or "account.py" in (f["file"] or "") for f in got["stack"]), "the stack lacks Python")
    mt.check((name == "fraction") == any(o["limit_bytes"] for o in ooms), "limit_bytes")


def case_neighbours_are_rows():
    done = run("neighbours")
    device, said = device_of(done.trace), done.account
    adds_up(device["ledger"])
    want = {n["pid"]: charged(done.log, n["pid"]) for n in said["neighbours"]}
    mt.equal({p["pid"]: p["bytes"] for p in device["processes"] if not p["traced"]}, want, "neighbours")
    mt.equal(device["ledger"]["other_processes"], sum(want.values()), "other_processes")
    mt.equal(device["ledger"]["other_own"], said["context_bytes"], "other_own")
    mt.equal(device["ledger"]["unexplained"], 0, "unexplained")


def case_a_traced_neighbour_is_no_other_process():
    done = run("neighbours", "--traced")
    device, said = device_of(done.trace), done.account
    small, large = said["neighbours"]
    adds_up(device["ledger"])
    traced = {p["pid"]: p for p in device["processes"] if p["traced"]}
    mt.check(large["pid"] in traced and len(traced) == 2, "traced: %s" % traced)
    mt.equal(traced[large["pid"]]["bytes"], charged(done.log, large["pid"]), "its bytes, with its context")
    mt.equal(device["ledger"]["other_processes"], charged(done.log, small["pid"]), "other_processes")
    mt.equal(device["ledger"]["unexplained"], 0, "unexplained")


def case_in_a_container_the_drivers_pids_are_others():
    done = gpu.scenario("neighbours", "--traced", pid_shift=1000000)
    done.trace.settle()
    device, said = device_of(done.trace), done.account
    adds_up(device["ledger"])
    small = said["neighbours"][0]["pid"]
    mt.equal({p["pid"]: p["bytes"] for p in device["processes"] if not p["traced"]}, {small + 1000000: charged(done.log, small)})
    mt.check(all(p["guessed"] for p in device["processes"] if p["traced"]), "ours were found otherwise")
    mt.equal(device["ledger"]["unexplained"], 0, "unexplained")


def case_handles_that_are_mapped_nowhere():
    done = run("handles")
    ledger, said = device_of(done.trace)["ledger"], done.account
    mt.equal(ledger["unmapped"], said["unmapped_bytes"], "unmapped")
    mt.equal(ledger["pool_allocated"] + ledger["pool_free"], 0, "pool")
    mt.between(said["created_bytes"], ledger["other_own"], said["created_bytes"] + context_of("handles"), "other_own")
    adds_up(ledger)


def where(device):
    return [(s["address"], s["size_bytes"], [(b["address"], b["size_bytes"]) for b in s["blocks"]]) for s in device["segments"]]


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
