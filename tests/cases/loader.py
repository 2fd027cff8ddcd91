#!/usr/bin/env python3
"""The dynamic loader's locks and many modules: nobody waits for them who would not wait without us, and every module is known."""
import os
import shutil
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

LOADERLOCK = mt.program("loaderlock")
MODULES = mt.program("libmod_a.so"), mt.program("libmod_b.so")


def case_fork_while_it_is_held():
    """By a thread that the child hasn't got. The children are recorded, with modules."""
    trace = mt.same([LOADERLOCK, "fork", "30"]).intact()
    mt.equal(len(trace.processes), 31, "processes")
    mt.equal(mt.blocks_of(trace.sites(), "child_allocates"), (30 * 77, 30))


def case_allocation_in_a_callback():
    """One thread has the loader's lock and meets a module, the other meets one and wants the loader's lock: neither waits for ours."""
    trace = mt.same([LOADERLOCK, "callback", *MODULES]).intact()
    for function in ("module_a_leaf", "module_b_leaf"):
        mt.check(mt.blocks_of(trace.sites(), function)[1] == 1, "no block of " + function)


def case_a_thousand_modules():
    folder = mt.scratch("modules")
    for i in range(1000):
        shutil.copy(MODULES[0], "%s/%d.so" % (folder, i))
    trace = mt.same([LOADERLOCK, "many", folder, "1000"]).intact()
    mt.equal(mt.blocks_of(trace.sites(), "module_a_leaf"), (1000 * 1000, 1000))


mt.main()
