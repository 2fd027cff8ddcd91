#!/usr/bin/env python3
"""What a report takes does not grow with the number of events, and little with stacks of which nothing is left. Traces of stacks
are read from their rings, as left by a shim without a recorder beside it: how much a recorder puts into a block depends on the machine's load."""
import json
import os
import shutil
import subprocess
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

STACKS = 60000
ROUNDS = 12  # from 8 on the reader's buffers have their full size: 7 MiB, which libc's debug information hid where it was read, too
LIMIT = 120  # bytes of a stack that is dead: 32 of them are its nodes, 16 its number


def trace_of(stacks, rounds):
    shim = os.path.join(mt.scratch("shim"), "libmemtrace.so")
    shutil.copy(mt.SHIM, shim)
    trace = mt.shimmed([mt.program("bushy"), str(stacks), str(rounds)], shim=shim).trace
    mt.check(trace.files(".ring"), "a recorder was there: %s" % trace.files())
    return trace


def report_bytes(trace, allocations):
    """Of the report itself, if what it says is right."""
    with open(os.path.join(mt.scratch("report"), "json"), "w+b") as out:
        child = subprocess.Popen([mt.MEMTRACE, "report", "--json", trace.path], stdout=out, env=mt.clean_env())
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = status
        mt.equal(status, 0)
        out.seek(0)
        mt.between(allocations, json.load(out)["host"]["allocations"], allocations + 100)
    return usage.ru_maxrss * 1024


def peak_bytes(stacks, rounds):
    """The most of three: how far its reading threads get ahead of the others is a matter of luck, and a few MiB."""
    trace = trace_of(stacks, rounds)
    return max(report_bytes(trace, stacks * rounds) for _ in range(3))


def case_events():
    """The same stacks three times as often; so many that what is read ahead is there in both."""
    once, more = peak_bytes(STACKS, 16), peak_bytes(STACKS, 48)
    mt.check(more < once * 1.1, "%d bytes, and %d with three times as many events" % (once, more))


def case_dead_stacks():
    """Four times as many stacks, each a fourth as often: nothing of them is left at the end, nor much at the peak."""
    few, many = (min(peak_bytes(*program) for _ in range(3)) for program in ((STACKS, 4), (4 * STACKS, 1)))  # a busy machine only adds to a peak
    each = (many - few) / (3 * STACKS)
    mt.check(each < LIMIT, "a dead stack takes %d bytes: %d for %d of them, %d for four times as many" % (each, few, STACKS, many))


def case_many_processes():
    """Of each a block of events is decoded at a time, in the second pass where the first one had them."""
    width, blocks, event = 40, 71000, 40  # an event and whose it is, in bytes
    trace = mt.shimmed([mt.program("children"), str(width), str(width), str(blocks)]).trace
    trace.settle()
    decoded = width * blocks * 3 // 2 * event
    took = report_bytes(trace, width * blocks)
    mt.check(took < 2 * decoded, "%d bytes, where %d are decoded at once" % (took, decoded))


mt.main()
