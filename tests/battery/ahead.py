#!/usr/bin/env python3
"""How generated cases go on without what is said to be their cause, as JSON: by cause how many cases there are, in how many the first verdict is right,
how many failed and went on without it, and of how many twins anything is said.

usage: ahead.py FROM-TO    seeds
"""
import json
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cases  # noqa: E402
import run  # noqa: E402


def said_first(report):
    return next((v["kind"] for v in report["verdicts"] if v["certainty"] != "low"), "none")


def add(found, kind, seed, path):
    healthy = kind in cases.HEALTHY
    case = cases.make_case(path, kind, seed, not healthy)
    cause, said = min(case.truth, default="none"), said_first(run.ask(path))
    row = found.setdefault(cause, {"cases": 0, "right": 0, "failed": 0, "went on": 0, "accused": 0})
    row["cases"] += 1
    row["right"] += said == cause
    row["failed"] += case.failed
    row["went on"] += case.failed and cases.goes_on(path + "-next", case, said)
    if not healthy:
        cases.make_case(path, kind, seed, False)
        row["accused"] += said_first(run.ask(path)) != "none"


def main():
    first, last = map(int, sys.argv[1].split("-"))
    found, folder = {}, tempfile.mkdtemp(prefix="memtrace-ahead-")
    for kind in cases.KINDS:
        for seed in range(first, last + 1):
            add(found, kind, seed, os.path.join(folder, "case"))
    shutil.rmtree(folder)
    print(json.dumps(found))


main()
