#!/usr/bin/env python3
"""What report says of some programs for a large card (tests/lib/cards.py); tests/long/cards.py has all of them."""
# timeout: 600
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import cards
import mt


@mt.variants("dispatch", "engine", "warmup", long=["lengths", "gang"])
def case_its_cause_is_said(name):
    cards.check(name)


def case_steps_are_found_where_small_blocks_are_left_out():
    """SGD makes small blocks alone: its visits are seen now and then, those of the device's blocks all."""
    os.environ["RECORD"] = "young"
    try:
        verdict, report = cards.check("moco"), cards.run("moco").trace.report
    finally:
        del os.environ["RECORD"]
    mt.check("more each step" in verdict["evidence"], verdict["evidence"])
    mt.between(270, report["steps"]["count"], 300, "steps")


def case_a_pool_of_the_programs_own_keeps_what_it_has():
    """A MemPool's free segments are no room for others, and go back with the pool alone."""
    verdict = cards.check("mempool")
    mt.between(50 << 30, verdict["bytes"], 56 << 30, "bytes of %s" % verdict["evidence"])
    cards.check_quiet("mempool", "fixed")  # it ends, and what its few long steps have is no leak


def case_a_full_cache_that_drops_any_of_its_blocks_has_stopped():
    cards.check_quiet("gan")


mt.main()
