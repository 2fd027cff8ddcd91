"""What a report says of the failures on a device, its ledger and its verdicts, against the program's own account and the driver's.
"""
import re

import goldens
import gpu
import mt
import screen

ROWS = ("pool_allocated", "pool_free", "other_own", "other_processes", "free", "unexplained")
FACTS = ("requested_bytes", "free_bytes", "total_bytes", "allocated_bytes", "reserved_bytes", "largest_hole_bytes", "outcome")


def device(done, number=0):
    for one in done.trace.report["devices"]:
        if one["name"] == "cuda:%d" % number:
            return one
    mt.fail("no cuda:%d in the report of %s" % (number, done))


def adds_up(ledger):
    mt.equal(sum(ledger[row] or 0 for row in ROWS), ledger["total"], "sum of %s" % ledger)


def is_explained(ledger):
    adds_up(ledger)
    mt.equal(ledger["unexplained"], 0, "what is not explained in %s" % ledger)


def compare_ooms(done, keys=FACTS):
    """Each failure in the report is one of the program's, with its circumstances."""
    ooms, wanted = device(done)["ooms"], done.account["ooms"]
    mt.equal((len(ooms), device(done)["num_ooms"]), (len(wanted), len(wanted)), "failures")
    for oom, facts in zip(ooms, wanted):
        for key in keys:
            mt.equal(oom[key], facts[key], key)
    return ooms


def compare_ledger(oom, alone=True):
    """Its rows add up to the device, and say what the driver charged at that moment. ALONE: of one traced process."""
    ledger = oom["ledger"]
    is_explained(ledger)
    mt.equal(ledger["free"], oom["free_bytes"])
    if alone:
        mt.equal(ledger["pool_allocated"], oom["allocated_bytes"])
        mt.equal(ledger["pool_free"], oom["reserved_bytes"] - oom["allocated_bytes"])


def compare_refusals(done, oom):
    """They are what the driver refused last, before anything succeeded again: other refusals were retries that helped."""
    mine = [e for e in done.log if e["pid"] == oom["pid"]]
    given = max(i for i, e in enumerate(mine) if e["op"] == "alloc")
    mt.equal([r["bytes"] for r in oom["refusals"]], [e["bytes"] for e in mine[given:] if e["op"] == "fail"], "driver calls that failed for it")


# ---- verdicts -------------------------------------------------------------------------------------------------


def certain(done, where=None):
    """Kinds of the verdicts that are worth a line; of one device, or "host"."""
    return [v["kind"] for v in done.trace.report["verdicts"] if v["certainty"] != "low" and where in (None, v["device"])]


def held(done, kind, where="cuda:0"):
    found = [v for v in done.trace.report["verdicts"] if v["kind"] == kind and v["device"] == where]
    mt.check(found, "no verdict %s: %s" % (kind, [(v["kind"], v["evidence"]) for v in done.trace.report["verdicts"]]))
    mt.check(found[0]["evidence"] and found[0]["certainty"] != "low", "%s is not certain: %s" % (kind, found[0]))
    return found[0]


def ruled_out(done, *kinds):
    there = {r["kind"]: r["evidence"] for r in done.trace.report["ruled_out"] if r["device"] == "cuda:0"}
    for kind in kinds:
        mt.check(there.get(kind), "%s is not ruled out: %s" % (kind, sorted(there)))


def one_cause(done):
    """The program's own verdict is the only one; it comes behind the failure on a screen of its size, and is returned."""
    wanted = done.account["verdict"]
    verdict, text = held(done, wanted), screen_of(done)
    mt.equal(certain(done, "cuda:0"), [wanted], "verdicts")
    mt.equal(done.trace.report["status"], "problem")
    mt.equal(device(done)["ooms"][-1]["verdict"], wanted, "the failure's verdict")
    mt.check(text.index("OUT OF MEMORY") < text.index("WHY") < text.index("\nWHAT TO DO\n"), "the failure comes first, then why: %s" % text)
    compare_summary(done, verdict)
    return verdict, text


def compare_summary(done, verdict):
    """At 80x24: the same failure, the same first cause, what to do about it, and nothing that does not fit."""
    text = done.trace.summary()
    goldens.fits(text, 80, 24)
    full, seen = screen.Screen(done.trace.text), screen.Screen(text)
    title = re.search(r"^OUT OF MEMORY  \S+ \S+ \((?:\S+, )?(.*)$", full.text, re.M)
    mt.check(title and re.search(r"^OUT OF MEMORY  \S+ \S+ \((?:\S+, )?%s$" % re.escape(title[1]), text, re.M), "the failure: %s" % text)
    wanted, (kind, _, figure, certainty) = full.why()[0][0], seen.why()[0][0]
    mt.equal((kind, figure.text, certainty), (wanted[0], wanted[2].text, wanted[3]), "the first cause")
    mt.equal(kind, verdict["kind"].replace("_", " "))
    words = " ".join(" ".join(seen.section("^WHAT TO DO$")[1]).split())
    mt.check(not verdict["advice"] or words.startswith("1 " + verdict["advice"][:60]), "advice: %s" % words)
    mt.check("memtrace peak --at oom" in text, "what to ask next: %s" % text)


def screen_of(done):
    text = done.trace.text
    lines = text.splitlines()
    mt.check(len(lines) <= 50, "the screen has %d lines" % len(lines))
    mt.check(max(map(len, lines)) <= 100, "a line of the screen has %d columns" % max(map(len, lines)))
    return text


def near(got, wanted, part, what):
    mt.check(abs(got - wanted) <= part * wanted, "%s: %s is not near %s" % (what, got, wanted))
