#!/usr/bin/env python3
"""tests/cases/replay.py on 20 programs: each replayed as it was run, and under six settings on two cards, against real runs there."""
# serial
# timeout: 3600
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt
import replays

SETTINGS = (replays.EXPANDABLE, replays.ROUNDED, replays.SPLIT, "max_split_size_mb:200", "roundup_power2_divisions:[16:2,>:4]",
            "expandable_segments:True,roundup_power2_divisions:4")
SEEDS = range(101, 121)


@mt.variants(*SEEDS)
def case_as_it_was(seed):
    setting = (None, replays.EXPANDABLE, replays.ROUNDED, replays.SPLIT)[seed % 4]
    for mib in (replays.ROOM, replays.SHORT):
        replays.check_itself(setting, mib, seed=seed)


@mt.variants(*SETTINGS)
def case_another_setting(other):
    failed = [replays.check_other(None, other, mib, seed=seed) for seed in SEEDS for mib in (replays.ROOM, replays.SHORT)]
    mt.check(any(failed) and not all(failed), "nothing failed, or all: %s" % failed)


mt.main()
