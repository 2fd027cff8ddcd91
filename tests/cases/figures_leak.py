#!/usr/bin/env python3
"""Incident 3 on the first screen, as figures.py looks at the others: the leak, its forecast, and the same when the run was folded."""
# timeout: 1200
import functools
import os
import re
import shutil
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import audit
import goldens
import mt
from claims import within
from failures import certain, ruled_out
from figures import exact, line_of, never, run, well

STRETCHES = 128  # of a run's steps: the blocks of a site are known at so many low points at most


def grown(seen):
    """GROWTH and WHAT GROWS: the program's own high and low points, what it kept and how long its steps took."""
    account, table = seen.done.account, seen.growth()
    count, block = table["count"], account["block_bytes"]
    kept = {int(n): k for n, k in account["kept"].items()}
    mt.equal((table["pid"], table["kind"]), (seen.driver.log[-1]["pid"], "accelerating"))
    lasted = sorted(account["lasted_ns"])
    shares = [lasted[len(lasted) * part // 10] / 1e9 for part in (1, 9)]  # the median of somewhat different stretches of the same loop
    for line, head in seen.each(r"^GROWTH  .* of (\d+) python; ([\d,]+) steps \(([\d.]+) (m?s) each\)"):
        scale = 1e3 if head[4] == "ms" else 1
        for group, want in ((1, table["pid"]), (2, (account["failed_step"] - 1, account["failed_step"])), (3, (shares[0] * scale, shares[1] * scale))):
            seen.take(line, head, group, want, "steps")
    columns = [(i + 1) * count // 10 for i in range(10)]
    rows = {name: seen.each(r"^ +%s((?: +[\d.]+)+)$" % name, "GROWTH")[0] for name in ("step", "GiB high", "low")}
    for name, (line, row) in rows.items():
        mt.equal(len(row[1].split()), len(columns), "columns of %s" % name)
        for number, found in zip(columns, re.finditer(r"[\d.]+", row[1])):
            lows = [account["lows"][str(n)] for n in (number, number + 1) if str(n) in account["lows"]]  # at its begin or its end
            low, high = {"step": (number, number), "low": (min(lows), max(lows)), "GiB high": (account["highs"][str(number)],) * 2}[name]
            within(found[0] + ("" if name == "step" else " GiB"), low, high, "%s of step %d" % (name, number))
        line.claimed.append(row.span(1))
    rate = (kept[count] - kept[count - 4]) / 4 * block  # it becomes more every fourth step
    error = table["error"].value
    seen.claim(r"^  shape +accelerating: (FIGURE)/step now \((95) %: \+/- (FIGURE)\), \+(FIGURE)/step each (100) steps$", (rate - error, rate + error), "95",
               (1, 2 * block), (25 * block - 0.02 * rate, 25 * block + 0.02 * rate), "100", what="the shape")
    half = (count + 1) // 2
    seen.claim(r"^  forecast  half-way \(step (\d+)\): fails at (\d+) \((95) %: (\d+) to (\d+)\); it failed at step (\d+)$", (half - 1, half + 1),
               lambda text: abs(int(text) - account["failed_step"]) <= 0.1 * account["failed_step"], "95",
               lambda text: int(text) <= account["failed_step"], lambda text: int(text) >= account["failed_step"], account["failed_step"],
               what="the forecast")
    stretch = 1
    while count > STRETCHES * stretch:
        stretch *= 2
    begin = (count - 1) // stretch * stretch  # the low point of the last stretch; counted is up to there or up to the failure
    seen.claim(r"^WHAT GROWS \(since step (\d+)\)$", (0, stretch), what="since when")
    total = kept[count] * block  # the failing step is at its low point when it begins; nothing was kept at first
    a_step = [kept[at] / at for at in (begin, count)]
    seen.claim(r"^ +(\d+) %  main.save_activation  PLACE +(FIGURE)  ([\d.]+) blocks more a step, (FIGURE) each$", 100, total,
               (0.999 * min(a_step), 1.001 * max(a_step)), block, what="what grows")
    return total, rate, block


def case_incident3():
    done = run("incident3")
    goldens.compare("incident3", done.trace)
    seen, account = audit.Audit(done), done.account
    mt.equal((certain(done), [kind for kind, *_ in seen.why()[0]]), (["leak"], ["leak"]), "verdicts")
    ruled_out(done, "capacity", "fragmentation", "other_process")
    total, rate, block = grown(seen)
    keeps = "incident3.py:" + line_of("incident3", "captured.append(out.float())")
    seen.claim(r"^  1 leak +(FIGURE)   high   more of cuda:0 stays allocated, by (PLACE) main.save_activation: (FIGURE) since the start, (FIGURE) more each step, accelerating$",
               total, keeps, total, (rate - block, rate + block), what="the cause")
    said = account["ooms"][-1]
    seen.claim(r"^  no fragmentation +(FIGURE) of (FIGURE) reserved \(([\d.]+) %\) are unused and could serve this request$", said["unused_small_bytes"],
               said["reserved_bytes"], 100 * said["unused_small_bytes"] / said["reserved_bytes"], what="no fragmentation")
    seen.alive(account["kinds"], either=account["batch_bytes"])
    seen.by_line({keeps: (account["kept_bytes"], account["kept_blocks"]),
                  "account.py:" + line_of("account", "return torch.empty(int(count)"): (account["frozen_bytes"] + account["scores_bytes"], 101),
                  "incident3.py:" + line_of("incident3", "hidden = layer(hidden)"): (sum(account["outputs"]), len(account["outputs"]))})
    seen.largest(account["ooms"][-1]["largest_blocks"])
    seen.claim(r"^  1 find what holds the blocks of (PLACE) main.save_activation", keeps, what="advice", section="WHAT TO DO")
    mt.equal(len(seen.each("save_activation", "WHAT TO DO")), 1, "lines of advice about one site")
    seen.finish()
    exact(done)


@mt.long
def case_incident3_healthy():
    done = run("incident3", "--healthy", "200")
    seen = well(done)
    never(done, "leak")
    mt.check(not seen.has("GROWTH") and not seen.has("WHAT GROWS"), "something grows: %s" % seen.text)
    seen.alive_well(done.account["kinds"])
    seen.finish()
    exact(done)


def steps_of_incident3(*options):
    return run("incident3").trace.asked("report", *options)["steps"]


def failed_step():
    return run("incident3").account["failed_step"]


def case_incident3_every_step_is_found():
    found = steps_of_incident3()
    mt.equal((found["source"], found["micro_steps"]), ("inferred", 1))
    mt.between(failed_step() - 1, found["count"], failed_step(), "steps")
    oom = run("incident3").trace.report["devices"][0]["ooms"][-1]
    mt.equal(oom["step"], failed_step(), "the failure's step, of which the growth's part says the same")


def case_incident3_high_points_are_pytorchs():
    """max_memory_allocated() of a step, as the program asked now and then."""
    high = {s["number"]: s["high_bytes"]["cuda:0 pool"] for s in steps_of_incident3()["list"] if s["count"] == 1}
    asked = {int(n): b for n, b in run("incident3").account["highs"].items() if int(n) % 500}
    wrong = {n: (high[n], b) for n, b in asked.items() if n in high and high[n] != b}
    mt.equal(wrong, {})
    mt.check(len(set(asked) & set(high)) >= 3, "compared %s with %s" % (sorted(asked), len(high)))


def case_incident3_end_is_forecast_from_half_the_run():
    growth = steps_of_incident3("--to", "step:%d" % (failed_step() // 2))["growth"]["cuda:0 pool"]
    mt.equal(growth["kind"], "accelerating")
    runs_out = growth["runs_out_at_step"]
    mt.between(0.9 * failed_step(), runs_out["at"], 1.1 * failed_step(), "forecast of step %d" % failed_step())
    mt.equal(runs_out["level"], 0.95)
    mt.between(runs_out["low"], failed_step(), runs_out["high"], "step that failed, in the interval")


@mt.long
def case_incident3_screen_knows_no_more_than_half_the_run():
    """What it says of the first half after the end is what it says when it reads no further."""
    text = run("incident3").trace.tool("report").out
    said = re.search(r"half-way \(step (\d+)\): fails at (\d+) \(95 %: (\d+) to (\d+)\)", text)
    mt.check(said, "no forecast: %s" % text)
    half, *figures = map(int, said.groups())
    runs_out = steps_of_incident3("--to", "step:%d" % half)["growth"]["cuda:0 pool"]["runs_out_at_step"]
    for name, figure in zip(("at", "low", "high"), figures):
        mt.between(0.99 * figure, runs_out[name], 1.01 * figure, name)


def case_incident3_site_is_the_hook():
    sites = run("incident3").trace.json("leaks", "--device", "cuda:0", "--filter", "save_activation")["sites"]
    of_pool = [s for s in sites if s["mean_block_bytes"] == run("incident3").account["block_bytes"]]  # the others are its segments
    mt.equal([(s["kind"], s["how"], s["certainty"]) for s in of_pool], [("accelerating", "more blocks", "high")])


@functools.lru_cache(None)
def folded_incident3():
    """The same run as it is after the disk limit came near again and again."""
    path = os.path.join(mt.scratch("folded"), "t")
    shutil.copytree(run("incident3").trace.path, path)
    trace = mt.Trace(path)
    for _ in range(5):
        mt.fold(trace)
    return trace


def untimed(figures):
    """What folding leaves as it is to the byte; times are rounded."""
    return {k: v for k, v in figures.items() if k.endswith("_bytes") or k in ("retries", "outcome", "source", "verdict", "allocations", "frees")}


@mt.long
def case_incident3_folded_is_the_same_leak():
    whole, now = run("incident3").trace.report, folded_incident3().report
    mt.check(now["folded"]["blocks"] > 10**6, "too little was folded: %s" % now["folded"])
    mt.check(now["complete"], "folding makes it incomplete")
    # whether the machine was short of memory, too, is the business of all that ran beside it
    mt.equal(*([(v["kind"], v["bytes"]) for v in report["verdicts"] if v["device"] != "host"] for report in (now, whole)))
    for got, want in zip(now["devices"], whole["devices"]):
        mt.equal([untimed(o) for o in got["ooms"]], [untimed(o) for o in want["ooms"]])
        mt.equal((untimed(got), untimed(got["pool"])), (untimed(want), untimed(want["pool"])))
    mt.between(whole["steps"]["count"] - 2, now["steps"]["count"], whole["steps"]["count"], "steps")


@mt.long
def case_incident3_folded_fails_at_the_same_step():
    """The forecast from the first half, which was folded, and the high points of its steps as PyTorch saw them."""
    half = "step:%d" % (failed_step() // 2)
    now = folded_incident3()
    was, growth = (t.json("report", "--to", half)["steps"]["growth"]["cuda:0 pool"] for t in (run("incident3").trace, now))
    mt.equal((growth["kind"], growth["certainty"]), (was["kind"], was["certainty"]))
    mt.between(was["runs_out_at_step"]["low"], growth["runs_out_at_step"]["at"], was["runs_out_at_step"]["high"], "forecast")
    high = {s["number"]: s["high_bytes"]["cuda:0 pool"] for s in now.report["steps"]["list"] if s["count"] == 1}
    asked = {int(n): b for n, b in run("incident3").account["highs"].items() if int(n) % 500}
    found = [n for n in asked if asked[n] in (high.get(n), high.get(n - 1), high.get(n - 2))]  # the first ones may be one
    mt.check(len(found) >= 3 and len(found) >= len(asked) - 1, "high points of %s, not all of %s" % (found, asked))


mt.main()
