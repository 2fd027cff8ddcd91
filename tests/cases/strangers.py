#!/usr/bin/env python3
"""Some of the ordinary programs of tests/strangers, those marked `# short`: what report says of each is true, and the same however fast its events
come. All of them: tests/long/strangers.py."""
# timeout: 300
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt
import strangers

SHORT = [run for run in strangers.programs() if run.short]
SLOW = [(run.name,) for run in SHORT if run.pause != "0"]


@mt.once
def judged(name):
    run, = [run for run in SHORT if run.name == name]
    if not strangers.there(run):
        mt.skip("%s is not installed" % " ".join(run.needs))
    return strangers.judge(mt.MEMTRACE, strangers.record(run))


@mt.variants(*[run.name for run in SHORT if run.pause == "0"])
def case_true(name):
    found = judged(name)
    mt.check(found.how == "right" and not found.notes, strangers.row(found))


@mt.variants(*SLOW[::2], long=SLOW[1::2])
def case_however_fast(name):
    """The same events, slower: the same answer."""
    fast, slow = judged(name.split("@")[0]), judged(name)
    mt.equal((slow.report.kind, slow.leaks.kind), (fast.report.kind, fast.leaks.kind), "report's and leaks' answer")


def case_truths():
    """The headers are read: every program has a truth, and a fast run."""
    names = {os.path.basename(run.path) for run in strangers.programs() if run.path}
    mt.equal({name for name in os.listdir(strangers.FOLDER) if "." in name and not name.endswith(".h")}, names, "programs with a truth")
    kinds = {run.truth.kind for run in strangers.programs()}
    mt.equal(kinds, {"leak", "grows", "backlog", "stopped", "passes"}, "kinds")


mt.main(at_once=2)
