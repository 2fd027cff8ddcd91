"""What commands say of one trace's growth agrees: report and its JSON, Markdown and findings for CI, leaks, live, the page, diff with itself, peak
--fit, and what a report that finds nothing may not overlook.

The truth is not asked here (strangers.py), but one judgement for all: the same owners, bytes, rates, certainty and forecasts.
"""
import json
import os
import re

import browser
import mt
from growing import COLLECTED

ENV = {"COLUMNS": "400"}
GROWS = ("leak", "grows", "backlog")
OUTLOOKS = {"leak": ("leaks",), "grows": ("grows", "collected"), "backlog": ("backlog",)}
PART = 0.1  # of a kind's peak: more of it over the second half is not "nothing"
LEAST = 8 << 20  # a rise by less is in no headline
NEW = 0.002  # of a kind's peak: a stretch whose least is so much above all before it rises to what it never was
BEFORE = "blocks from before the recording"
APART = {"heap": "<frozen importlib", "device": BEFORE, "pool": BEFORE}
FALL = 0.05  # of the run: in which a program frees all as it ends
CLOSE = 1e-6
HOST = ("heap", "map", "pinned")
UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
GROWS_BY = re.compile(r": ([\d.]+ \w+)(?: since [^,]+)?(?:, ([\d.]+ \w+) more each (step|second)| within ([\d.e-]+) s), (\w+)")
FULL = 48  # of the 50 lines that report --all has at most: what is no cause of the failure may be left out
DIFFER = "opinions differ"


def ask(path, command, *options):
    done = mt.execute([mt.MEMTRACE, command, *options, path], env=mt.clean_env(**ENV))
    mt.check(done.status in (0, 1), "%s: %s" % (command, done))
    return done.out


def asked(path, command, *options):
    return json.loads(ask(path, command, *options, "--json"))


def plain(text):
    """Without line breaks, and without what Markdown and CI put before signs."""
    return " ".join(re.sub(r"\\(?=[^A-Za-z0-9\s])", "", text).split())


def near(a, b, name):
    mt.check((a is None) == (b is None) and (a is None or abs(a - b) <= CLOSE * max(abs(a), abs(b))), "%s: %s and %s" % (name, a, b))


def claims(report):
    """What is said to grow."""
    return [c for c in report["verdicts"] + report["facts"] if c["kind"] in GROWS]


# ---- each command ----------------------------------------------------------------------------------------------------


def check_texts(path, report):
    """Every claim stands word by word in the full screen, in Markdown, and in what CI gets."""
    screen = ask(path, "report", "--all")
    texts = {"the screen": plain(screen), "Markdown": plain(ask(path, "report", "--format", "markdown"))}
    for one in claims(report):
        for name, text in texts.items():
            told = any(words % one["sites"][0] in text for words in ("what grew (%s", "%s grew by")) or screen.count("\n") >= FULL
            if name == "the screen" and one in report["facts"] and (report["verdicts"] or report["status"] != "ok") and told:
                continue  # below causes, or beside none that is known, "no leak" says it, and a fact is left out where a page is full
            mt.check(plain(one["evidence"]) in text, "%s is not in %s: %s" % (one["evidence"], name, text[:3000]))
    shape = re.search(r"shape (\w+): ([\d.]+ \w+)/", texts["the screen"])
    for one in claims(report):
        grows = GROWS_BY.search(one["evidence"])
        if shape and grows and shape.group(2) == grows.group(2):
            mt.equal(shape.group(1), grows.group(5), "shape of one growth in two places: %s" % one["evidence"])
    said = [r["message"]["text"] for r in json.loads(ask(path, "report", "--format", "sarif"))["runs"][0]["results"]]
    for one in claims(report):
        mt.check(any(plain(one["evidence"]) in plain(s) for s in said), "CI is not told of %s: %s" % (one["evidence"], said))


def check_headline(path, report):
    """It says healthy only where nothing is said to grow anywhere, and names what a claim names."""
    head = plain(ask(path, "report").split("\nHOST MEMORY")[0])
    said = claims(report)
    if "nothing goes on growing" in head:
        mt.equal(said, [], "claims beside a headline that has none: %s" % head)
        check_nothing(path, head)
    if "only grew" in head or "keeps more and more" in head or "falls behind" in head:
        mt.check(any(place_of(one) in head for one in said) or not said, "the headline names another: %s, %s" % (head, said))


def place_of(claim):
    """list.py:4 of "list.py:4 <module>"."""
    return claim["sites"][0].split(" ")[0] if claim["sites"] else ""


def name_of(site):
    """What report calls it: its label, or the first frame of the program's own, Python before the rest."""
    frames = site["stack"]
    return ["%s:%s" % (os.path.basename(f["file"] or ""), f["line"]) for f in frames]


def stands_in(frame, name):
    """Whether the name of a line or function, or of a place in a library without symbols, is this frame's."""
    return frame["function"].split("(")[0] in name if frame["function"] else os.path.basename(frame["library"] or "?") + "+0x" in name


def check_leaks(path, report):
    """Each claim is a row of leaks, with its outlook and certainty, and what leaks says of all that grow at its pace; and nothing leaks of which report
    does not know."""
    leaks = asked(path, "leaks", "--by", "site")
    rows = grown(leaks)
    for one in leaks["groups"]:
        mine = [s for s in rows if s["group"] == one["group"]]
        near(one["grown_bytes_all"], sum(s["grown_bytes_all"] for s in mine), "bytes of a group and of its sites")
        near(one["slope_bytes_per_step"] or 0, sum(s["slope_bytes_per_step"] or 0 for s in mine), "rate of a group and of its sites")
    for one in claims(report):
        if " files in /dev/shm, " in one["evidence"]:  # these are no process's memory, and no site's
            mt.equal(leaks["shm"] and [leaks["shm"]["site"]], one["sites"], "the line that leaks says makes files")
        elif one["sites"]:
            several = one["device"] != "host" and len(report["devices"]) > 1  # one line may be a row for each, or one for all
            check_of_one(one, [asked(path, "leaks", "--by", "site", "--device", d) for d in devices_named(report, one["device"])] if several else [leaks])
    for host in (True, False):
        check_total(path, report, host, [g for g in leaks["groups"] if (g["memory"] in HOST) == host])


def devices_named(report, name):
    """How to ask for them: processes may give one name to several."""
    of = sorted({d["uuid"] for d in report["devices"] if d["uuid"] and name in [alias.split(":", 1)[1] for alias in d["aliases"]]})
    return of if len(of) > 1 else [name]


def check_of_one(claim, leaks):
    """What is claimed is what leaks says of one of the devices."""
    for i, one in enumerate(leaks):
        try:
            return check_claim(claim, one)
        except mt.Fail:
            if i + 1 == len(leaks):
                raise


def grown(leaks):
    return [s for s in leaks["sites"] if s["outlook"] in sum(OUTLOOKS.values(), ()) and not s["suppressed"]]


def check_claim(one, leaks):
    """What it says of its line is what leaks says of the line's group. What attempts left need not grow: the line is one of leaks' all the same."""
    said = GROWS_BY.search(one["evidence"])
    of_attempts = not said and one["kind"] == "leak"
    rows = leaks["sites"] if of_attempts else grown(leaks)
    mine = [s for s in rows if (s["memory"] in HOST) == (one["device"] == "host") and
            (place_of(one) in name_of(s) or any(stands_in(f, one["sites"][0]) for f in s["stack"]) or
             (one["sites"][0] == "(no stack)" and not s["stack"]))]
    mt.check(mine, "leaks does not know %s: %s" % (one["evidence"], [(name_of(s)[:4], s["outlook"]) for s in rows]))
    if of_attempts:
        return
    mine = [s for s in mine if s["outlook"] in OUTLOOKS[one["kind"]]]
    mt.check(mine, "%s is none of that in leaks" % one["evidence"])
    if not said:
        return  # a backlog
    size, rate, unit, seconds, shape = said.groups()
    alike = {s["group"]: [r for r in rows if r["group"] == s["group"]] for s in mine}
    fits = [group for group, all_of in alike.items() if says(size, sum(r["grown_bytes_all"] for r in all_of))]
    mt.check(fits, "%s, by leaks: %s" % (one["evidence"], {g: sum(r["grown_bytes_all"] for r in all_of) for g, all_of in alike.items()}))
    all_of = alike[fits[0]]
    if seconds:
        mt.equal({r["slope_bytes_per_s"] for r in all_of}, {None}, "rates of %s" % one["evidence"])
        largest = max(all_of, key=lambda r: r["grown_bytes_all"])
        mt.between(0.94 * float(seconds), largest["grew_for_s"], 1.06 * float(seconds), "how long it grew, of %s" % one["evidence"])
    else:
        by = sum(r["slope_bytes_per_step"] if unit == "step" else r["slope_bytes_per_s"] * r["growing_processes"] for r in all_of)
        mt.check(all_of[0]["growing_processes"] > 1 or says(rate, by), "rate of %s, by leaks: %s" % (one["evidence"], by))
    mt.equal(shape, max(all_of, key=lambda r: r["grown_bytes_all"])["kind"], "shape of %s" % one["evidence"])
    for group in leaks["groups"]:
        if group["group"] == fits[0]:
            mt.equal((one["certainty"], group["little"]), (group["certainty"], False), "certainty of %s, and that it matters" % one["evidence"])
            ends = re.search(r"memory ends at step ([\d,]+)", one["evidence"])
            mt.check(not ends or abs(int(ends.group(1).replace(",", "")) - group["runs_out_at_step"]) < 1, "forecast of %s, by leaks: %s" % (one["evidence"], group))


def check_total(path, report, host, groups):
    """A verdict has all that leaks there and matters."""
    said = [v for v in report["verdicts"] if v["kind"] == "leak" and (v["device"] == "host") == host and GROWS_BY.search(v["evidence"])]
    all_bytes = sum(g["grown_bytes_all"] for g in groups if not g["little"])
    spaces = {v["device"] for v in report["verdicts"] + report["ruled_out"] if (v["device"] == "host") == host}
    if said and len(spaces) == 1:
        mt.between(said[0]["bytes"] - 1, all_bytes, said[0]["bytes"] + 1 + sum(g["sites"] for g in groups), "bytes of what leaks, in leaks and %s" % said[0]["evidence"])
    no = [r["evidence"] for r in report["ruled_out"] if r["kind"] == "leak" and (r["device"] == "host") == host]
    known = said or no or [v for v in report["verdicts"] if v["kind"] == "leak"]
    mt.check(not all_bytes or known, "%s: leaks has %s" % (path, groups))


def says(text, value):
    """"51.0 MiB", of bytes."""
    figure, unit = text.split()
    of = UNITS.index(unit)
    return abs(float(figure) - value / 1024 ** of) <= (0.051 if "." in figure else 0.51)


def check_live(path, report):
    """The rate and the forecast of the track that live names are those of report."""
    live = json.loads(ask(path, "live", "--json").strip().splitlines()[-1])
    steps = report["steps"]
    unit = re.search(r" by [^,;]* a (step|second)", live["growth"] or "")
    mt.check(not unit or live["growth_bytes_per_step" if unit[1] == "step" else "growth_bytes_per_s"] is not None, "unit of %s" % live)
    mt.check(" runtime's own heap" not in (live["growth"] or "") or not claims(report) or any(COLLECTED in c["evidence"] for c in claims(report)),
             "%s, and report: %s" % (live["growth"], claims(report)))
    mapped = [c for c in claims(report) if "more of mapped memory " in c["evidence"]]
    mt.check(not re.match("map (?!is a runtime's)", live["growth"] or "") or not mapped or any(COLLECTED not in c["evidence"] for c in mapped),
             "%s, and report: %s" % (live["growth"], mapped))
    found = re.match(r"(\S+(?: pool)?) (?:grows|fills|falls behind|is a runtime's own heap, larger) by", live["growth"] or "")
    if not steps or not found or live["growth_bytes_per_step"] is None or live["growth_pid"] != steps["pid"]:
        return  # a report's steps are those of one process
    growth = steps["growth"].get(found.group(1))
    if not growth or (" fills by " in live["growth"] and growth["kind"] in ("none", "jump")):
        return  # what only loads does not grow by steps
    near(live["growth_bytes_per_step"], growth["bytes_per_step"], "rate of %s in live and report" % found.group(1))
    if found.group(1) == "host":
        near(live["runs_out_at_step"], growth["runs_out_at_step"] and growth["runs_out_at_step"]["at"], "forecast in live and report")


def check_diff(path, report):
    """A trace is as itself; its steps grow as report says."""
    done = mt.execute([mt.MEMTRACE, "diff", "--json", path, path], env=mt.clean_env(**ENV))
    mt.equal(done.status, 0, "diff: %s" % done)
    diff = json.loads(done.out)
    for key, rows in diff.items():
        for row in rows if isinstance(rows, list) else []:
            for name, value in row.items() if isinstance(row, dict) else ():
                mt.check(not name.startswith("change") or not value, "diff with itself: %s %s" % (key, row))
    for row in diff["steps"]:
        if row["figure"] == "growth a step" and row["before_bytes"]:
            rate = report["steps"]["growth"][row["name"]]["bytes_per_step"]
            mt.check(abs(row["before_bytes"] - rate) <= 0.5, "growth of %s in diff and report: %s, not %s" % (row["name"], row["before_bytes"], rate))


def check_fit(path, report):
    """What was needed is the peak."""
    for one in asked(path, "peak", "--fit", "1K")["fit"]:
        if one["device"] == "host":
            mt.equal(one["needed_bytes"], report["host"]["peak_bytes"], "what peak --fit says was needed")


def check_page(path, report):
    """The page holds report's JSON, and of each owner what leaks says."""
    page = browser.page(path)
    raw = browser.ask(page, "return { report: memtrace.data.report, growing: memtrace.data.raw.growing }")
    for key in ("verdicts", "facts", "ruled_out"):
        mt.equal(rounded(raw["report"][key]), rounded(report[key]), "%s of the page" % key)
    mt.equal(rounded((raw["report"]["steps"] or {}).get("growth")), rounded((report["steps"] or {}).get("growth")), "growth of steps on the page")
    for one in claims(report):
        mine = [g for g in raw["growing"] if one["sites"] and place_of(one) in (g["where"] or g["name"])]
        if mine and " at the same pace" not in one["evidence"]:
            most = max(mine, key=lambda g: g["grown_bytes"])
            mt.check(most["outlook"] in OUTLOOKS[one["kind"]], "%s is %s on the page" % (one["evidence"], most["outlook"]))
            mt.equal(most["certainty"], one["certainty"], "certainty of %s on the page" % one["evidence"])


def rounded(o):
    """The page has twelve digits of a number."""
    if isinstance(o, dict):
        return {key: rounded(value) for key, value in o.items()}
    return [rounded(value) for value in o] if isinstance(o, list) else float("%.9g" % o) if isinstance(o, float) else o


# ---- what may not be overlooked ---------------------------------------------------------------------------------------


def rose(points):
    """Bytes by which the low points of a series rose over its second half, if they went on to: above all that was in the first half, and to what
    they never were before in half of its stretches, also in the last quarter. What is freed in the final fall was there until then; what lies
    before its first allocation is no part of it. Also the peak, and the two moments between which it rose."""
    first = next((i for i, p in enumerate(points) if p["high_bytes"]), 0)
    points = points[first:]
    high = [p["high_bytes"] for p in points]
    peak = max(high, default=0)
    fall = int(len(high) * (1 - FALL))
    end = max((i for i, h in enumerate(high) if i >= fall and h >= 0.9 * max(high[fall:])), default=0)
    low = [p["low_bytes"] for p in points[:end + 1]]
    if len(low) < 16:
        return 0, peak, ()
    # of a stretch the least, so that what comes and goes within it does not count
    stretch = max(len(low) // 16, 1)
    least = [min(range(i, i + stretch), key=low.__getitem__) for i in range(0, len(low) - stretch + 1, stretch)]
    parts = [low[i] for i in least]
    news = [i for i in range(1, len(parts)) if parts[i] - max(parts[:i]) > NEW * peak]
    late, latest = ([i for i in news if i >= part * len(parts)] for part in (0.5, 0.75))
    most = max(range(len(parts) // 2), key=parts.__getitem__)
    moments = [points[least[i]]["time_s"] for i in (most, -1)]
    return (max(parts[-1] - parts[most], 0) if len(late) >= len(parts) / 4 and latest else 0), peak, moments


def apart(path, kind, at):
    """Bytes of that kind, alive then, that are no growth to the report: APART."""
    words = [mt.MEMTRACE, "peak", "--json", "--force", "--by", "category", "--rows", "all", "--all-frames", "--filter", APART[kind]]
    done = mt.execute([*words, "--at", "%.9f" % at, path], env=mt.clean_env(**ENV))
    if "no stack of what was alive" in done.err:
        return 0
    mt.check(done.status in (0, 1), "%s" % done)
    return sum(s["bytes"] for s in json.loads(done.out)["sites"] if s["memory"] == kind)


def check_nothing(path, said):
    """Where a report says that nothing goes on growing, no kind of memory rose by more than a tenth of its peak over the second half, and went on.
    Imports are start-up to the report, which leaves out what was made below them: it is asked of what came behind them, and of what is not theirs.
    What a pool had when memtrace attached is in the trace from when the pool told it."""
    started = max((p["end_s"] for p in asked(path, "report", "--force")["phases"] if p["name"] == "imports"), default=0)
    for series in asked(path, "timeline", "--force")["series"]:
        if series["process"] is not None or series["kind"] not in ("heap", "pinned", "device", "pool"):
            continue  # one process may begin late; address space is not memory
        more, peak, moments = rose([p for p in series["points"] if p["time_s"] >= started])
        least = max(PART * peak, LEAST)
        if more > least and series["kind"] in APART:
            then, now = (apart(path, series["kind"], at) for at in moments)
            more -= max(now - then, 0)
        mt.check(more <= least, "%s says nothing goes on growing, and %s %s of %s rose by %d of %d bytes over its second half" %
                 (path, series["kind"], series["device"] or "", series["name"], more, peak))


# ---- all ---------------------------------------------------------------------------------------------------------------


def check_all(path, page=True):
    """Raises mt.Fail, with DIFFER before what differs."""
    try:
        check_each(path, page)
    except mt.Fail as differs:
        mt.fail("%s: %s" % (DIFFER, differs))


def check_each(path, page):
    report = asked(path, "report")
    check_texts(path, report)
    check_headline(path, report)
    check_leaks(path, report)
    check_live(path, report)
    check_diff(path, report)
    check_fit(path, report)
    if page:
        check_page(path, report)
