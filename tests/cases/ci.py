#!/usr/bin/env python3
"""--format github, sarif and junit of report, leaks and diff: what they say is what --json and --fail-over say, and names mean nothing in
them. tests/long/ci.py has programs of others read them."""
import functools
import json
import os
import re
import sys
import xml.etree.ElementTree
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../battery"))
import cases
import mt

FORMATS = ("github", "sarif", "junit")
LEAK = """
import ctypes
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
def keep():
    libc.malloc(1 << 20)
for i in range(%d):
    keep()
"""


@functools.lru_cache(None)
def battery(kind):
    path = os.path.join(mt.scratch("battery"), "t")
    cases.make(path, kind, 301, True)
    return path


@functools.lru_cache(None)
def place():
    return mt.scratch("leaking")


@functools.lru_cache(None)
def leaking(count):
    """A program in a folder, and its trace."""
    folder = place()
    path = os.path.join(folder, "a,b:100%<&>\".py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(LEAK % count)
    return folder, mt.shimmed([mt.python(), path]).trace.settle().path


def read(form, text):
    """(rule, text, file, line, fails) of each finding."""
    if form == "github":
        rows = []
        for line in text.splitlines():
            kind, fields, said = re.fullmatch(r"::(error|warning) (.*?)::(.*)", line).groups()
            fields = {k: re.sub("%([0-9A-F]{2})", lambda m: chr(int(m[1], 16)), v) for k, v in (f.split("=", 1) for f in fields.split(","))}
            rows.append((fields["title"].split(" ", 2)[2], said.replace("%25", "%"), fields.get("file"), int(fields.get("line", 0)), kind == "error"))
        return rows
    if form == "sarif":
        (one,) = json.loads(text)["runs"]
        rules = {rule["id"] for rule in one["tool"]["driver"]["rules"]}
        rows = []
        for r in one["results"]:
            mt.check(r["ruleId"] in rules, "no rule %s" % r["ruleId"])
            place = r["locations"][0]["physicalLocation"] if r["locations"] else None
            uri = re.sub("%([0-9A-F]{2})", lambda m: chr(int(m[1], 16)), place["artifactLocation"]["uri"]) if place else None
            rows.append((r["ruleId"].split("/")[2], r["message"]["text"], uri, place["region"]["startLine"] if place else 0, r["level"] == "error"))
        return rows
    suite = xml.etree.ElementTree.fromstring(text)[0]
    rows = []
    for case in suite:
        failure, out = case.find("failure"), case.find("system-out")
        if failure is not None or out is not None:
            rows.append((case.get("name"), failure.get("message") if failure is not None else out.text, case.get("file"), int(case.get("line", 0)), failure is not None))
    mt.equal((suite.get("failures"), suite.get("tests")), (str(sum(row[4] for row in rows)), str(len(rows) or 1)), "its counts")
    return rows


def ask(form, *words, cwd=None):
    done = mt.execute([mt.MEMTRACE, words[0], "--format", form, *words[1:]], cwd=cwd)
    return done.status, read(form, done.out), done.err


@mt.variants(*FORMATS)
def case_report_has_failures_and_causes(form):
    for kind in ("capacity", "leak", "copies"):
        status, rows, err = ask(form, "report", battery(kind))
        mt.equal((status, err), (0, ""))
        page = json.loads(mt.execute([mt.MEMTRACE, "report", "--json", battery(kind)]).out)
        ooms = sum(len(d["ooms"]) for d in page["devices"])
        mt.equal([row[0] for row in rows if row[0] != "nearly full"], ["out of memory"] * ooms + [v["kind"] for v in page["verdicts"] + page["facts"]])
        for verdict in page["verdicts"]:
            mt.check(any(verdict["evidence"] in row[1] and verdict["advice"] in row[1] and row[4] for row in rows), rows)
        for fact in page["facts"]:
            mt.check(any(fact["evidence"] in row[1] and not row[4] for row in rows), rows)


@mt.variants(*FORMATS)
def case_leaks_fails_where_the_limit_does(form):
    folder, trace = leaking(40)
    status, rows, err = ask(form, "leaks", "--fail-over", "10M", trace, cwd=folder)
    mt.equal(status, 1)
    over = [row for row in rows if row[4]]
    mt.equal([row[0] for row in over], ["alive over the limit"])
    mt.check("memtrace: leaks: " + over[0][1] in err, (over, err))
    status, rows, err = ask(form, "leaks", "--fail-over", "100M", trace, cwd=folder)
    mt.equal((status, [row for row in rows if row[4]], err), (0, [], ""))


@mt.variants(*FORMATS)
def case_diff_names_the_line(form):
    """Relative to where it is run, as CI systems know files; whatever the file is called."""
    folder, more = leaking(40)
    status, rows, err = ask(form, "diff", "--fail-over", "10M", leaking(2)[1], more, cwd=folder)
    mt.equal(status, 1)
    over = [row for row in rows if row[4]]
    mt.equal(len(over), err.count("memtrace: diff: "), "limits exceeded")
    mt.check(over and all("memtrace: diff: " + row[1] in err for row in over), (over, err))
    mt.check(("a,b:100%<&>\".py", 6) in [row[2:4] for row in rows], rows)
    status, rows, _ = ask(form, "diff", "--fail-over", "10M", more, more)
    mt.equal((status, rows), (0, []))


def case_wrong_usage():
    for command, names in (("report", "markdown, github"), ("leaks", "github"), ("diff", "github")):
        traces = [battery("leak")] * (2 if command == "diff" else 1)
        done = mt.execute([mt.MEMTRACE, command, "--format", "html", *traces])
        mt.check(done.status == 2 and "unknown value 'html'; there are %s" % names in done.err, done)
        done = mt.execute([mt.MEMTRACE, command, "--format", "sarif", "--json", *traces])
        mt.check(done.status == 2 and "not with --json" in done.err, done)


mt.main()
