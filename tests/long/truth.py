#!/usr/bin/env python3
"""As cases/truth.py: the programs that take longer, and those there with all that they import."""
# timeout: 900
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt
import truths
from truths import check, check_both_lines, check_quiet, command_of, run, said


def case_there_is_no_graph_to_detach():
    verdict = check("logits")
    mt.check("detach" not in verdict["advice"] and "graph" not in verdict["advice"], verdict["advice"])


def case_two_leaks_on_a_device():
    check_both_lines("two_caches", 1000 * 512 * 4, 1000 * 300 * 4, 1000 * 2048 * 4)


def case_steps_that_need_more_are_no_holes():
    verdict = check("router")
    mt.check("Each step needs more than those before" in verdict["advice"], verdict["advice"])
    holes = [v["certainty"] for v in said("router") if v["kind"] == "fragmentation"]
    mt.check(holes in ([], ["low"]), "certainty of holes: %s" % holes)


def case_fourteen_turns_tell_enough():
    """What they keep is a leak, though they are too few for a step to be known by them."""
    check("generations")


def case_workers_on_a_card_are_its_own():
    verdict = check("workers_on_card")
    mt.check("3 workers that it started itself hold" in verdict["evidence"] and "let workers keep nothing" in verdict["advice"], verdict)


def case_spawned_workers_that_are_sent_their_tables():
    check_quiet("spawned")
    check_quiet("spawned_fed")


def case_imports_hide_no_cause():
    for name in ("frames", "halves_lines", "pinned_blocks", "second_card"):
        check(name)


def case_a_large_input_is_no_leak():
    """Its step is not over, and has made no more blocks than those before it had by then."""
    verdict = check("large_input")
    mt.check("It is this input: no step before needed more than" in verdict["advice"], verdict["advice"])
    trace = truths.run("large_input").trace
    for batch, so in ("0.9", "it may fail in the same step"), ("0.1", "it fits"):
        pool = trace.json("whatif", "--scale", "batch=" + batch)["pools"][0]
        mt.equal(pool["rest_of_step_bytes"] <= pool["left_bytes"], so == "it fits", "the rest of the step at %s" % batch)
        text = " ".join(trace.tool("whatif", "--scale", "batch=" + batch).out.split())  # lines are filled
        mt.check("are left: " + so in text, text)


def check_unfinished(name, what):
    """What the request's own work would still have asked for, beside what the program itself counts of it; the screen adds that more may come."""
    verdict = check(name, twin="16" if name == "moved" else "twin")
    says = float(re.search(r"%s needs ([\d.]+) MiB more in all: short by [\d.]+ MiB at least" % what, verdict["evidence"])[1])
    left = int(run(name).out.splitlines()[0].split(": ")[1]) / 2**20
    mt.between(0.98 * left, says, 1.01 * left + 0.1, "MiB to come of " + name)
    mt.check("what comes after it, which is not known" in verdict["advice"] and "this input" not in verdict["advice"], verdict["advice"])
    return verdict


def case_layers_made_on_the_host_are_no_steps():
    """So the first step's optimizer is no phase behind the loop. It has begun to make two states for each gradient."""
    check_unfinished("first_state", "the optimizer's state")


def case_what_is_still_on_the_host():
    """Where a model is moved to the card, what is still to be moved is missing, too. With as much less as is advised it is moved; its twin also has room to work."""
    verdict = check_unfinished("moved", "what is moved from the host")
    missing = float(re.search(r"need at least ([\d.]+) MiB less", verdict["advice"])[1])
    mt.between(14 * 8.02, missing, 16 * 8.02, "MiB, 15 or 16 of 40 layers")
    mt.check("on the host: 0" in run("moved", "24").out, "it was not moved: " + run("moved", "24").err[-300:])


@mt.variants("connections", "notebook", "lsm", "uploads", "chunks", "sampler", "graphs", "experts", "pages", "returns", "reload",
             "memoize", "audit", "templates", "manager", "cycles", "epoll", "plans")
def case_unseen(name):
    """Servers, stores, jobs, models: written before anybody looked at what is said of them."""
    check(name)


@mt.variants(("compiler", "intern"), ("sessions", "open_session"), ("subscribers", "publish"), ("jobs", "render"), ("tee", "records"),
             ("figures", "figure"), ("slices", "day"), ("logins", "logins::login"), ("listeners", "AllocateUninitialized"))
def case_what_hardly_frees_anything_grows(name, function):
    """Half of it comes and goes, or less: a fact with its line and pace, and nobody is accused."""
    grows, = [fact for fact in run(name).trace.report["facts"] if fact["kind"] == "grows"]
    mt.check(function in grows["evidence"] and " 0 B more each" not in grows["evidence"], grows["evidence"])
    check_quiet(name, "twin")
    mt.equal([fact for fact in run(name, "twin").trace.report["facts"] if fact["kind"] == "grows"], [], "of the twin")


def case_a_queue_that_falls_behind():
    waits, = [fact for fact in run("pipeline").trace.report["facts"] if fact["kind"] == "backlog"]
    mt.check("pipeline.cc:17 decode" in waits["evidence"], waits["evidence"])
    check_quiet("pipeline", "twin")
    mt.equal(run("pipeline", "twin").trace.report["facts"], [], "of the twin, whose queue has a bound")


def case_arenas_of_threads_that_ended():
    """What report says that malloc_trim(0) would give back, a real call does."""
    verdict = check("handlers")
    less = float(re.search(r"malloc_trim\(0\): replayed, ([\d.]+) MiB less", verdict["advice"])[1])
    kept = verdict["bytes"] / 2**20
    mt.between(0.9 * kept, less, 1.05 * kept, "MiB less with malloc_trim(0)")
    real = [float(mt.plain([*command_of("handlers"), *how]).out.split()[1]) for how in ((), ("trim",))]
    mt.check(real[1] < 0.05 * real[0], "a real malloc_trim(0) gives back nearly all: %s MiB" % real)


mt.main()
