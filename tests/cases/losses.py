#!/usr/bin/env python3
"""Where events were lost: what is alive is an interval that holds the truth, nothing is said that the losses could have made, and what they could
not have made is still said."""
import functools
import os
import re
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

STEPS, KEPT = {"often": 12, "seldom": 20, "early": 20, "never": 12, "late": 20}, 1000


class Run:
    """Of tests/programs/outruns.c, which says what is alive at its end."""

    def __init__(self, mode, kept=0, *each):
        done = mt.shimmed([mt.program("outruns"), mode, str(STEPS[mode]), str(kept), *map(str, each)])
        mt.equal(done.status, 0, "status of %s" % done)
        self.trace = done.trace.settle()
        self.bytes, self.blocks, self.kept = map(int, done.out.split())
        self.leaks = self.trace.json("leaks", "-n", "1000")
        self.lost = self.trace.report["losses"]["events"]

    def site(self, function):
        return [s for s in self.leaks["sites"] if s["stack"] and s["stack"][0]["function"] == function]

    def growing(self):
        return [s for s in self.leaks["sites"] if s["group"]]

    def text(self, *command):
        return " ".join(self.trace.tool(*command).out.split())


@functools.lru_cache(None)
def run(*arguments):
    return Run(*arguments)


def case_healthy_program_has_no_leak():
    """Nothing grows in it. By the record alone every block whose free was lost would live on: ten times as much as there is."""
    here = run("often")
    mt.check(here.lost > 3000 * STEPS["often"] / 2, "%d events were lost" % here.lost)
    mt.equal(here.growing(), [], "what grows")
    mt.equal([s for s in here.leaks["sites"] if s["runs_out_at_step"] or s["runs_out_at_s"]], [], "forecasts")
    mt.between(here.leaks["bytes_min"], here.bytes, here.leaks["bytes"] * 1.25, "what is alive, of %s" % here.leaks["bytes"])
    mt.between(0, here.leaks["bytes"], here.bytes * 1.25, "bytes that seem alive")
    verdicts = [v for v in here.trace.report["verdicts"] if v["certainty"] != "low"]
    mt.equal((verdicts, here.trace.report["status"]), ([], "inconclusive"), "verdicts")
    mt.check(not any(r["kind"] == "leak" for r in here.trace.report["ruled_out"]), "a leak can't be ruled out")
    host = here.trace.host
    mt.between(host["live_min_bytes"], here.bytes, host["live_bytes"] * 1.25, "what is alive, in the report")


def case_screens_say_so():
    here = run("often")
    text = here.trace.tool("leaks").out
    mt.check(re.search(r"^ALIVE AT THE END  [\d.]+ [KMGi]*B to [\d.]+ [KMGi]*B in [\d,]+ to [\d,]+ blocks$", text, re.M), text)
    mt.check("events were lost: what was freed by them only seems alive" in text and "certainty" not in text and "memory ends" not in text, text)
    report = here.text("report")
    mt.check(re.search(r"heap alive at the end: [\d.]+ [KMGi]*B to [\d.]+ [KMGi]*B, as frees are among the lost", report), report)
    mt.check(" grows " not in report and "healthy" not in report, report)
    live = here.text("live")
    mt.check(re.search(r"heap [\d.]+ [KMGi]*B to [\d.]+ [KMGi]*B", live) and "grows by" not in live, live)
    diff = mt.execute([mt.MEMTRACE, "diff", here.trace.path, here.trace.path]).out
    mt.equal(len(re.findall(r"^INCOMPLETE: (?:BEFORE|AFTER) lost [\d.,]+(?: [KM])? events, which may be what differs$", diff, re.M)), 2, diff)
    mt.check("growth a step" not in diff, diff)


def case_a_leak_is_said():
    """Far more blocks are kept than frees can have been lost."""
    here = run("seldom", KEPT)
    mt.check(0 < here.lost < STEPS["seldom"] * KEPT / 10, "%d events were lost" % here.lost)
    found, = here.site("keep")
    mt.equal((found["kind"], found["certainty"]), ("linear", "high"), "growth")
    mt.between(3.8e6, found["slope_bytes_per_step"], 4.2e6, "bytes a step")
    mt.between(found["bytes"] - here.lost * 4000, found["bytes_min"], found["bytes"] - 1, "at least")
    mt.between(found["bytes_min"], here.kept, found["bytes"], "what it keeps")
    mt.check(0 < found["grown_min_bytes"] < found["grown_bytes"], "what it grew by: %s" % found)
    mt.check([s for s in here.growing()] == [found], "what else grows: %s" % here.growing())
    verdict, = [v for v in here.trace.report["verdicts"] if v["kind"] == "leak"]
    mt.check("keep" in verdict["evidence"], verdict)
    text = here.text("leaks")
    mt.check(re.search(r"at least [\d.]+ MiB of [\d.]+ MiB: the frees of the rest may be among the lost events", text), text)


def case_what_was_kept_behind_the_losses_is_certain():
    """No event was lost behind their allocation, however many before."""
    here = run("early", KEPT)
    mt.between(3000, here.lost, 20000, "lost events")
    found, = here.site("keep")
    mt.equal(found["certainty"], "high")
    mt.between(here.kept - 4000, found["bytes_min"], here.kept, "bytes that are kept for certain")


def case_what_grew_before_the_losses_is_certain():
    """The program frees all of it as it ends, of which most is lost. It had grown until then."""
    here = run("late", 10 * KEPT, 400)
    mt.between(KEPT, here.lost, 10 * KEPT * STEPS["late"], "lost events")
    mt.check([(s["kind"], s["certainty"]) for s in here.site("keep")] == [("linear", "high")], here.site("keep"))
    verdict, = [v for v in here.trace.report["verdicts"] if v["kind"] == "leak"]
    mt.check("keep" in verdict["evidence"] and verdict["certainty"] != "low", verdict)
    mt.check(here.leaks["bytes_min"] <= here.bytes <= here.leaks["bytes"], "what is alive: %s" % here.leaks)


def case_limits_are_not_passed_unseen():
    """What may be more than allowed, or may be growth, is no success."""
    for mode, kept, limit, said in (("often", 0, "10M", "up to .*, or less: events were lost"), ("seldom", KEPT, "1M/step", "grows by")):
        done = run(mode, kept).trace.tool("leaks", "--fail-over", limit)
        mt.equal(done.status, 1, "status of --fail-over %s" % limit)
        mt.check(re.search(said, done.err), done.err)
    often = run("often").trace.path
    done = mt.execute([mt.MEMTRACE, "diff", "--fail-over", "10M", often, often])
    mt.check(done.status == 1 and "at end: 0 B (+0.0 %), or more: BEFORE lost events" in done.err, "%s %s" % (done.status, done.err))
    mt.equal(run("never").trace.tool("leaks", "--fail-over", "100M,1M/step").status, 0, "status where nothing was lost")


def case_nothing_lost_nothing_doubted():
    here = run("never")
    mt.equal((here.lost, here.leaks["bytes"], here.leaks["bytes_min"]), (0, here.bytes, here.bytes), "lost, alive, at least")
    text = here.trace.tool("leaks").out
    mt.check("at least" not in text and " to " not in text.split("GROWTH")[0], text)


mt.main()
