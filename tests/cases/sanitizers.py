#!/usr/bin/env python3
"""Programs built with a sanitizer run as without memtrace: output, status, and every line of a report. They are not recorded, and that is said."""
import os
import re
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

KINDS = {"address": ["none", "over", "late", "twice", "aligned", "status", "huge", "leak", "child"], "thread": ["none", "race", "child", "late", "twice"],
         "leak": ["none", "leak", "child"], "undefined": ["none", "undefined", "leak", "child"]}
VARIANTS = [(compiler, which) for compiler in ("gcc", "clang") for which in KINDS]


def build(compiler, which):
    path = os.path.join(mt.scratch("sanitized"), "sanitized")
    done = mt.execute([mt.need(compiler), "-std=c11", "-D_GNU_SOURCE", "-w", "-g", "-O0", "-fsanitize=" + which, "-o", path,
                       os.path.join(mt.TOP, "tests/programs/sanitized.c"), "-lpthread"])
    if done.status:
        mt.skip("%s has no -fsanitize=%s here: %s" % (compiler, which, done.err[-200:]))
    return path


def steady(text):
    """What differs between two runs: numbers of processes and threads, addresses outside of the program."""
    return re.sub(r"0x[0-9a-f]+|(?<===)\d+(?===)|(?<=pid=)\d+|(?<=tid=)\d+", "N", text)


def compare(command, **env):
    want, got = mt.plain(command, env=env), mt.shimmed(command, env=env)
    for done in (want, got):
        done.err = steady(done.err)
    mt.compare(want, got)
    return got


@mt.variants(*VARIANTS)
def case_reports_are_the_same(compiler, which):
    path = build(compiler, which)
    reports = 0
    for kind in KINDS[which]:
        reports += "ERROR: " in compare([path, kind]).err or which in ("thread", "undefined")
    mt.check(reports, "there was no report")


@mt.variants("address", "thread", "leak")
def case_left_alone_and_said(which):
    """gcc's are libraries, whose interceptors would be called by our hooks."""
    got = compare([build("gcc", which), "child"])
    report = got.trace.tool("report")
    mt.check(report.status and "with a sanitizer, left alone" in report.err, "report: %s" % report)


@mt.variants(("gcc", "undefined"), *[("clang", which) for which in KINDS])
def case_recorded(compiler, which):
    """clang's are in the program, which calls them first; that of undefined behaviour intercepts nothing."""
    mt.equal(len(compare([build(compiler, which), "child"]).trace.intact().processes), 2, "processes")


@mt.variants("address", "thread", "leak")
def case_what_it_starts_is_recorded(which):
    """The environment is the program's own: a child without a sanitizer is a root process of the same job."""
    got = compare(["sh", "-c", "'%s' none; '%s' 1000 10 10" % (build("gcc", which), mt.program("busy"))])
    got.trace.settle()
    report = got.trace.json("report")
    mt.equal((report["losses"]["unrecorded_processes"], report["losses"]["unrecorded_why"]), (1, ["sanitizer"]))
    mt.check("busy" in str(report["processes"]), "processes: %s" % report["processes"])


mt.main()
