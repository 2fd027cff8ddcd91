#!/usr/bin/env python3
"""Incident 3 to the end: the leak is forecast from the first half of the run."""
# timeout: 400
import functools
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import gpu
import mt

POOL = "cuda:0 pool"


@functools.lru_cache(None)
def incident3():
    return gpu.scenario("incident3", timeout=200, paused=True)


@functools.lru_cache(None)
def steps(*options):
    return incident3().trace.json("report", *options)["steps"]


def failed_step():
    return incident3().account["failed_step"]


def case_every_step_is_found():
    found = steps()
    mt.equal((found["source"], found["micro_steps"]), ("inferred", 1))
    mt.between(failed_step() - 1, found["count"], failed_step(), "steps")


def case_the_high_points_are_pytorchs():
    """max_memory_allocated() of a step, as the program asked now and then."""
    high = {s["number"]: s["high_bytes"][POOL] for s in steps()["list"] if s["count"] == 1}
    asked = {int(n): b for n, b in incident3().account["highs"].items() if int(n) % 500}
    wrong = {n: (high[n], b) for n, b in asked.items() if n in high and high[n] != b}
    mt.equal(wrong, {})
    mt.check(len(set(asked) & set(high)) >= 3, "compared %s with %s" % (sorted(asked), len(high)))


def case_the_end_is_forecast_from_half_the_run():
    growth = steps("--to", "step:%d" % (failed_step() // 2))["growth"][POOL]
    mt.equal(growth["kind"], "accelerating")
    runs_out = growth["runs_out_at_step"]
    mt.between(0.9 * failed_step(), runs_out["at"], 1.1 * failed_step(), "forecast of step %d" % failed_step())
    mt.equal(runs_out["level"], 0.95)
    mt.between(runs_out["low"], failed_step(), runs_out["high"], "step that failed, in the interval")


def case_the_screen_knows_no_more_than_half_the_run():
    """What it says of the first half after the end is what it says when it reads no further."""
    text = incident3().trace.tool("report").out
    said = re.search(r"half-way \(step (\d+)\): fails at (\d+) \(95 %: (\d+) to (\d+)\)", text)
    mt.check(said, "no forecast: %s" % text)
    half, *figures = map(int, said.groups())
    runs_out = steps("--to", "step:%d" % half)["growth"][POOL]["runs_out_at_step"]
    for name, figure in zip(("at", "low", "high"), figures):
        mt.between(0.99 * figure, runs_out[name], 1.01 * figure, name)


def case_the_site_is_the_hook():
    sites = incident3().trace.json("leaks", "--device", "cuda:0", "--filter", "save_activation")["sites"]
    of_pool = [s for s in sites if s["mean_block_bytes"] == incident3().account["block_bytes"]]  # the others are its segments
    mt.equal([(s["kind"], s["how"], s["certainty"]) for s in of_pool], [("accelerating", "more blocks", "high")])


mt.main()
