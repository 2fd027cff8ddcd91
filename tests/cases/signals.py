#!/usr/bin/env python3
"""Allocation in signal handlers that interrupt the shim anywhere: nothing is lost that isn't counted."""
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt


def storm(mode, loops, program="sigstorm"):
    cwd = mt.scratch()
    done = mt.shimmed([mt.program(program), mode, str(loops)], preload=[mt.program("libbump.so")], cwd=cwd)
    mt.equal((done.status, done.out, done.err), (0, "", ""))
    done.trace.settle()
    # 1 where something was lost, and counted
    mt.check(done.trace.tool("check").status in (0, 1), "check fails")
    with open(os.path.join(cwd, "tally")) as file:
        return done.trace, mt.tally(file.read())


def case_handlers_allocate():
    trace, tally = storm("storm", 300000)
    lost, host = trace.report["losses"]["events"], trace.host
    missing = sum(max(0, tally[k] - host[k]) for k in ("allocations", "frees"))
    mt.check(missing <= lost, "%d operations are missing, %d counted as lost" % (missing, lost))
    mt.equal(lost, 0, "events of handlers that interrupt a hook go elsewhere")
    mt.check(host["allocations"] <= tally["allocations"] + 5, "too many: %s, %s" % (host, tally))


def case_siglongjmp_out_of_handlers():
    trace, tally = storm("jump", 300)
    bytes_after, after = mt.blocks_of(trace.sites(), "after_jumps")
    mt.equal((after, bytes_after), (10000, 770000), "what was allocated after the jumps")
    # An operation that was jumped out of may be recorded but not tallied, or counted as lost.
    lost = trace.report["losses"]["events"]
    mt.between(tally["allocations"] - lost, trace.host["allocations"], tally["allocations"] + 1000, "allocations")


def jump(mode, loops):
    trace, tally = storm(mode, loops, "jumps")
    mt.equal(mt.blocks_of(trace.sites(), "after_jumps"), (10000 * 77 + (100 << 20), 10001), "what was allocated after the jumps")
    # one operation of each jump may be recorded but not tallied, or counted as lost
    lost = trace.report["losses"]["events"]
    mt.check(lost <= loops, "%d events were lost by %d jumps" % (lost, loops))
    mt.between(tally["allocations"] - lost, trace.host["allocations"], tally["allocations"] + loops + 5, "allocations")


def case_jumps_at_one_depth():
    jump("same", 40000)


def case_jumps_and_deeper():
    jump("deeper", 10000)


def case_jumps_from_another_stack():
    jump("alternate", 10000)


def case_small_alternate_stack():
    trace = mt.same([mt.program("altstack")])
    mt.equal(trace.host["allocations"], 200 * 200)


mt.main()
