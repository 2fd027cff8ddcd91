#!/usr/bin/env python3
"""Some of the trials of tests/lib/trials.py; tests/long/trials.py has all."""
# timeout: 900
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt
import trials


@mt.variants("copies_best", "frag_lengths", "full_later", "small_holes", "expandable_full", "leak_fast_tokens", "kept_attempts", "curriculum_lengths")
def case_advice_helps(name):
    trials.check(name)


def case_a_unit_of_work_is_a_step():
    """Three calls in a request, each of which keeps its attention map."""
    done = trials.run("leak_request_of_three")
    steps, kept = done.trace.report["steps"], 3 * 512 * 512 * 4
    mt.equal(steps["count"], done.account["of"], "steps")
    mt.between(0.98 * kept, steps["growth"]["cuda:0 pool"]["bytes_per_step"], 1.02 * kept, "more each step")


def case_a_line_of_the_loop_is_no_phase():
    """Behind a load that takes long main()'s lines are the phases, and of its loop hardly any but the one that trains shows."""
    done = trials.run("frag_lengths", "--load", "1")
    said = [(v["kind"], v["evidence"]) for v in done.trace.report["verdicts"] if v["device"] != "host"]
    mt.check(said and "phase_peak" not in dict(said), "verdicts: %s" % said)


mt.main()
