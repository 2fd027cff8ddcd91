#!/usr/bin/env python3
"""Every command on the golden traces, under AddressSanitizer and UBSan (so are the unit tests: build/asan/tests/unit)."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import golden_traces
import imports
import mt

ASAN = os.path.join(mt.BUILD, "asan/memtrace")
COMMANDS = [["report"], ["report", "--json"], ["peak"], ["peak", "--json", "-n", "100"], ["peak", "--at", "end", "--by", "function"],
            ["leaks"], ["leaks", "--json"], ["timeline"], ["timeline", "--csv"], ["timeline", "--json"], ["timeline", "--by", "phase", "-n", "2"],
            ["frag"], ["frag", "--json", "-n", "1"], ["leaks", "-n", "all"], ["check"], ["check", "--json", "-n", "1"], ["dump"], ["pack", "--redact", "-o", "/dev/null"],
            ["reduce", "-o", "/dev/null"]]


def all_commands(trace):
    if not os.path.exists(ASAN):
        mt.skip("build/asan/memtrace is not built")
    for command in COMMANDS:
        done = mt.execute([ASAN, *command, trace])
        mt.equal(done.status, 0, "status of %s: %s" % (" ".join(command), done))


@mt.variants(*((n,) for n in golden_traces.NAMES))
def case_commands(name):
    all_commands(golden_traces.unpack(name, mt.scratch("golden")))


def case_commands_on_an_import():
    """Whose host is unknown, not empty."""
    all_commands(imports.imported(imports.one_block(mt.scratch("import"), "s.pickle", "step")))


def case_commands_on_many_python_stacks():
    """Tables grow while they are in use."""
    script = "import ast, ctypes, json, select\nkept = [ast.parse(%r * 50) for _ in range(20)]" % "x = [1, {2: 3}]\n"
    all_commands(mt.shimmed([mt.python(), "-c", script]).trace.settle().path)


mt.main()
