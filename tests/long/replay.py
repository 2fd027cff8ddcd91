#!/usr/bin/env python3
"""tests/cases/replay.py on 20 programs: each replayed as it was run, and under six settings on two cards, against real runs there.

usage: replay.py [CASE...] | --table [PROGRAMS]    asks all of it once and writes the tables in docs/whatif.md, of so many programs"""
# serial
# timeout: 3600
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import gpu
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


# The incidents that use a device, and the demo on one: real programs, each of whose requests must get the block that it got.
PROGRAMS = (("incident1", ()), ("incident2", ()), ("incident3", ()), ("incident4", ()), ("incident5", (30,)), ("train_gpu", ()))


def program(name, arguments):
    """(requests of its pools, those that lie elsewhere)."""
    if name == "train_gpu":
        done = gpu.run([gpu.python(), os.path.join(mt.TOP, "examples/train_gpu.py")], devices="2G", timeout=600)
    else:
        done = gpu.scenario(name, *arguments, paused=True, timeout=600)
    done.trace.settle()
    pools = done.trace.json("whatif")["pools"]
    mt.check(pools or name == "incident4", "%s has no pool: %s" % (name, done))
    return sum(p["requests"] for p in pools), [p["differs"] for p in pools if p["differs"] or p["not_modelled"]]


@mt.variants(*PROGRAMS)
def case_program(name, arguments):
    mt.equal(program(name, arguments)[1], [], "requests that lie elsewhere")


# ---- the table in docs/whatif.md ---------------------------------------------------------------------------------

PAGE = os.path.join(mt.TOP, "docs/whatif.md")
BEGIN, END = "<!-- replayed -->\n", "<!-- /replayed -->\n"


def questions():
    yield "as it was, native", lambda mib, seed: replays.itself(None, mib, seed=seed)
    yield "as it was, `%s`" % replays.EXPANDABLE, lambda mib, seed: replays.itself(replays.EXPANDABLE, mib, seed=seed)
    for setting in SETTINGS:
        yield "`%s`" % setting, lambda mib, seed, setting=setting: replays.other(None, setting, mib, seed=seed)
    yield "without one line's blocks", lambda mib, seed: replays.without(mib, seed=seed)


def failed(outcome):
    return bool(outcome.get("first_refused")) or outcome.get("fits") is False or outcome.get("requests_refused", 0) > 0


def span(outcomes):
    most = sorted(o["most_reserved_bytes"] >> 20 for o in outcomes if "most_reserved_bytes" in o)
    return "%d to %d MiB" % (most[0], most[-1]) if most else "-"


def ask(name, question, mib, seed):
    try:
        pair = question(mib, seed)
    except mt.Fail as why:
        pair = ({"why": str(why)}, {})
    print("%s, seed %d, %d MiB: %s" % (name, seed, mib, "equal" if pair[0] == pair[1] else "%s, really %s" % pair), flush=True)
    return pair


def table(seeds):
    rows = ["| asked | runs | equal | of them with failures | most reserved of the others |", "|---|---|---|---|---|"]
    pairs = {name: [] for name, _ in questions()}
    for seed in seeds:  # a program at a time: its runs are asked for again
        for name, question in questions():
            pairs[name] += [ask(name, question, mib, seed) for mib in (replays.ROOM, replays.SHORT)]
        replays.run.cache_clear()
    for name, found in pairs.items():
        equal = [real for said, real in found if said == real]
        rows.append("| %s | %d | %d | %d | %s |" % (name, len(found), len(equal), sum(map(failed, equal)), span(equal)))
    rows += ["", "| program, as it was | requests | of them elsewhere than replayed |", "|---|---|---|"]
    for name, arguments in PROGRAMS:
        requests, differ = program(name, arguments)
        rows.append("| %s | %s | %s |" % (name, format(requests, ","), "none" if not differ else "from request %d on" % differ[0]["request"]))
        print(rows[-1], flush=True)
    return rows


if sys.argv[1:2] == ["--table"]:
    rows = table(SEEDS[:int((sys.argv[2:] or [len(SEEDS)])[0])])
    page = open(PAGE, encoding="utf-8").read()
    with open(PAGE, "w", encoding="utf-8") as out:
        out.write(page[:page.index(BEGIN) + len(BEGIN)] + "\n".join(rows) + "\n" + page[page.index(END):])
else:
    mt.main()
