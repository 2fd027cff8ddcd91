"""Programs on the fake libamdhip64.so of tests/hip."""
import json  # noqa: F401
import os
import re

import fakecuda
import mt
from fakecuda import calls, compare, events, expected, raw_events  # noqa: F401

MAJORS = ("5", "6", "7")
SOURCES = os.path.join(mt.TOP, "tests/hip")
ENTRY_POINTS = re.compile("GetProcAddress|GetDriverEntryPoint")


def table():
    """The hook table: {name: version of the symbol}."""
    with open(os.path.join(mt.TOP, "shim/hooks/hooks_hip.def")) as file:
        return {name: version for version, name in
                re.findall(r'^(?:OUT|DROP|HAND|BARE)\("([\w.]+)",(?: [A-Z]+,)? (\w+)', file.read(), re.M)}


_libraries = None


def libraries():
    """The folder with the fakes: each symbol has the version of the first library that had it, as AMD's have."""
    global _libraries
    if _libraries is None:
        folder = mt.scratch("hip")
        names = table()
        asked = "hipPeekAtLastError hipGetLastError hipGetDevice hipRuntimeGetVersion hipMemGetInfo".split()
        with open(folder + "/map", "w") as file:
            for version in sorted(set(names.values())):
                own = [n for n in names if names[n] == version] + (asked + ["fake_*"] if version == "hip_4.2" else [])
                file.write("%s { global: %s; };\n" % (version, "; ".join(own)))
        for major in MAJORS:
            name = "libamdhip64.so." + major
            fakecuda.cc("-shared", "-fPIC", "-fvisibility=hidden", "-o", folder + "/" + name, SOURCES + "/fake.c", "-DMAJOR=" + major,
                        '-DNAME="%s"' % name, "-Wl,-soname," + name, "-Wl,--version-script=" + folder + "/map", "-Wl,-Bsymbolic")
        _libraries = folder
    return _libraries


def program(name, *arguments, source="matrix.c"):
    path = os.path.join(libraries(), name)
    if not os.path.exists(path):
        fakecuda.cc("-o", path, os.path.join(SOURCES, source), *arguments, "-ldl")
    return path


def linked(major):
    return program("linked-" + major, "-DLINKED", libraries() + "/libamdhip64.so." + major)


def run(command, intact=True, **env):
    """Its standard output, which is the same with and without the shim, and the trace."""
    env["LD_LIBRARY_PATH"] = libraries()
    want, got = mt.plain(command, env=env), mt.shimmed(command, env=env)
    mt.equal((want.status, got.status), (0, 0), "status of %s %r" % (command, got.err[-300:]))
    mt.equal(re.sub(r"\d{10,}", "P", got.out), re.sub(r"\d{10,}", "P", want.out), "output under the shim")
    if intact:
        got.trace.intact()
    return got.out, got.trace
