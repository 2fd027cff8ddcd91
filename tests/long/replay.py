#!/usr/bin/env python3
"""tests/cases/replay.py on 20 programs: each replayed as it was run, and under six settings on two cards, against real runs there.

usage: replay.py [CASE...]
       replay.py --run [PROGRAMS] > LOG    asks all of it once, of so many programs, a line for each
       replay.py --table LOG               writes the tables in docs/whatif.md from such lines"""
# serial
# timeout: 3600
import os
import re
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import gpu
import mt
import replays
import trials

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


def case_what_is_advised_helps():
    """Of the usual settings the report advises those under which the program gets through where it failed, and no other."""
    done = trials.run("frag_lengths")
    verdict, = [v for v in done.trace.report["verdicts"] if v["kind"] == "fragmentation"]
    for setting in (replays.EXPANDABLE, "max_split_size_mb:64", "max_split_size_mb:256", replays.ROUNDED):
        real = trials.run("frag_lengths", traced=False, env={"PYTORCH_ALLOC_CONF": setting, "PYTORCH_CUDA_ALLOC_CONF": setting})
        mt.equal(setting in verdict["advice"], real.account["units"] > done.account["units"],
                 "%s is advised (it came to %s, without it to %s): %s" % (setting, real.account, done.account, verdict["advice"]))


def case_until_when():
    """A leak on a larger card: it goes on until about the step at which it fails there."""
    done = trials.run("leak_hooks")
    outcome, = replays.whatif(done.trace, "--alloc-conf", "expandable_segments:False", "--device-memory", "520M")["settings"]
    real = trials.run("leak_hooks", traced=False, devices="520M").account["units"]
    mt.check(done.account["units"] < real < done.account["of"], "it comes further there, and fails: %d" % real)
    mt.between(outcome["goes_on"]["until_low"], real, outcome["goes_on"]["until_high"], "the step: %s" % outcome["goes_on"])
    mt.between(0.9 * real, outcome["goes_on"]["until"], 1.1 * real, "most likely")
    text = done.trace.tool("whatif", "--alloc-conf", "expandable_segments:False", "--device-memory", "520M").out
    mt.check(re.search(r"fits up to the recorded end; goes on to grow 3\.7 MiB a step, so until\s+step %d" % round(outcome["goes_on"]["until"]), text), text)


def case_without_copies():
    """The run fits without what the report calls copies, and gets through when it drops them."""
    done = trials.run("copies_cast")
    mt.check(replays.whatif(done.trace)["requests_refused"], "nothing failed")
    outcome, = replays.whatif(done.trace, "--without", "copies")["settings"]
    mt.check(outcome["changed"] and not outcome["refused"] and outcome["granted_count"], "without them: %s" % outcome)
    mt.check(trials.run("copies_cast", "--follow", "drop", traced=False).account["ended"], "the repaired program fails, too")
    told = trials.run("frag_lengths").trace.tool("whatif", "--without", "copies")
    mt.equal((told.status, "copies: none are on a device" in told.err), (2, True), told.err)


@mt.variants("3M", "8M")
def case_a_folded_trace(limit):
    """What is missing of it is said, and nothing of other settings."""
    done = replays.run(None, replays.ROOM, traced=True, count=20000, env=(("MEMTRACE_LIMIT", limit),))
    pools = done.trace.json("whatif")["pools"]
    mt.check(sum(p["requests"] for p in pools) < done.said["requests"], "nothing was folded: %s" % pools)
    mt.equal([p["settings"] for p in pools], [[] for _ in pools], "settings")
    text = done.trace.tool("whatif").out
    mt.check("left out of the trace" in text.replace("\n", " ") or "what is left of this trace" in text or "left events out" in text, text)


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


def ask(question, mib, seed):
    try:
        said, real = question(mib, seed)
    except mt.Fail as why:
        return str(why)
    return "equal" if said == real else "%s, really %s" % (said, real)


def run(seeds):
    """A line for each thing that is asked."""
    for seed in seeds:  # a program at a time: its runs are asked for again
        for name, question in questions():
            for mib in (replays.ROOM, replays.SHORT):
                print("%s, seed %d, %d MiB: %s" % (name, seed, mib, ask(question, mib, seed)), flush=True)
        replays.run.cache_clear()
    for name, arguments in PROGRAMS:
        requests, differ = program(name, arguments)
        print("program %s: %d requests, %s" % (name, requests, differ or "equal"), flush=True)


def table(lines):
    found = {}
    for name, mib, said in re.findall(r"^(.*), seed \d+, (\d+) MiB: (.*)$", lines, re.M):
        found.setdefault(name, []).append((int(mib), said == "equal"))
    rows = ["| asked | runs with room | equal | short of memory | equal |", "|---|---|---|---|---|"]
    for name, _ in questions():
        cells = [[equal for mib, equal in found.get(name, []) if mib == card] for card in (replays.ROOM, replays.SHORT)]
        rows.append("| %s | %s |" % (name, " | ".join("%d | %d" % (len(cell), sum(cell)) for cell in cells)))
    rows += ["", "| program, as it was | requests | each of them as replayed |", "|---|---|---|"]
    for name, requests, said in re.findall(r"^program (\w+): ([1-9]\d*) requests, (.*)$", lines, re.M):
        rows.append("| %s | %s | %s |" % (name, format(int(requests), ","), "yes" if said == "equal" else "no"))
    return rows


if sys.argv[1:2] == ["--run"]:
    run(SEEDS[:int((sys.argv[2:] or [len(SEEDS)])[0])])
elif sys.argv[1:2] == ["--table"]:
    rows = table(open(sys.argv[2], encoding="utf-8").read())
    page = open(PAGE, encoding="utf-8").read()
    with open(PAGE, "w", encoding="utf-8") as out:
        out.write(page[:page.index(BEGIN) + len(BEGIN)] + "\n".join(rows) + "\n" + page[page.index(END):])
else:
    mt.main()
