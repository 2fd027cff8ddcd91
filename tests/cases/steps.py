#!/usr/bin/env python3
"""Steps, phases and growth of real trainings that mark nothing, against what the programs themselves wrote down."""
# timeout: 900
import csv
import datetime
import functools
import io
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

PROGRAM = os.path.join(mt.TOP, "tests/programs/train_loops.py")
LEAK = 25600 * 4  # bytes of a kept tensor's data
WHOLE = ("leak", 61)  # the run that is recorded from the beginning; the others from behind `import torch`


class Run:
    def __init__(self, mode, steps):
        log = os.path.join(mt.scratch("log"), "log.json")
        env = {} if (mode, steps) == WHOLE else {"MEMTRACE_PAUSED": "1"}
        done = mt.shimmed([mt.python(), PROGRAM, mode, str(steps), log], env=env, timeout=120)
        mt.equal(done.status, 0, "%r: status" % done)
        self.trace = done.trace
        self.trace.intact()
        with open(log, encoding="utf-8") as file:
            self.log = json.load(file)
        self.report = self.trace.json("report")

    def steps(self):
        steps = self.report["steps"]
        mt.check(steps is not None, "no steps were found")
        return steps

    def start_ns(self):
        """Wall clock of the trace's time 0, to the millisecond."""
        start = datetime.datetime.fromisoformat(self.report["start"].replace("Z", "+00:00"))
        return int(start.timestamp() * 1e9)


@functools.lru_cache(None)
def run_of(mode, steps):
    if not mt.has_module("torch"):
        mt.skip("PyTorch is not installed")
    return Run(mode, steps)


def command(run, *words, status=0):
    done = mt.execute([mt.MEMTRACE, *words])
    mt.equal(done.status, status, "%s: status" % (words,))
    return done


@mt.variants(("evaluate", 60, 1), ("accumulate", 40, 4), ("leak", 60, 1), ("infer", 200, 6), long=[("epochs", 100, 1)])
def case_steps(mode, steps, micro):
    """Without an optimizer, six layers in a step look like six micro-steps."""
    found = run_of(mode, steps).steps()
    mt.equal((found["count"], found["source"], found["micro_steps"]), (steps, "inferred", micro))


@mt.variants(("evaluate", 60), ("accumulate", 40), ("leak", 60), ("infer", 200), long=[("epochs", 100)])
def case_steps_are_when_the_program_says(mode, steps):
    """A step found begins in the program's own step of that number, or after the one before it."""
    run = run_of(mode, steps)
    start, wrong = run.start_ns(), []
    for i, step in enumerate(run.steps()["list"]):
        begin = start + step["begin_s"] * 1e9
        slack = 3e6  # start is known to the millisecond
        # what comes right behind the optimizer (evaluation, a log) may be told to be the next step's beginning
        earliest = run.log[i - 1][0] if i else run.log[0][0]
        if not earliest - slack <= begin <= run.log[i][1] + slack:
            wrong.append((i, begin - run.log[i][0]))
    mt.equal(wrong, [], "steps elsewhere")


def case_rare_steps():
    rare = run_of("evaluate", 60).steps()["rare"]
    mt.equal((rare["count"], rare["every"]), (2, 20.0))  # the last one is behind the last step


def case_low_points_do_not_move():
    """A loop that keeps nothing: once the first evaluation has been, every step's low and high point are those of the others."""
    steps = run_of("evaluate", 60).steps()["list"]
    plain = [s for s in steps[25:-1] if not s["rare"] and s["number"] % 20]
    lows, highs = [s["low_bytes"]["host"] for s in plain], [s["high_bytes"]["host"] for s in plain]
    mt.between(0, max(lows) - min(lows), 4096, "lows differ by")
    mt.between(0, max(highs) - min(highs), 16384, "highs differ by")


def case_low_points_rise_by_what_is_kept():
    steps = run_of("leak", 60).steps()
    rises = [b["low_bytes"]["host"] - a["low_bytes"]["host"] for a, b in zip(steps["list"][5:], steps["list"][6:])]
    middle = sorted(rises)[len(rises) // 2]
    mt.between(LEAK, middle, LEAK + 1000, "rise of a step")
    growth = steps["growth"]["host"]
    mt.equal(growth["kind"], "linear")
    mt.between(LEAK * 0.99, growth["bytes_per_step"], LEAK * 1.02, "slope")


def growing(run, *words):
    sites = run.trace.json("leaks", "--filter", "^keep$", *words)["sites"]
    return [s for s in sites if any(f["function"] == "keep" for f in s["stack"])]


def case_the_leak_is_found_by_its_site():
    site = max(growing(run_of("leak", 60)), key=lambda s: s["slope_bytes_per_step"] or 0)
    mt.equal(site["kind"], "linear")
    mt.between(LEAK * 0.999, site["slope_bytes_per_step"], LEAK * 1.001, "slope")
    mt.between(0.999, site["blocks_per_step"], 1.001, "blocks a step")
    mt.equal((site["mean_block_bytes"], site["how"], site["certainty"]), (LEAK, "more blocks", "high"))


@mt.long
def case_a_leak_that_gets_faster():
    run = run_of("faster", 120)
    growth = run.steps()["growth"]["host"]
    mt.equal(growth["kind"], "accelerating")
    # one more every 20 steps
    mt.between(LEAK / 20 * 0.9, growth["acceleration"], LEAK / 20 * 1.1, "acceleration")


@mt.variants(("evaluate", 60), ("accumulate", 40), ("infer", 200), long=[("epochs", 100)])
def case_what_does_not_leak_is_not_called_so(mode, steps):
    sites = run_of(mode, steps).trace.json("leaks", "--by", "function")["sites"]
    wrong = [(s["kind"], s["slope_bytes_per_step"], s["stack"][:3]) for s in sites
             if s["kind"] in ("linear", "accelerating") and (s["slope_bytes_per_step"] or 0) > 2048]
    mt.equal(wrong, [], "growing")


@mt.variants(("50K/step", 1), ("200K/step", 0))
def case_fail_over_per_step(limit, status):
    command(None, "leaks", "--fail-over", limit, run_of("leak", 60).trace.path, status=status)


def case_no_steps_no_limit():
    trace = mt.shimmed([mt.program("busy"), "2000", "1000", "300"]).trace
    done = command(None, "leaks", "--fail-over", "1M/step", trace.path, status=1)
    mt.check("can't be checked" in done.err, "stderr: %r" % done.err)


def case_suppressions():
    run, path = run_of("leak", 60), os.path.join(mt.scratch("supp"), "supp")
    with open(path, "w", encoding="utf-8") as file:
        file.write("# as LeakSanitizer reads it\nleak:^keep$\nrace:other\n")
    mt.check(not any(s["suppressed"] for s in growing(run)), "suppressed without a file")
    sites = growing(run, "--suppressions", path)
    mt.check(sites and all(s["suppressed"] == "^keep$" for s in sites), "suppressed: %s" % [s["suppressed"] for s in sites])
    command(None, "leaks", "--fail-over", "50K/step", "--suppressions", path, run.trace.path)
    with open(path, "a", encoding="utf-8") as file:
        file.write("nonsense\n")
    done = command(None, "leaks", "--suppressions", path, run.trace.path, status=2)
    mt.check("line 4" in done.err, "stderr: %r" % done.err)


def case_times_by_step_and_phase():
    run = run_of("leak", 60)
    at = {n: run.trace.json("peak", "--at", "step:%d" % n, "--filter", "^keep$") for n in (11, 51)}
    bytes_of = {n: sum(s["bytes"] for s in at[n]["sites"]) for n in at}
    mt.between(40 * LEAK, bytes_of[51] - bytes_of[11], 40 * (LEAK + 1000), "kept between steps 11 and 51")
    peak = run.trace.json("peak", "--at", "phase:train")
    mt.check(sum(s["bytes"] for s in peak["sites"]) > 59 * LEAK, "peak of the phase")
    done = command(None, "peak", "--at", "step:1000", run.trace.path, status=2)
    mt.check("steps 1 to 60" in done.err, "stderr: %r" % done.err)
    command(None, "peak", "--at", "phase:nosuch", run.trace.path, status=2)


def case_timelines():
    run = run_of("leak", 60)
    done = command(None, "timeline", "--by", "step", "--csv", run.trace.path)
    rows = [r for r in csv.DictReader(io.StringIO(done.out)) if r["track"] == "host"]
    listed = run.steps()["list"]
    mt.equal([int(r["low_bytes"]) for r in rows], [s["low_bytes"]["host"] for s in listed])
    phases = run.trace.json("timeline", "--by", "phase")["phases"]
    mt.equal({p["phase"] for p in phases}, {p["name"] for p in run.report["phases"]})


def case_diff():
    before, after = run_of("leak", 60).trace.path, run_of("evaluate", 60).trace.path
    diff = json.loads(command(None, "diff", "--json", after, before).out)
    heap = [t for t in diff["totals"] if t["name"] == "heap" and t["figure"] == "peak"][0]
    mt.between(60 * LEAK, heap["change_bytes"] + 4e6, 60 * LEAK + 8e6, "change")
    kept = [s for s in diff["sites"] if any(f["function"] == "keep" for f in s["stack"])]
    # the peak is before the last is kept
    mt.between(59 * LEAK, sum(s["change_bytes"] for s in kept), 60 * (LEAK + 1000), "of the leak's sites")
    mt.check(kept[0]["before_bytes"] is None, "site is not new")
    same = json.loads(command(None, "diff", "--json", before, before).out)
    mt.equal([s for s in same["sites"] if s["change_bytes"]], [])
    command(None, "diff", "--fail-over", "2%,1M", after, before, status=1)
    command(None, "diff", "--fail-over", "2%,100M", before, before)
    command(None, "diff", before, status=2)


def case_live_of_what_has_ended():
    done = command(None, "live", run_of("leak", 60).trace.path)
    mt.check("60 steps" in done.out and "ended" in done.out, "output %r" % done.out)


if __name__ == "__main__":
    mt.main()
