#!/usr/bin/env python3
"""Programs as users write them (tests/programs/truth: one file, the default stream), each with its truth in its head: what report says of
them first, and that nothing is said of their twins. docs/TRIALS.md has what was said before, and what came of the advice."""
# timeout: 900
import functools
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import gpu
import mt

PLACE = os.path.join(mt.TOP, "tests/programs/truth")


@functools.lru_cache(None)
def run(name, *arguments):
    path = os.path.join(PLACE, name + ".py")
    done = gpu.run([gpu.python(), path, *arguments], timeout=300, **gpu.settings_of(path))
    mt.check(os.path.isdir(done.trace.path), "%s left no trace: %s" % (name, done.err[-500:]))
    return done


def truth(name):
    """The verdict, and the line that must be named with it, or None."""
    with open(os.path.join(PLACE, name + ".py"), encoding="utf-8") as file:
        found = re.search(r"^# truth: (\w+)(?: (\S+) (\S+))?$", file.read(), re.M)
    return found[1], found[2], found[3]


def said(done):
    return [v for v in done.trace.report["verdicts"] if v["device"] != "host"]


def check(name, twin=True):
    """Its truth comes first, with its line; its twin ends, and is accused of nothing."""
    kind, file, function = truth(name)
    verdicts = said(run(name))
    why = [(v["kind"], v["evidence"]) for v in run(name).trace.report["ruled_out"] + run(name).trace.report["unknown"]]
    mt.check(verdicts and verdicts[0]["kind"] == kind, "%s: said %s, not: %s" % (name, [(v["kind"], v["certainty"], v["evidence"]) for v in verdicts], why))
    if file:
        text = verdicts[0]["evidence"] + " ".join(verdicts[0]["sites"]) + (verdicts[0]["advice"] or "")
        mt.check(re.search(r"%s:\d+ %s" % (re.escape(file), re.escape(function)), text), "%s: no %s %s in %s" % (name, file, function, text))
    if not twin:
        return verdicts[0]
    healthy = run(name, "twin")
    mt.equal((healthy.status, healthy.trace.report["status"]), (0, "ok"), "exit and status of %s twin: %s" % (name, said(healthy)))
    return verdicts[0]


def case_what_grows_beside_the_pool_is_a_leak():
    """Two verdicts of the same bytes would be one too many."""
    verdict = check("frames")
    mt.check("8.0 MiB more each step" in verdict["evidence"], verdict["evidence"])
    mt.equal([v["kind"] for v in said(run("frames"))], ["leak"], "verdicts")


def case_attempts_by_several_lines_are_one():
    """What the first one left, too: three lines of the caller's, one of the callee's."""
    verdict = check("halves_lines")
    mt.between(600 << 20, verdict["bytes"], 640 << 20, "bytes of %s" % verdict["evidence"])


def case_holes_that_leave_much_are_the_cause():
    """What the step would still have asked for is a remark."""
    verdict = check("pinned_blocks")
    mt.check(verdict["certainty"] == "medium" and "no earlier step says" in verdict["evidence"], verdict["evidence"])


def case_there_is_no_graph_to_detach():
    verdict = check("logits")
    mt.check("detach" not in verdict["advice"] and "graph" not in verdict["advice"], verdict["advice"])


mt.main()
