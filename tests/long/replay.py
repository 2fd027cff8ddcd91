#!/usr/bin/env python3
"""tests/cases/replay.py on 20 programs: each replayed as it was run, and under six settings on two cards, against real runs there.

usage: replay.py [CASE...]
       replay.py --run [SEED|PROGRAM...] > LOG    asks all of it once (of these programs), a line for each answer
       replay.py --table LOG                      writes the tables in docs/whatif.md and docs/REPLAYED.md from such lines"""
# serial
# timeout: 3600
import json
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
        replays.check_itself(setting, mib, seed=seed, words=("--plain",) if seed % 2 else ())


@mt.variants(*SETTINGS)
def case_another_setting(other):
    failed = [replays.check_other(None, other, mib, seed=seed) for seed in SEEDS for mib in (replays.ROOM, replays.SHORT)]
    mt.check(any(failed) and not all(failed), "nothing failed, or all: %s" % failed)


OWN = (None, replays.EXPANDABLE, "roundup_power2_divisions:4", replays.SPLIT, "expandable_segments:True,roundup_power2_divisions:[16:2,>:4]")


@mt.variants(*range(201, 231))
def case_what_real_programs_do(seed):
    replays.check_mixed(OWN[seed % len(OWN)], (300, 400)[seed % 2], seed)


@mt.variants(*(seed for seed in range(231, 251)))
def case_what_real_programs_do_under_another_setting(seed):
    """Of programs that leave the settings alone, and whose graphs free nothing that another stream uses: what a case can know."""
    habits = ",".join(habit for k, habit in enumerate(("others", "late", "devices", "threads", "pinned", "graphs", "empty", "again")) if seed * 37 >> k & 1)
    for mib in (replays.ROOM, 300):
        replays.check_mixed_other(None, SETTINGS[seed % len(SETTINGS)], mib, seed, words=("--only", habits or "others"))


def case_as_it_was_with_room():
    replays.check_itself(replays.ROUNDED, replays.ROOM)


@mt.variants(("expandable_segments:False", 3), *((replays.EXPANDABLE, seed) for seed in range(1, 17)))
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
    """What is missing of it is said, and nothing of other settings, unless what is left was served as the replay says. Rings can't grow so near
    a limit, so events may be lost as well, or those that are left may have all of the pool's."""
    done = replays.run(None, replays.ROOM, traced=True, count=20000, env=(("MEMTRACE_LIMIT", limit),), imports=True)
    said, text = done.trace.json("whatif"), done.trace.tool("whatif").out
    pool, = said["pools"]
    if pool["requests"] == done.said["requests"]:
        mt.equal(replays.figures(pool["run"]), replays.figures(done.said), "of all requests")
        return
    mt.check(said["folded"] or not said["complete"], "nothing was folded or lost: %s" % pool)
    mt.equal(text.startswith("INCOMPLETE: what is left is replayed"), not said["complete"], text)
    if pool["differs"]:
        mt.equal(pool["settings"], [], "settings")
        missing = "events were lost" if not said["complete"] else "the disk limit left events out of the trace"
        mt.check(missing + ", so of other settings nothing can be said" in " ".join(text.split()), text)
    else:
        mt.check(not said["complete"], "of a folded trace all is as the replay says: %s" % pool)


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


# ---- the tables in docs/whatif.md and docs/REPLAYED.md ------------------------------------------------------------

BEGIN, END = "<!-- replayed -->\n", "<!-- /replayed -->\n"
FAILED = "requests_refused"


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
        return {"why": str(why)}
    return {"said": said, "real": real}


def run(seeds, programs):
    """A line of JSON for each thing that is asked."""
    for seed in seeds:  # a program at a time: its runs are asked for again
        for name, question in questions():
            for mib in (replays.ROOM, replays.SHORT):
                print(json.dumps(dict(ask(question, mib, seed), asked=name, seed=seed, mib=mib)), flush=True)
        replays.run.cache_clear()
    for name, arguments in programs:
        requests, differ = program(name, arguments)
        print(json.dumps({"program": name, "requests": requests, "differ": differ}), flush=True)
    mt.Scratch.remove()


def equal(answer):
    return "why" not in answer and answer["said"] == answer["real"]


def cell(answer):
    """What was predicted / what was real: MiB at most reserved, MiB at most in use; or what failed."""
    if "why" in answer:
        return "no answer"
    said, real = answer["said"], answer["real"]
    both = lambda text: "%s / %s" % (text(said), text(real))
    parts = []
    if said.get("first_refused") or real.get("first_refused"):
        parts.append("fails at request " + both(lambda a: a["first_refused"] or "none"))
    if not (said.get("fits", True) and real.get("fits", True)):
        parts.append(both(lambda a: "fits" if a["fits"] else "fails"))
    if said.get(FAILED) or real.get(FAILED):
        parts.append(both(lambda a: a[FAILED]) + " failed")
    for name in replays.FIGURES[:2]:
        if name in said or name in real:
            parts.append(both(lambda a, name=name: "%.1f" % (a[name] / (1 << 20)) if name in a else "?"))
    return "; ".join(parts) + ("" if equal(answer) else " (differ)")


def summary(lines):
    rows = ["| asked | runs with room | equal | short of memory | equal |", "|---|---|---|---|---|"]
    for name, _ in questions():
        cells = [[equal(line) for line in lines if line.get("asked") == name and line["mib"] == mib] for mib in (replays.ROOM, replays.SHORT)]
        rows.append("| %s | %s |" % (name, " | ".join("%d | %d" % (len(c), sum(c)) for c in cells)))
    rows += ["", "| program, as it was | requests | each of them as replayed |", "|---|---|---|"]
    rows += ["| %s | %s | %s |" % (line["program"], format(line["requests"], ","), "no" if line["differ"] else "yes")
             for line in lines if line.get("requests")]
    return rows


def cases(lines):
    rows = []
    for name, _ in questions():
        rows += ["", "## %s" % (name[0].upper() + name[1:]), "", "| program | on %d MiB | on %d MiB |" % (replays.ROOM, replays.SHORT), "|---|---|---|"]
        asked = {(line["seed"], line["mib"]): line for line in lines if line.get("asked") == name}
        rows += ["| %d | %s |" % (seed, " | ".join(cell(asked[seed, mib]) for mib in (replays.ROOM, replays.SHORT)))
                 for seed in sorted({seed for seed, _ in asked})]
        for (seed, mib), line in sorted(asked.items()):
            if not equal(line):
                rows += ["", "Program %d on %d MiB: %s." % (seed, mib, line.get("why") or "; ".join(
                    "%s %s, really %s" % (key, line["said"].get(key), value) for key, value in line["real"].items() if line["said"].get(key) != value))]
    return rows[1:]


def write(page, rows):
    path = os.path.join(mt.TOP, "docs", page)
    with open(path, encoding="utf-8") as file:
        before, rest = file.read().split(BEGIN)
    with open(path, "w", encoding="utf-8") as out:
        out.write(before + BEGIN + "\n".join(rows) + "\n" + END + rest.split(END)[1])


if sys.argv[1:2] == ["--run"]:
    asked = sys.argv[2:]
    run([int(word) for word in asked if word.isdigit()] if asked else SEEDS, [p for p in PROGRAMS if not asked or p[0] in asked])
elif sys.argv[1:2] == ["--table"]:
    with open(sys.argv[2], encoding="utf-8") as log:
        said = [json.loads(line) for line in log]
    write("whatif.md", summary(said))
    write("REPLAYED.md", cases(said))
else:
    mt.main()
