#!/usr/bin/env python3
"""Of every trace whose report a test asks for, all commands are of one opinion (tests/lib/agree.py). The tests run as they are, and each such trace
is asked by the other commands, too. What a test says besides, under that load, is its own business. AGREEMENT="trials incident" picks files."""
# timeout: 20000
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import agree
import mt

FILES = os.environ.get("AGREEMENT", "cases/").split()
LEAST = 100  # files


def case_one_opinion():
    done = mt.execute([sys.executable, os.path.join(mt.TOP, "tests/run"), *FILES], env={**os.environ, "AGREE": "1"}, timeout=20000)
    files = [line for line in done.out.splitlines() if line.startswith("tests/cases/")]
    mt.check(len(files) >= (LEAST if FILES == ["cases/"] else len(FILES)), "only %d files ran: %s" % (len(files), done))
    mt.equal([line for line in files if agree.DIFFER in line], [], "traces of which commands are not of one opinion")


mt.main()
