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
from growing import SICK, opinions_of, record

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
             ("c", "file"), ("c", "forks"), ("c++", "fill"), ("python", "fill"),
             ("python", "map"), ("python", "warmup"), ("python", "keeps"), ("python", "block"), ("perl", "fill"), ("perl", "map"))
def case_one_opinion(language, form):
    mt.need(language if language == "perl" else "cc")
    opinions = opinions_of(run(language, form).trace)
    mt.equal(set(opinions.values()), {form in SICK}, "opinions %s" % opinions)


@mt.variants(("c", "keeps"), ("c", "block"), ("python", "keeps"))
def case_figures(language, form):
    """Bytes within 2 %, the rate by time within 5 % of the program's own."""
    done = run(language, form)
    kept, seconds = done.account["kept_bytes"], done.account["seconds"]
    site = of_site(done)
    grown, least = (leak_of(done)["bytes"], 0.97) if language == "python" else (site["grown_bytes_all"], 0.98)
    mt.between(least * kept, grown, 1.02 * kept, "bytes that grew")  # the interpreter has other stacks for the first 16 of 600 turns
    mt.between(0.95 * kept / seconds, site["slope_bytes_per_s"], 1.05 * kept / seconds, "bytes a second")
    mt.between(0.95 * kept, leak_of(done)["bytes"], 1.02 * kept, "bytes of the verdict")


def case_several_processes():
    """Four that leak at one line: all of them, and what they have together."""
    done = run("c", "forks")
    verdict, site, kept = leak_of(done), of_site(done), 4 * 60_000_000
    mt.between(0.98 * kept, verdict["bytes"], 1.02 * kept, "bytes of the verdict")
    mt.check("of each of 4 processes" in verdict["evidence"], verdict["evidence"])
    mt.equal(site["growing_processes"], 4, "processes")
    mt.check("each of 4 processes" in done.trace.tool("leaks").out, "leaks does not say how many")


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
