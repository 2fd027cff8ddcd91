#!/usr/bin/env python3
"""tests/cases/replay.py on 20 programs: each replayed as it was run, and under six settings on two cards, against real runs there.

usage: replay.py [CASE...] | --table [PROGRAMS]    writes the table in docs/whatif.md, of so many programs"""
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


def case_as_it_was_with_room():
    replays.check_itself(replays.ROUNDED, replays.ROOM)


@mt.variants(("expandable_segments:False", 3), (replays.EXPANDABLE, 5))
def case_graphs(setting, seed):
    replays.check_graphs(setting, seed)


@mt.variants(*SEEDS)
def case_without(seed):
    for mib in (replays.ROOM, replays.SHORT):
        said, real = replays.without(mib, seed=seed)
        mt.equal(said, real, "without what it keeps, on %d MiB" % mib)


# ---- the table in docs/whatif.md ---------------------------------------------------------------------------------

PAGE = os.path.join(mt.TOP, "docs/whatif.md")
BEGIN, END = "<!-- replayed -->\n", "<!-- /replayed -->\n"


def shown(outcome):
    if outcome.get("first_refused"):
        return "fails at request %d" % outcome["first_refused"]
    return "%.1f MiB" % (outcome["most_reserved_bytes"] / (1 << 20)) if "most_reserved_bytes" in outcome else "fails"


def questions():
    yield "as it was, native", lambda mib, seed: replays.itself(None, mib, seed=seed)
    yield "as it was, `%s`" % replays.EXPANDABLE, lambda mib, seed: replays.itself(replays.EXPANDABLE, mib, seed=seed)
    for setting in SETTINGS:
        yield "`%s`" % setting, lambda mib, seed, setting=setting: replays.other(None, setting, mib, seed=seed)
    yield "without one line's blocks", lambda mib, seed: replays.without(mib, seed=seed)


def table(seeds):
    rows = ["| asked | runs | equal | most reserved, or the first failure: replayed / real |", "|---|---|---|---|"]
    for name, ask in questions():
        pairs = [ask(mib, seed) for seed in seeds for mib in (replays.ROOM, replays.SHORT)]
        same = sum(said == real for said, real in pairs)
        rows.append("| %s | %d | %d | %s |" % (name, len(pairs), same, "; ".join("%s / %s" % (shown(a), shown(b)) for a, b in pairs)))
    return rows


if sys.argv[1:2] == ["--table"]:
    rows = table(SEEDS[:int((sys.argv[2:] or [3])[0])])
    page = open(PAGE, encoding="utf-8").read()
    with open(PAGE, "w", encoding="utf-8") as out:
        out.write(page[:page.index(BEGIN) + len(BEGIN)] + "\n".join(rows) + "\n" + page[page.index(END):])
else:
    mt.main()
