#!/usr/bin/env python3
"""What may go wrong around an allocation (tests/programs/hazards.c): the program goes on as without the shim, and nothing is missing that
isn't counted."""
import os
import re
import shutil
import subprocess
import sys
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

HAZARDS = mt.program("hazards")
COUNT = 30000  # as there


@mt.variants(("cancel", 3 * COUNT), ("silent", 3 * COUNT), ("stop", 2 * COUNT), ("overflow", 12 * COUNT))
def case_nothing_is_lost(mode, allocations):
    trace = mt.same([HAZARDS, mode])
    mt.between(allocations, trace.host["allocations"], allocations + 1000, "allocations")


def case_sharer():
    """A child that has its parent's thread-local storage as well is not recorded, and counted: a ring has one writer."""
    trace = mt.same([HAZARDS, "sharer"], intact=False)
    mt.equal(trace.losses(), {"events": 2 * COUNT, "events_why": ["shared"]}, "the child's events")
    mt.between(2 * COUNT, trace.host["allocations"], 2 * COUNT + 1000, "its parent's allocations")


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


def replace(path):
    os.rename(path, path + ".gone")
    open(path, "wb").close()


TAKEN = {"removed": os.unlink, "replaced": replace,
         "punched": lambda path: subprocess.run([mt.need("fallocate"), "-p", "-o", "0", "-l", str(os.path.getsize(path)), path], check=True)}


@mt.variants(*[(file, how) for file in ("ring", "nodes", "info", "session") for how in TAKEN])
def case_raw_files_that_are_taken_away(file, how):
    """What docs/design/failures.md calls harmless; a file that is cut off ends the program."""
    alone = os.path.join(mt.scratch("alone"), "libmemtrace.so")  # without a recorder beside it
    shutil.copy(mt.SHIM, alone)
    output = os.path.join(mt.scratch("trace"), "t")
    command = [mt.program("busy"), "100000", "2000", "300", "300"]
    child = subprocess.Popen(command, env=mt.shim_env(output, shim=alone), cwd=mt.scratch(), stdout=subprocess.PIPE)
    trace = mt.Trace(output)
    mt.until(lambda: len(trace.files(".ring")) == 1, "a ring", pause=0.01)
    time.sleep(0.05)
    TAKEN[how](os.path.join(output, "session" if file == "session" else trace.files("." + file)[0]))
    out = child.communicate(timeout=mt.WAIT)[0].decode()
    mt.equal((child.returncode, out), (7, mt.plain(command).out))


mt.main()
