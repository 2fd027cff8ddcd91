#!/usr/bin/env python3
"""Every command on the golden traces, under AddressSanitizer and UBSan (so are the unit tests: build/asan/tests/unit)."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import golden_traces
import mt

ASAN = os.path.join(mt.BUILD, "asan/memtrace")
COMMANDS = [["report"], ["report", "--json"], ["peak"], ["peak", "--json", "-n", "100"], ["peak", "--at", "end", "--by", "function"],
            ["leaks"], ["leaks", "--json"], ["timeline"], ["timeline", "--json"], ["check"], ["dump"]]


@mt.variants(*((n,) for n in golden_traces.NAMES))
def case_commands(name):
    if not os.path.exists(ASAN):
        mt.skip("build/asan/memtrace is not built")
    trace = golden_traces.unpack(name, mt.scratch("golden"))
    for command in COMMANDS:
        done = mt.execute([ASAN, *command, trace])
        mt.equal(done.status, 0, "status of %s: %s" % (" ".join(command), done))


mt.main()
