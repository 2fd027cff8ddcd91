#!/usr/bin/env python3
"""What may go wrong around an allocation (tests/programs/hazards.c): the program goes on as without the shim, and nothing is missing that
isn't counted."""
import os
import re
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

HAZARDS = mt.program("hazards")
COUNT = 30000  # as there


@mt.variants(("cancel", 3 * COUNT), ("sharer", 3 * COUNT), ("silent", 3 * COUNT), ("stop", 2 * COUNT), ("overflow", 12 * COUNT))
def case_nothing_is_lost(mode, allocations):
    trace = mt.same([HAZARDS, mode])
    mt.between(allocations, trace.host["allocations"], allocations + 1000, "allocations")


def case_locked_memory():
    mt.need_root()  # others may have less than the program sets as its limit
    trace = mt.same([HAZARDS, "memlock"])
    mt.between(2 * COUNT, trace.host["allocations"], 2 * COUNT + 10, "allocations")


def case_no_files_any_more():
    """Chunks that were mapped before chroot are filled without a file, where the kernel can do that."""
    mt.need_root()
    fills = tuple(int(n) for n in re.findall(r"\d+", os.uname().release)[:2]) >= (5, 14)
    trace = mt.same([HAZARDS, "chroot", mt.scratch("empty")], intact=False)
    host, lost = trace.host, trace.report["losses"]["events"]
    mt.equal(lost == 0, fills, "what came after chroot is recorded: %d events were lost" % lost)
    mt.between(4 * COUNT, host["allocations"] + host["frees"] + lost, 4 * COUNT + 20, "operations known")


def case_forbidden_before_it_starts():
    """Of what the second image can call, what libc itself does is enough to record it."""
    want = mt.plain([HAZARDS, "exec"])
    if "FAILED" in want.out:
        mt.skip("no seccomp here: %s" % want)
    got = mt.shimmed([HAZARDS, "exec"])
    mt.compare(want, got)
    mt.equal(len(got.trace.intact().processes), 2, "images recorded")
    mt.between(COUNT, got.trace.host["allocations"], 5 * COUNT, "allocations")
    mt.equal(os.listdir(os.path.dirname(got.trace.path)), [os.path.basename(got.trace.path)], "traces")


mt.main()
