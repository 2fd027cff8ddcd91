#!/usr/bin/env python3
"""All programs for a large card (tests/lib/cards.py): their cause comes first, with its line, and their twins are accused of nothing."""
# timeout: 3600
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import cards
import mt

JUDGED = [name for name, (_, _, opens) in cards.table().items() if "sick" not in opens]
QUIET = [name for name, (_, _, opens) in cards.table().items() if "healthy" not in opens]


@mt.variants(*JUDGED)
def case_its_cause_is_said(name):
    cards.check(name)


@mt.variants(*QUIET)
def case_its_twin_is_quiet(name):
    cards.check_quiet(name)


mt.main()
