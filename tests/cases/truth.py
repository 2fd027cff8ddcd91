#!/usr/bin/env python3
"""What report says first of programs as users write them, and that nothing is said of their twins; long/truth.py has more."""
# timeout: 900
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt
import truths
from truths import check, check_both_lines, check_quiet, said

truths.imports = False


def case_what_grows_beside_the_pool_is_a_leak():
    """Two verdicts of the same bytes would be one too many."""
    verdict = check("frames")
    mt.check("8.0 MiB more each step" in verdict["evidence"], verdict["evidence"])
    mt.equal([v["kind"] for v in said("frames")], ["leak"], "verdicts")


@mt.long
def case_attempts_by_several_lines_are_one():
    """What the first one left, too: three lines of the caller's, one of the callee's."""
    verdict = check("halves_lines")
    mt.between(600 << 20, verdict["bytes"], 640 << 20, "bytes of %s" % verdict["evidence"])


def case_holes_that_leave_much_are_the_cause():
    """What the step would still have asked for is a remark."""
    verdict = check("pinned_blocks")
    mt.check(verdict["certainty"] == "medium" and "no earlier step says" in verdict["evidence"], verdict["evidence"])


def case_layers_are_no_steps():
    """Forty of one forward pass recur, but keep what they make: none tells what is still to come."""
    verdict = check("forty_layers")
    mt.check("which is not known" in verdict["advice"] and "need at least" in verdict["advice"], verdict["advice"])
    trace = truths.run("forty_layers").trace
    mt.equal([r["kind"] for r in trace.report["ruled_out"] if r["open"]], ["leak"], "neither proven nor ruled out")
    screen = trace.tool("report").out
    mt.check("\n  leak?  " in screen and "\n  no leak" not in screen, screen)


def case_two_leaks_at_one_pace():
    """Nothing tells that one thing holds both."""
    check_both_lines("two_lists", 70000, 45000)


@mt.long
def case_another_card_has_room():
    verdict = check("second_card")
    mt.check("put a part of it on cuda:1, which had 8" in verdict["advice"], verdict["advice"])
    mt.check("no earlier step says" in verdict["evidence"], verdict["evidence"])


def case_one_line_leaks_on_each_card():
    """One row, whose bytes are those of one card: it says so."""
    check("each_card")
    trace = truths.run("each_card").trace
    mt.equal([site["growing_devices"] for site in trace.json("leaks")["sites"] if site["memory"] == "pool" and site["outlook"] == "leaks"], [2])
    screen = trace.tool("leaks").out
    mt.check(re.search(r"\n    the same on each of 2 devices; these are the figures of cuda:[01]\n", screen), screen)


def case_processes_that_pile_up():
    """Where they were started; jobs that end by themselves are none, however many there are at once."""
    mt.check("12 processes" in check("pools_kept")["evidence"], said("pools_kept"))
    screen = truths.run("pools_kept").trace.summary()
    mt.check("\nPROCESS " in screen, "WHY names a process that is not shown: " + screen)
    check_quiet("jobs_end")


def case_objects_in_arenas_are_kept_too():
    """Few blocks are seen beside them, and most of those are freed again: for one that only loads that is no work."""
    check_quiet("table_read")


mt.main()
