#!/usr/bin/env python3
"""What is mapped: address space that becomes usable and stops being so."""
import json
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt


def case_made_usable():
    """What mprotect makes usable is mapped memory of whoever calls it, as long as it is usable. Calls that change nothing leave no event."""
    done = mt.shimmed([mt.program("protects")])
    trace = done.trace.intact()
    live, peak, given, space = map(int, done.out.split())
    mapped = trace.report["map"]
    mt.equal((mapped["live_bytes"], mapped["peak_bytes"], mapped["given_back_bytes"]), (live, peak, given))
    mt.equal(mapped["failed"], 0, "mprotect of what is not mapped failed for want of memory:")
    events = trace.tool("dump").out.splitlines()
    mt.between(5, sum(" mprotect " in line for line in events), 12, "events of 20,000 calls of mprotect")
    largest = max(trace.json("peak", "--device", "map")["sites"], key=lambda site: site["bytes"])
    mt.equal(largest["stack"][0]["function"], "use", "who has most mapped memory")
    text = trace.tool("report").out
    mt.check("address space only 400.0 MiB" in text, "no classes in %s" % text)


def case_trials():
    """What a program asks for to see whether it gets it is no failure; what it needs is."""
    trace = mt.same([mt.program("trials")])
    mt.equal((trace.report["map"]["failed"], trace.report["map"]["failed_trials"]), (0, 7))
    mt.check("FAILED" not in trace.tool("report").out, "a healthy program failed")
    trace = mt.same([mt.program("trials"), "more"])
    mt.equal((trace.report["map"]["failed"], trace.report["map"]["failed_trials"]), (1, 7))
    mt.check("FAILED  mmap of 281,474,976,710,656 bytes" in trace.tool("report").out, "no failure is shown")
    dump = trace.tool("dump").out
    again = mt.execute([sys.executable, os.path.join(mt.TOP, "scripts/decode.py"), trace.path])
    mt.equal(dump.count("map-trial"), 7)
    mt.equal(again.out.count("map-trial"), 7, "trials for the other decoder")


def case_managed_heap():
    """What a runtime's own collector has is neither live in this run nor kept by allocators: it has a row of its own."""
    trace = mt.supervised([mt.program("collects"), "managed"]).trace.settle()
    ledger, bytes = trace.report["system"]["ledger"], 256 << 20
    mt.between(0.97 * bytes, ledger["managed"], bytes, "the runtime's heap")
    mt.equal(ledger["managed_by"], "collects")
    mt.check(ledger["managed"] <= ledger["live"] and ledger["kept"] < bytes / 8, "kept by allocators: %s" % ledger)
    rows = trace.tool("report").out
    said = json.loads(trace.tool("live", "--json").out.strip().splitlines()[-1])["growth"]
    mt.check(said.startswith("map is a runtime's own heap, larger by "), "live: %s" % said)
    mt.check("managed heap of collects" in rows and "live in this run" not in rows, "no row in %s" % rows)


def case_heap_that_no_hook_sees():
    """No allocator keeps more than it was given: what is resident beyond that was not freed."""
    trace = mt.supervised([mt.program("collects"), "unseen"]).trace.settle()
    ledger, bytes = trace.report["system"]["ledger"], 256 << 20
    mt.between(0.8 * bytes, ledger["unseen"], bytes, "what no hook saw")
    mt.check(ledger["unseen"] <= ledger["kept"], "more than was kept: %s" % ledger)
    mt.equal([v["kind"] for v in trace.report["verdicts"] if v["kind"] == "retained"], [])
    mt.check("seen by no hook" in trace.tool("report").out, "no row")


def case_segments_of_system_v():
    """They are mapped memory of who attaches them, as long as they are attached; by another name than a key they have none."""
    done = mt.shimmed([mt.program("segments")])
    trace = done.trace.intact()
    mapped, (live, peak) = trace.report["map"], map(int, done.out.split())
    mt.equal((mapped["live_bytes"], mapped["peak_bytes"], mapped["frees"]), (live, peak, 5))
    sites = trace.json("peak", "--device", "map")["sites"]
    mt.equal(sum(site["bytes"] for site in sites if site["stack"][0]["function"] == "attach"), peak, "who has most mapped memory")
    mt.check("/SYSV00000000" in trace.tool("dump").out, "segments have no name")
    mt.same([mt.program("segments")])


def case_plain():
    mt.same([mt.program("protects")])


mt.main()
