#!/usr/bin/env python3
"""What grows is told from work, not from seconds: of the same events, ten times as fast, as they are, and ten times as slow, report says the same.
Of real programs at several speeds: strangers.py."""
# timeout: 300
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../battery"))
import cases
import mt
import trace

PACES = (0.1, 1, 10)
GROWING = ("leak", "leak_to_the_end", "leak_accelerating", "leak_lockstep", "host_leak", "serving", "dynamic_shapes", "evaluation", "idle_cache")


def growth(report):
    return (report["steps"] or {}).get("growth") or {}


def said(kind, seed, pace):
    """Kind, bytes, sites and certainty of all that grows, and of what is ruled out the kind: reasons may name seconds. And steps that are forecast."""
    path = os.path.join(mt.scratch("pace"), "t")
    trace.pace = pace
    try:
        cases.make(path, kind, seed, True)
    finally:
        trace.pace = 1
    report = mt.Trace(path).asked("report")
    found = [v for v in report["verdicts"] + report["facts"] if v["kind"] in ("leak", "grows", "backlog")]
    return ([(v["kind"], v["device"], v["bytes"], v["sites"], v["certainty"]) for v in found],
            sorted({(r["kind"], r["device"]) for r in report["ruled_out"] if r["kind"] == "leak"}),
            {name: (g["kind"], round(g["bytes_per_step"] or 0, -1)) for name, g in growth(report).items()}), {
                name: g["runs_out_at_step"]["at"] for name, g in growth(report).items() if g["runs_out_at_step"]}


@mt.variants(*GROWING)
def case_same_at_all_speeds(kind):
    answers, forecasts = zip(*[said(kind, 301, pace) for pace in PACES])
    for pace, answer, ends in zip(PACES, answers, forecasts):
        mt.equal(answer, answers[1], "every second in %s" % pace)
        mt.equal(sorted(ends), sorted(forecasts[1]), "what has a forecast, every second in %s" % pace)
        for name, at in ends.items():  # what a pool will use of its holes, and others have, is not known to the step
            mt.between(0.95 * forecasts[1][name], at, 1.05 * forecasts[1][name], "forecast of %s, every second in %s" % (name, pace))
    mt.check("leak" not in kind or answers[1][0], "nothing grows: %s" % answers[1][1])


mt.main()
