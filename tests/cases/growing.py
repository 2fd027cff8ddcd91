#!/usr/bin/env python3
"""Growing, or filling? Pairs of programs: what fills and ends, or kept more in its warm-up only, is no leak; what grows by each unit of work, in one
block, in several processes, or for very long, is one. Report, leaks and live are of one opinion, and bytes and rates are the program's own. All
languages: tests/long/growing.py."""
# timeout: 180
import functools
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import gpu
import mt
from growing import SICK, limited, opinions_of, record

LONG = 26  # seconds of growth: more than analyzer/outlook.h asks for


@functools.lru_cache(None)
def run(language, form):
    done = record(language, form, env={"LONG": str(LONG)})
    done.account = gpu.account(done.out)
    return done


def leak_of(done):
    verdict, = [v for v in done.trace.report["verdicts"] if v["kind"] == "leak"]
    return verdict


def of_site(done):
    """What leaks says of the site that grew most."""
    return max((s for s in done.trace.sites("leaks") if s["outlook"] != "none"), key=lambda s: s["grown_bytes_all"])


@mt.variants(("c", "fill"), ("c", "map"), ("c", "works"), ("c", "warmup"), ("c", "keeps"), ("c", "block"), ("c", "shared"), ("c", "private"),
             ("c", "file"), ("c", "forks"), ("c", "stages"), ("c", "renews"), ("c", "turns"), ("c", "loads"), ("c++", "fill"), ("c++", "block"),
             ("c++", "filled"), ("c++", "pushes"), ("python", "fill"),
             ("pools", "piles"), ("pools", "closes"), ("pools", "pooled"), ("extension", "keeps"), ("extension", "frees"),
             ("python", "map"), ("python", "warmup"), ("python", "keeps"), ("python", "block"), ("perl", "fill"), ("perl", "map"))
def case_one_opinion(language, form):
    mt.need(language if language == "perl" else "cc")
    opinions = opinions_of(run(language, form).trace)
    mt.equal(set(opinions.values()), {form in SICK}, "opinions %s" % opinions)


@mt.variants(("c", "keeps"), ("c", "block"), ("c", "stages"), ("c", "turns"), ("extension", "keeps"), ("python", "keeps"))
def case_figures(language, form):
    """Bytes within 2 %, the rate by time within 5 % of the program's own."""
    done = run(language, form)
    kept, seconds = done.account["kept_bytes"], done.account["seconds"]
    site = of_site(done)
    if (language, form) != ("python", "keeps"):  # the interpreter has other stacks for the first 16 of 600 turns, which leaks tells apart
        mt.between(0.98 * kept, site["grown_bytes_all"], 1.02 * kept, "bytes that grew")
    mt.between(0.95 * kept / seconds, site["slope_bytes_per_s"], 1.05 * kept / seconds, "bytes a second")
    mt.between(0.98 * kept, leak_of(done)["bytes"], 1.02 * kept, "bytes of the verdict")


def case_in_bursts():
    """A line through what a vector had when it was full, which is the rate of what is put into it, and through the stages' beginnings."""
    done = run("c++", "block")
    rate = done.account["kept_bytes"] / done.account["seconds"]
    mt.between(0.95 * rate, of_site(done)["slope_bytes_per_s"], 1.05 * rate, "bytes a second that are put into the vector")
    for language, form in (("c++", "block"), ("c", "stages")):
        mt.check(" bursts, " in leak_of(run(language, form))["evidence"], leak_of(run(language, form))["evidence"])


def case_several_processes():
    """Four that leak at one line: all of them, and what they have together."""
    done = run("c", "forks")
    verdict, site, kept = leak_of(done), of_site(done), 4 * 60_000_000
    mt.between(0.98 * kept, verdict["bytes"], 1.02 * kept, "bytes of the verdict")
    mt.check("of each of 4 processes" in verdict["evidence"], verdict["evidence"])
    mt.equal(site["growing_processes"], 4, "processes")
    mt.check("each of 4 processes" in done.trace.tool("leaks").out, "leaks does not say how many")
    said = done.trace.tool("live").out.strip().splitlines()[-1]
    mt.check("host grows by 390.7 KiB a step in 4 processes together" in said or "host grows by 390.6 KiB a step in 4 processes together" in said, said)


def case_extension():
    """Of what a C extension loses its own function and line are named beside the line of Python that called it; of Python's own blocks none."""
    verdict = leak_of(run("extension", "keeps"))
    mt.check("made by extension.py:14 serve in libkeeper.c:10 make:" in verdict["evidence"], verdict["evidence"])
    mt.check("libkeeper.c:10 make" in verdict["advice"], verdict["advice"])
    mt.check("made by grows.py:19 keep:" in leak_of(run("python", "keeps"))["evidence"], leak_of(run("python", "keeps"))["evidence"])


def case_processes_that_pile_up():
    """Where they are started, how many there are, and what they have together."""
    done = run("pools", "piles")
    verdict, = [v for v in done.trace.report["verdicts"] if v["kind"] == "processes"]
    pile, kept, workers = done.trace.json("leaks")["pile"], done.account["kept_bytes"], done.account["workers"]
    mt.check("%d processes" % workers in verdict["evidence"] and "pools.py:30 Pool.__init__" in verdict["evidence"], verdict["evidence"])
    mt.between(0.98 * kept, verdict["bytes"], 1.05 * kept, "bytes of the verdict: tables, and what a worker needs itself")
    mt.equal((pile["processes"], pile["batches"], pile["bytes"]), (workers, 6, verdict["bytes"]), "leaks")
    for form in ("closes", "pooled"):
        mt.equal(run("pools", form).trace.json("leaks")["pile"], None, form)


def case_forecast_of_a_limit():
    """A run under ulimit -v is told from three fifths of it when it ends; the one that went on names the limit that it met."""
    limit = "ulimit -v 240000; "  # of which the ring, whose size depends on the machine, is a small part
    failed = limited([mt.program("grows"), "keeps", "100000"], limit)
    units = gpu.account(failed.out)["units"]
    mt.equal(failed.status, 1, "status")
    verdicts = {v["kind"]: v for v in failed.trace.report["verdicts"]}
    mt.check("limit" in verdicts and "ulimit -v" in verdicts["limit"]["evidence"], "%s" % verdicts)
    for prefix, ends in ((limit, True), ("", False)):
        begun = limited([mt.program("grows"), "keeps", str(3 * units // 5)], prefix)
        site = of_site(begun)
        mt.equal(begun.status, 0, "status")
        if ends:
            mt.between(0.9 * units, site["runs_out_at_step"], 1.1 * units, "the step that %d of them foretell" % (3 * units // 5))
        else:
            mt.check((site["runs_out_at_step"] or 1e9) > 10 * units, "without a limit: %s" % site["runs_out_at_step"])


def case_why_not():
    """The screens say which it is, and what would tell them apart."""
    for form, said in (("fill", "to the end of only"), ("warmup", "while it began, and not since")):
        why, = [r["evidence"] for r in run("c", form).trace.report["ruled_out"] if r["kind"] == "leak"]
        mt.check(said in why and "grows.c" in why, "%s: report says %r" % (form, why))
        text = " ".join(run("c", form).trace.tool("leaks").out.split())
        mt.check("no site grew steadily" in text and said in text, "%s: leaks says %r" % (form, text[:600]))
    mt.check("would tell" in " ".join(run("c", "fill").trace.tool("leaks").out.split()), "what would tell it")


PIECES = 150
BUILDS = """import time
def temporary(n): return len(bytes(n))
def build(kept):
""" + "".join("    kept.append(bytes(1_000_000)); temporary(2_000_000); time.sleep(0.02)\n" for _ in range(PIECES))


def case_one_large_piece_of_work():
    """A library builds what it returns, array by array, and frees more than it keeps; but none of that is made twice by one stack."""
    place = os.path.join(mt.scratch("once"), "site-packages")
    os.mkdir(place)
    with open(os.path.join(place, "builds.py"), "w", encoding="ascii") as file:
        file.write(BUILDS)
    code = "import builds\ndef main():\n    kept = []\n    builds.build(kept)\n    print(sum(map(len, kept)))\nmain()"
    done = mt.shimmed([mt.python(), "-B", "-c", code], env={"PYTHONPATH": place})
    mt.equal(done.out.split(), [str(PIECES * 1_000_000)], "what it kept")
    mt.equal(set(opinions_of(done.trace.settle()).values()), {False}, "opinions")


def case_very_long():
    """Nothing else is freed, but it goes on: a leak, of medium certainty. A part of it may be taken for the program's start."""
    done = run("python", "long")
    verdict, site = leak_of(done), of_site(done)
    mt.equal((verdict["certainty"], site["outlook"]), ("medium", "lasts"), "certainty, outlook")
    mt.check("may only fill" in verdict["evidence"] and "each" in verdict["evidence"], verdict["evidence"])
    mt.between(0.8 * done.account["kept_bytes"], verdict["bytes"], 1.02 * done.account["kept_bytes"], "bytes")
    mt.equal(set(opinions_of(done.trace).values()), {True}, "opinions")


mt.main(at_once=4)
