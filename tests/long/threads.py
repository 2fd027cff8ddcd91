#!/usr/bin/env python3
"""As many threads in a process's life as a server that has one for each request: the trace is read, and nothing is lost."""
# timeout: 1800
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

NUMBERS = 1 << 18  # of threads that leave something, shim/trace/ring.c


def numbers_of(trace):
    return [line for line in trace.tool("dump", "-n", "1").out.splitlines() if line.startswith("thread ")]


def case_more_than_a_trace_had_numbers():
    """4.3 million that free what they allocate."""
    trace = mt.same([mt.program("requests"), "4300000"], timeout=1500)
    mt.equal((trace.processes[0]["threads"], trace.host["allocations"] >= 8600000), (4300001, True), "threads, allocations")
    mt.equal(mt.blocks_of(trace.sites(), "leave"), (1000, 1))
    mt.check(len(numbers_of(trace)) < 1000, "%d threads have a number" % len(numbers_of(trace)))


def case_more_that_leave_something_than_numbers():
    trace = mt.same([mt.program("requests"), "300000", "leave"], timeout=900)
    mt.equal(trace.processes[0]["threads"], 300001)
    mt.equal(mt.blocks_of(trace.sites(), "leave"), (16 * 299999 + 1000, 300000))
    named = numbers_of(trace)
    mt.equal((len(named), 1 <= sum("(later threads)" in line for line in named) <= 4), (NUMBERS, True), "numbers, those of several")


mt.main()
