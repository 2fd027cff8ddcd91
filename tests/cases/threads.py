#!/usr/bin/env python3
"""Threads: destructors that run late, many short lives, rings that are used again."""
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt


def case_destructors_at_thread_end():
    trace = mt.same([mt.program("lateends"), "50"])
    tally = mt.tally(mt.plain([mt.program("lateends"), "50"]).out)
    # pthread_create and the list of thread_local destructors allocate too.
    idle = mt.same([mt.program("lateends"), "50", "idle"])
    mt.match(trace.host, tally, idle.host)


def case_10000_threads():
    trace = mt.same([mt.program("threads10k"), "10000"])
    mt.equal(mt.blocks_of(trace.sites(), "leave_one"), (1000000, 10000))
    mt.equal(trace.processes[0]["threads"], 10001)
    mt.check(trace.bytes() < 16 << 20, "%d bytes of trace: are rings reused?" % trace.bytes())


def case_all_keys_are_the_program_s():
    done = mt.plain([mt.program("keys")])
    mt.equal(done.out.split("\n")[0], "1024 keys, the first is 0, the last 1023, then Resource temporarily unavailable")
    mt.same([mt.program("keys")])  # which compares the output


def case_threads_that_leave_nothing_leave_nothing():
    for names in [], ["name"]:
        trace = mt.same([mt.program("requests"), "20000", *names])
        mt.equal(trace.processes[0]["threads"], 20001)
        mt.equal(mt.blocks_of(trace.sites(), "leave"), (1000, 1))
        named = [line for line in trace.tool("dump", "-n", "1").out.splitlines() if line.startswith("thread ")]
        mt.check(len(named) < 100, "%d threads have a number" % len(named))
        mt.equal(trace.report["losses"]["unwritten_bytes"], 0)


def case_small_and_deep_stacks():
    trace = mt.same([mt.program("smallstacks")])
    mt.between(20100, trace.host["allocations"], 20102, "allocations")
    mt.check(trace.report["losses"]["truncated_stacks"] >= 100, "10,000 frames were not cut at 512")


def case_modules_come_and_go():
    a, b = mt.program("libmod_a.so"), mt.program("libmod_b.so")
    trace = mt.same([mt.program("dlloop"), "100", a, b])
    sites = trace.sites()
    mt.equal(mt.blocks_of(sites, "module_a_leaf", "libmod_a.so"), (100000, 100))
    mt.equal(mt.blocks_of(sites, "module_b_leaf", "libmod_b.so"), (200000, 100))
    mt.equal(mt.blocks_of(sites, "use")[1] >= 200, True, "stacks reach the program")


mt.main()
