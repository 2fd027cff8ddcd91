#!/usr/bin/env python3
"""Some of the trials of tests/lib/trials.py: one for each advice that is followed in another way. tests/long/trials.py has all."""
# timeout: 600
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import both
import mt
import trials


@mt.variants("frag_lengths", "copies_fork", long=("leak_cancelled", "copies_cast", "full_later"))
def case_advice_helps(name):
    trials.check(name)


def case_both_batteries_stand_side_by_side():
    """The real half of the second table in docs/TRIALS.md is that of the rows of the first."""
    with open(both.PAGE, encoding="utf-8") as file:
        page = file.read()
    rows = both.table_of(page, "<!-- trials -->\n", "<!-- /trials -->\n").splitlines()[2:]
    side = both.real(rows)
    found = {cells[0]: cells[6:] for cells in ([c.strip() for c in line.split("|")[1:-1]] for line in both.table_of(page).splitlines()[2:])}
    mt.equal(found, {cause: side.row(cause) for cause in found}, "real programs")
    mt.equal(sum(row["cases"] for row in side.causes.values()), len(rows), "programs")


def case_a_unit_of_work_is_a_step():
    """Three calls in a request, each of which keeps its attention map."""
    done = trials.run("leak_request_of_three")
    steps, kept = done.trace.report["steps"], 3 * 512 * 512 * 4
    mt.equal(steps["count"], done.account["of"], "steps")
    mt.between(0.98 * kept, steps["growth"]["cuda:0 pool"]["bytes_per_step"], 1.02 * kept, "more each step")


@mt.variants("leak_windows", long=["leak_behind_loading"])
def case_figures_a_step_are_the_programs(name):
    trials.figures_a_step_are_the_programs(name)


def case_a_unit_of_loops_is_a_step():
    """Of requests in which nothing but loops of any length makes blocks."""
    sick, twin = trials.traced("leak_windows", "--account"), trials.run("leak_windows", "--twin")
    found = sick.trace.report["steps"]["count"], twin.trace.report["steps"]["count"]
    mt.equal(found, (sick.account["units"] + 1, twin.account["of"]), "steps: the last one is cut off; and the twin's")


def case_what_is_kept_is_counted_from_there_on():
    """80 requests keep nothing. Bytes are of the requests since the one that is named beside them, each of which keeps as much as PyTorch says."""
    done = trials.run("leak_late", "--account")
    verdict, live = done.trace.report["verdicts"][0], done.account["live"]
    found = re.search(r" since step (\d+), ", verdict["evidence"])
    mt.check(found, "evidence: %s" % verdict["evidence"])
    since, each = int(found[1]), (live[-1] - live[79]) / (len(live) - 80)
    mt.between(76, since, 84, "the step that is named")
    mt.between(0.98 * each * (len(live) + 1 - since), verdict["bytes"], 1.02 * each * (len(live) + 1 - since), "bytes beside it")


@mt.long
def case_lines_of_others_are_named():
    """Who pins segments, and what a neighbour that is traced holds most of: in the evidence, the sites and, of the neighbour, the advice."""
    held, = [v for v in trials.traced("frag_lengths").trace.report["verdicts"] if v["kind"] == "fragmentation"]
    mt.check(re.search(r"; [\d.]+ MiB of blocks of (frag_lengths\.py:\d+ \w+) pin segments with [\d.]+ MiB unused$", held["evidence"]), held["evidence"])
    mt.check(held["sites"] and all(site.startswith("frag_lengths.py:") for site in held["sites"]), "sites: %s" % held["sites"])
    beside, = [v for v in trials.run("neighbour_loads").trace.report["verdicts"] if v["kind"] == "other_process"]
    line, = beside["sites"]
    mt.check(re.match(r"neighbour_loads\.py:\d+ retrieve$", line) and line in beside["evidence"] and line in beside["advice"], "%s" % beside)


def case_a_copy_that_was_begun_is_one():
    done = trials.run("copies_members")
    evidence, screen = done.trace.report["verdicts"][0]["evidence"], done.trace.tool("report").out
    mt.check("the last one was being made when it failed" in evidence and "no copies" not in screen, screen)


@mt.long
def case_small_holes_are_none_for_large_requests():
    """Half of all small tensors are gone; a large request may not lie in their segments, however large the holes together."""
    done = trials.run("small_holes")
    (shown,) = done.trace.json("frag", "--device", "cuda:0", "--at", "oom")["devices"]
    mt.check(not shown["fits_hole"], "it should not fit: %s" % {k: v for k, v in shown.items() if k != "segments"})


def case_a_line_of_the_loop_is_no_phase():
    """Behind a load that takes long main()'s lines are the phases, and of its loop hardly any but the one that trains shows."""
    done = trials.run("frag_lengths", "--load", "1")
    said = [v["kind"] for v in done.trace.report["verdicts"] if v["device"] != "host"]
    mt.check(said[:1] == ["fragmentation"] and "phase_peak" not in said, "verdicts: %s" % said)
    mt.between(done.account["units"] - 1, done.trace.report["steps"]["count"], done.account["units"] + 1, "steps")


mt.main()
