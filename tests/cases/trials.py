#!/usr/bin/env python3
"""Some of the trials of tests/lib/trials.py; tests/long/trials.py has all."""
# timeout: 900
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import both
import mt
import trials


@mt.variants("copies_best", "copies_cast", "frag_lengths", "full_later", "small_holes", "expandable_full", "leak_fast_tokens", "busy_server", "leak_cancelled", "kept_attempts", "curriculum_lengths")
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


@mt.variants("leak_behind_loading", "leak_graph_of_all", "leak_rollout")
def case_figures_a_step_are_the_programs(name):
    """Of three quarters of its units, as PyTorch counts what is in use behind each."""
    done = trials.run(name, "--account")
    live, steps = done.account["live"], done.trace.report["steps"]
    first = len(live) // 4
    own = (live[-1] - live[first]) / (len(live) - 1 - first)
    mt.between(done.account["units"] - 1, steps["count"], done.account["units"] + 1, "steps; the first one may have come by other stacks")
    mt.between(0.98 * own, steps["growth"]["cuda:0 pool"]["bytes_per_step"], 1.02 * own, "more each step")
    ends = [s["stack"][:1] for s in done.trace.json("leaks")["sites"] if s["runs_out_at_step"] or s["runs_out_at_s"]]
    mt.check(not ends or done.account["ended"], "forecasts of a run whose memory has ended: %s" % ends)


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
