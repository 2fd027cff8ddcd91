#!/usr/bin/env python3
"""What a program asked for and did not get is no damage of the trace: every command reads it, and what lives on is what lived before.
tests/long/failing.py does the same for many seeds."""
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt
import refusals


def case_host():
    trace = refusals.host(1, 10000)
    done = trace.tool("dump").out
    fail = refusals.table("hooks_host.def", "RET|HAND")
    never = {"free", "free_sized", "free_aligned_sized", "mprotect", "pkey_mprotect", "madvise", "shmat"}  # leave nothing when they fail
    missing = [name for name in fail if name not in never and " %s" % name not in done]
    mt.equal(missing, [], "not called")


def case_cuda():
    trace = refusals.cuda(1, 10000)
    done = trace.tool("dump").out
    frees = refusals.table("hooks_cuda.def", "DROP")
    mt.check(len(frees) > 20, "the table is not read: %s" % frees)
    mt.equal([name for name in frees if " %s" % name not in done], [], "not called")
    mt.check(" cuMemUnmap" in done, "no unmapping")


def case_ascend():
    done = refusals.ascend(1, 10000).tool("dump").out
    mt.check(" aclrtUnmapMem" in done and " aclrtFree" in done and " aclrtMalloc" in done, "not called")


mt.main()
