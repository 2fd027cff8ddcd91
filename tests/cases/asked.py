#!/usr/bin/env python3
"""Whom the shim asks for what: nobody in the program by name, but for what docs/design/shim.md lists."""
import os
import re
import subprocess
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

COMPILER = {"_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable", "__cxa_finalize", "__gmon_start__"}  # weak, of every library
LOADER = {"_r_debug", "_dl_debug_addr", "environ", "__environ"}  # variables


def names(*options):
    lines = subprocess.run(["nm", "-D", *options, mt.SHIM], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    return {line.split()[-1].split("@")[0] for line in lines}


def by_name():
    """What the table says is called so."""
    with open(os.path.join(mt.TOP, "docs/design/shim.md"), encoding="utf-8") as file:
        rows = [line.split("|") for line in file if "| by name" in line]
    return {name for row in rows for name in re.findall(r"\w+", row[1])}


def case_nobody_else_by_name():
    mt.need("nm")
    mt.equal(names("--undefined-only") - COMPILER - LOADER - by_name(), set(), "asked by name")


def case_own_exports_by_name():
    """A call of what the shim exports goes to the first of that name, too."""
    relocations = subprocess.run([mt.need("readelf"), "-rW", mt.SHIM], stdout=subprocess.PIPE, text=True, check=True).stdout
    called = {line.split()[4].split("@")[0] for line in relocations.splitlines() if "JUMP_SL" in line}
    mt.check(called, "no calls in %r" % relocations[:200])
    mt.equal(called - by_name(), set(), "asked by name")


@mt.variants(("busy", "2000", "100", "100"), ("forks", "fork"), ("threads", "20"), ("dlloop", "3", mt.program("libmod_a.so"), mt.program("libmod_b.so")), ("children", "3", "2", "10", "1"))
def case_nosy_library(*command):
    """It stands before the shim, defines all that, and says when the shim asks."""
    command = [mt.program(command[0]), *command[1:]]
    preload = mt.program("libnosy.so")
    want = mt.plain(command, preload=[preload])
    output = os.path.join(mt.scratch("trace"), "t")
    mt.compare(want, mt.execute(command, env=mt.clean_env(LD_PRELOAD=preload + " " + mt.SHIM, MEMTRACE_OUTPUT=output)))
    mt.Trace(output).intact()


mt.main()
