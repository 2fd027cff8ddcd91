#!/usr/bin/env python3
"""Incidents 3 and 5 to the end: the leak is forecast from the first half of the run, and diff proves the fix of eight GPUs."""
# timeout: 400
import functools
import json
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import fold
import gpu
import mt
import screen

POOL = "cuda:0 pool"
FOLDINGS = 5


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


@functools.lru_cache(None)
def folded():
    """The same run as it is after the disk limit came near again and again."""
    run, path = incident3(), os.path.join(mt.scratch("folded"), "t")
    run.trace.settle()
    shutil.copytree(run.trace.path, path)
    trace = mt.Trace(path)
    for _ in range(FOLDINGS):
        fold.fold(trace)
    return trace


def figures(failure):
    return {k: v for k, v in failure.items() if k.endswith("_bytes") or k in ("retries", "outcome", "source", "verdict")}


def case_folded_it_is_the_same_leak():
    whole, now = incident3().trace.report, folded().report
    mt.check(now["folded"]["blocks"] > 10**6, "too little was folded: %s" % now["folded"])
    mt.check(now["complete"], "folding makes it incomplete")
    mt.equal([(v["verdict"], v["bytes"]) for v in now["verdicts"]], [(v["verdict"], v["bytes"]) for v in whole["verdicts"]])
    for device, was in zip(now["devices"], whole["devices"]):
        mt.equal([figures(o) for o in device["ooms"]], [figures(o) for o in was["ooms"]])
        mt.equal({k: v for k, v in device["pool"].items() if not k.endswith("_s")},
                 {k: v for k, v in was["pool"].items() if not k.endswith("_s")}, "pool")
    mt.between(whole["steps"]["count"] - 2, now["steps"]["count"], whole["steps"]["count"], "steps")


def case_folded_it_fails_at_the_same_step():
    """The forecast from the first half, which was folded, and the points of its steps as PyTorch saw them."""
    half = "step:%d" % (failed_step() // 2)
    was, now = steps("--to", half)["growth"][POOL], folded().json("report", "--to", half)["steps"]["growth"][POOL]
    mt.equal((now["kind"], now["certainty"]), (was["kind"], was["certainty"]))
    mt.between(was["runs_out_at_step"]["low"], now["runs_out_at_step"]["at"], was["runs_out_at_step"]["high"], "forecast")
    high = {s["number"]: s["high_bytes"][POOL] for s in folded().json("report")["steps"]["list"] if s["count"] == 1}
    asked = {int(n): b for n, b in incident3().account["highs"].items() if int(n) % 500}
    near = [n for n in asked if asked[n] in (high.get(n), high.get(n - 1), high.get(n - 2))]
    mt.check(len(near) >= 3 and len(near) >= len(asked) - 1, "high points: %s of %s" % (near, asked))


@functools.lru_cache(None)
def incident5(layers):
    done = gpu.scenario("incident5", layers, paused=True, timeout=120)
    done.trace.settle()
    return done


@mt.variants(30, 1)
def case_the_screen_of_eight_gpus(layers):
    """Both fit: nothing is a problem, and each GPU's figures are PyTorch's and the driver's."""
    done = incident5(layers)
    mt.equal((done.status, done.trace.report["status"], done.trace.report["verdicts"]), (0, "ok", []), "status, verdicts")
    seen, pools = screen.Screen(done.trace.tool("report").out), done.account["pools"]
    steps = done.trace.report["steps"] or {"growth": {}}  # what it does when all is loaded may be in a loop
    growing = [name for name, growth in steps["growth"].items() if name.startswith("cuda") and growth["kind"] != "none"]
    mt.equal((growing, seen.has("GROWTH  cuda")), ([], False), "what only loads grows in steps")
    mt.equal((seen.why()[0], seen.has("OUT OF MEMORY"), seen.has("DO$")), ([], False, False), "causes, a failure, advice")
    rows = seen.devices()
    mt.equal(sorted(rows), ["cuda:%d" % n for n in range(len(pools))], "devices")
    for number, said in enumerate(pools):
        row = rows["cuda:%d" % number]
        calls = [e for e in done.log if e["op"] == "alloc" and e["device"] == number and e["kind"] == "linear"]
        mt.equal((row["calls"].value, row["blocks"].value), (len(calls), said["allocations"]), "cuda:%d: calls, blocks" % number)
        for name, exact in [("total", said["total_bytes"]), ("peak", said["peak_reserved_bytes"]), ("pool", said["peak_allocated_bytes"]),
                            ("reserved", said["peak_reserved_bytes"])]:
            row[name].shows(exact, "cuda:%d: %s" % (number, name))
    said = pools[0]
    pid = next(p for p, *_ in seen.ledger() if p)
    context = said["total_bytes"] - said["free_bytes"] - said["reserved_bytes"]
    want = {(pid, "blocks in use"): said["peak_allocated_bytes"], (None, "total"): said["total_bytes"], (None, "free"): said["free_bytes"],
            (pid, "unused in pool"): said["peak_reserved_bytes"] - said["peak_allocated_bytes"], (pid, "outside pool"): context,
            (None, "unexplained"): 0}
    for owner, name, figure, _ in seen.ledger():
        figure.shows(want[owner, name], name)
    if any(name == "free" for _, name, *_ in seen.ledger()):  # a run of a second may end before its device is sampled
        seen.compare_ledger(want)
    if seen.has("OVER TIME"):  # a full screen leaves it out
        seen.peaks()[pid][1].shows(said["peak_reserved_bytes"], "most")
    _, of = seen.categories()
    of["parameters"].shows(done.account["pools"][0]["allocated_bytes"], "parameters")
    if "unknown" in of:  # what is less than a thousandth is left out
        of["unknown"].shows(said["peak_allocated_bytes"] - said["allocated_bytes"], "what infers")


def case_diff_proves_eight_gpus():
    before, after = incident5(30), incident5(1)
    done = mt.execute([mt.MEMTRACE, "diff", "--json", before.trace.path, after.trace.path])
    mt.equal(done.status, 0, "status")
    rows = {(r["name"], r["figure"]): r for r in json.loads(done.out)["devices"]}
    for side, run in (("before_bytes", before), ("after_bytes", after)):
        for number, facts in enumerate(run.account["pools"]):
            mt.equal(rows["cuda:%d" % number, "pool peak"][side], facts["peak_allocated_bytes"], "cuda:%d %s" % (number, side))
        mt.equal(rows["all devices", "pool peak"][side], sum(f["peak_allocated_bytes"] for f in run.account["pools"]), side)


mt.main()
