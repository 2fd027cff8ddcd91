#!/usr/bin/env python3
"""Ordinary programs as users write them (tests/strangers), each with its truth: what report says of each is true, or at most of one in twenty too
little, and the same events get the same answer however fast they come. tests/strangers/run prints the table.

NAMEs as arguments pick cases, STRANGERS="inbox etl" picks programs."""
# timeout: 3600
import concurrent.futures
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt
import strangers

WANTED = os.environ.get("STRANGERS", "").split()
AT_ONCE = 2
TOO_LITTLE = 0.05  # of all programs
LEAST = 100  # runs that must have been made


def look(run):
    found = strangers.judge(mt.MEMTRACE, strangers.record(run))
    print("# " + strangers.row(found), flush=True)
    return run, found


@mt.once
def study():
    runs = [run for run in strangers.programs() if run.path and strangers.there(run) and (not WANTED or any(part in run.name for part in WANTED))]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(look, runs))


def case_true():
    found = [one for _, one in study()]
    print("# " + strangers.counts(found))
    mt.check(WANTED or len(found) >= LEAST, "only %d ran" % len(found))
    mt.equal([strangers.row(one) for one in found if one.how in ("wrong", "near") or one.notes], [], "said wrongly")
    few = [one.name for one in found if one.how == "too little"]
    mt.check(len(few) <= TOO_LITTLE * len(found), "too little is said of %d: %s" % (len(few), few))


def case_however_fast():
    """The same events, slower: the same answer, of both."""
    answers = {}
    for run, found in study():
        answers.setdefault((run.path, *run.arguments), []).append((found.report.kind, found.leaks.kind, run.pause))
    mt.check(WANTED or len(answers) >= 50, "only %d programs" % len(answers))
    mt.equal([(os.path.basename(program[0]), said) for program, said in answers.items() if len({one[:2] for one in said}) > 1], [], "depends on time")


mt.main()
