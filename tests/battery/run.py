#!/usr/bin/env python3
"""Generates cases, asks `memtrace report --json`, and compares verdicts with the truth.

usage: run.py [--seeds FROM-TO] [--kind NAME] [--keep DIR] [-v]          seeds below 300 are for tuning
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cases  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD", os.path.join(ROOT, "build"))


def ask(path):
    out = subprocess.run([os.path.join(BUILD, "memtrace"), "report", "--json", "-n", "1", path], capture_output=True, text=True)
    if out.returncode:
        raise RuntimeError(out.stderr.strip())
    return json.loads(out.stdout)


def certain(report):
    """What the report stands for: low certainty is a hint, not a verdict."""
    return {v["kind"] for v in report["verdicts"] if v["certainty"] != "low"}


def battery(seeds, kinds=None, keep=None):
    """Yields (kind, seed, sick, truth, said, report)."""
    for kind in kinds or cases.KINDS:
        for seed in seeds:
            for sick in [False] if kind in cases.HEALTHY else [True, False]:
                folder = tempfile.mkdtemp(prefix="memtrace-battery-", dir=keep)
                path = os.path.join(folder, f"{kind}-{seed}-{'sick' if sick else 'healthy'}")
                try:
                    truth = cases.make(path, kind, seed, sick)
                    report = ask(path)
                    yield kind, seed, sick, truth, certain(report), report
                finally:
                    if not keep:
                        shutil.rmtree(folder)


class Score:
    def __init__(self):
        self.right, self.missed, self.false, self.cases, self.misses = {}, {}, {}, 0, []
        self.sure = {}  # {confidence: [verdicts that were right, and wrong]}, low ones and those of twins among them

    def add(self, kind, seed, sick, truth, said, report):
        self.cases += 1
        for v in report["verdicts"]:
            self.sure.setdefault(round(v["confidence"], 2), [0, 0])[v["kind"] not in truth] += 1
        for v in truth & said:
            self.right[v] = self.right.get(v, 0) + 1
        for v in truth - said:
            self.missed[v] = self.missed.get(v, 0) + 1
            self.misses.append((kind, seed, sick, "missed " + v, report))
        for v in said - truth:
            self.false[v] = self.false.get(v, 0) + 1
            self.misses.append((kind, seed, sick, "false " + v, report))

    def table(self):
        for v in sorted({*self.right, *self.missed, *self.false}):
            right, missed, false = self.right.get(v, 0), self.missed.get(v, 0), self.false.get(v, 0)
            yield v, right, missed, false, right / max(1, right + missed), right / max(1, right + false)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", default="1-3")
    parser.add_argument("--kind", action="append")
    parser.add_argument("--keep")
    parser.add_argument("-v", action="store_true")
    args = parser.parse_args()
    first, last = map(int, args.seeds.split("-"))
    score = Score()
    for case in battery(range(first, last + 1), args.kind, args.keep):
        score.add(*case)
        if args.v:
            print(*case[:3], sorted(case[3]), sorted(case[4]))
    for kind, seed, sick, what, report in score.misses:
        print(f"{kind} {seed} {'sick' if sick else 'healthy'}: {what}")
        if args.v:
            for v in report["verdicts"]:
                print("   +", v["kind"], v["confidence"], v["evidence"])
            for v in report["ruled_out"]:
                print("   -", v["kind"], v["evidence"])
    for row in score.table():
        print("%-14s right %3d  missed %2d  false %2d  recall %.2f  precision %.2f" % row)
    for confidence, (right, wrong) in sorted(score.sure.items(), reverse=True):
        print("%.2f  right %3d  wrong %2d" % (confidence, right, wrong))
    print(score.cases, "cases")


if __name__ == "__main__":
    main()
