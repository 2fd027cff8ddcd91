#!/usr/bin/env python3
"""Steps and phases of a training that is recorded from its beginning, `import torch` included; cases/steps.py has the others."""
# timeout: 300
import os
import sys

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path[:0] = [os.path.join(TESTS, "lib"), os.path.join(TESTS, "cases")]
import mt
from steps import LEAK, PROGRAM, WHOLE, run_of


def case_steps():
    found = run_of(*WHOLE).steps()
    mt.equal((found["count"], found["source"], found["micro_steps"]), (WHOLE[1], "inferred", 1))


def case_phases_are_lines_of_the_script():
    run = run_of(*WHOLE)
    phases = run.report["phases"]
    names = [p["name"] for p in phases]
    with open(PROGRAM, encoding="utf-8") as file:
        lines = file.read().split("\n")
    train = [p for p in phases if p["name"].endswith(" train")]
    mt.equal(len(train), 1, "phases %s" % names)
    line = int(train[0]["name"].split(":")[1].split()[0])
    mt.check("train(model, opt, steps, mode, log)" in lines[line - 1], "line %d is %r" % (line, lines[line - 1]))
    mt.check("imports" in names, "phases %s" % names)
    mt.between(61 * LEAK, train[0]["kept_bytes"]["host"], 61 * LEAK + 8e6, "kept")
    starts = [p["start_s"] for p in phases]
    mt.equal(starts, sorted(starts))


mt.main()
