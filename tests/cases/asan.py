#!/usr/bin/env python3
"""The analyzer under AddressSanitizer and UBSan: its unit tests, and every command on the golden traces."""
# timeout: 300
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import golden_traces
import mt

ASAN = os.path.join(mt.BUILD, "asan")
UNITS = os.path.join(ASAN, "tests/unit")
COMMANDS = [["report"], ["report", "--json"], ["peak"], ["peak", "--json", "-n", "100"], ["peak", "--at", "end", "--by", "function"],
            ["leaks"], ["leaks", "--json"], ["timeline"], ["timeline", "--json"], ["check"], ["dump"]]


def built(path):
    if not os.path.exists(path):
        mt.skip("%s is not built" % os.path.relpath(path, mt.TOP))
    return path


def case_unit_tests():
    names = sorted(n for n in os.listdir(built(UNITS)) if "." not in n)
    for name in names:
        done = mt.execute([os.path.join(UNITS, name)], timeout=120)
        mt.check(done.status == 0, "%s: %s" % (name, done))
        mt.check("not ok" not in done.out, "%s: %s" % (name, done.out))
    mt.check(names, "there is none")


@mt.variants(*((n,) for n in golden_traces.NAMES))
def case_commands(name):
    memtrace = built(os.path.join(ASAN, "memtrace"))
    trace = golden_traces.unpack(name, mt.scratch("golden"))
    for command in COMMANDS:
        done = mt.execute([memtrace, *command, trace])
        mt.equal(done.status, 0, "status of %s: %s" % (" ".join(command), done))


mt.main()
