"""Programs for a card of 79 GiB (tests/programs/unseen) that were written and judged before anything was mended for them. TABLE there says
what report is to say of each first, and of which function's line; `healthy` is the twin, of which nothing is said. docs/TRIALS.md has both."""
import functools
import os
import re

import gpu
import mt
import truths

PLACE = os.path.join(mt.TOP, "tests/programs/unseen")


@functools.lru_cache(None)
def table():
    """Of each program: the verdicts that are right, the function whose line is named (or None), and the arguments that are known to be judged wrongly."""
    with open(os.path.join(PLACE, "TABLE"), encoding="utf-8") as file:
        rows = re.findall(r"^(\w+): (\S+) (\S+)(?: open: (.*))?$", file.read(), re.M)
    return {name: (kinds.split("|"), None if function == "-" else function, opens.split()) for name, kinds, function, opens in rows}


def environment_of(path):
    """What it sets itself before it imports PyTorch, which here is imported first."""
    with open(path, encoding="utf-8") as file:
        return dict(re.findall(r"^# environment: (\w+)=(.*)$", file.read(), re.M))


@functools.lru_cache(None)
def run(name, *arguments):
    path = os.path.join(PLACE, name + ".py")
    env = dict(environment_of(path), MEMTRACE_PAUSED="1")
    done = gpu.run([gpu.python(), "-c", truths.LATE, path, *arguments], env=env, timeout=300, **gpu.settings_of(path))
    mt.check(os.path.isdir(done.trace.path), "%s left no trace: %s" % (name, done.err[-500:]))
    return done


def said(name, *arguments):
    report = run(name, *arguments).trace.report
    return report["verdicts"] + report["facts"]


def check(name):
    """A fact comes behind the verdict that a failure needs, whose advice has to be about it then."""
    kinds, function, _ = table()[name]
    found = said(name)
    first = (found or [None])[0]
    if first and first["kind"] == "capacity" and "capacity" not in kinds:
        fact = next((f for f in found if f["kind"] == "backlog" and "backlog" in kinds), None)
        first = dict(fact, advice=first["advice"]) if fact and " wait ever longer " in first["advice"] else first
    mt.check(first and first["kind"] in kinds, "%s: said %s, not %s" % (name, first and (first["kind"], first["evidence"]), " or ".join(kinds)))
    text = first["evidence"] + " ".join(first["sites"]) + (first["advice"] or "")
    mt.check(not function or re.search(r"\b%s\.py:\d+ (\w+\.)*%s\b" % (name, function), text), "%s: no line of %s in %s" % (name, function, text))
    return first


def check_quiet(name, argument="healthy"):
    done = run(name, argument)
    mt.check("done" in done.out, "%s %s did not end: %s" % (name, argument, done.err[-500:]))
    mt.equal((done.trace.report["status"], [v["kind"] for v in done.trace.report["verdicts"]]), ("ok", []), "status and verdicts of %s %s" % (name, argument))
