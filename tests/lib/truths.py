"""Programs as users write them (tests/programs/truth: one file, the default stream), each with its truth in its head: what report says of
them first, and that nothing is said of their twins. docs/TRIALS.md has what was said before, and what came of the advice."""
import functools
import os
import re
import sys

import gpu
import mt

PLACE = os.path.join(mt.TOP, "tests/programs/truth")
LATE = """import ctypes, runpy, sys, torch
del sys.argv[0]
getattr(ctypes.CDLL(None), "memtrace_start", lambda: None)()
runpy.run_path(sys.argv[0], run_name="__main__")"""
imports = True  # are those of PyTorch recorded? They take most of the time, and are nobody's cause


@functools.lru_cache(None)
def path_of(name):
    return next(path for path in (os.path.join(PLACE, name + end) for end in (".py", ".c", ".cc", ".js", ".pl", ".rs")) if os.path.exists(path))


@functools.lru_cache(None)
def source(name):
    with open(path_of(name), encoding="utf-8") as file:
        return file.read()


@functools.lru_cache(None)
def command_of(name):
    """To run it on the host; what is compiled is so as users do."""
    path, end = path_of(name), path_of(name).rsplit(".", 1)[1]
    if end == "py":
        return [mt.python() if "import numpy" in source(name) else sys.executable, path]
    if end in ("js", "pl"):
        return [mt.need({"js": "node", "pl": "perl"}[end]), path]
    program = os.path.join(mt.scratch("built"), name)
    how = [mt.need("rustc"), "-g", "-O"] if end == "rs" else [mt.need({"c": "gcc", "cc": "g++"}[end]), "-g", "-O1", "-pthread"]
    done = mt.execute([*how, "-o", program, path])
    mt.equal(done.status, 0, done.err)
    return [program]


def on_device(name):
    return "import torch" in source(name)


@functools.lru_cache(None)
def run(name, *arguments):
    path = path_of(name)
    if on_device(name):
        start, env = ([], {}) if imports else (["-c", LATE], {"MEMTRACE_PAUSED": "1"})
        done = gpu.run([gpu.python(), *start, path, *arguments], env=env, timeout=300, **gpu.settings_of(path))
    else:
        done = mt.shimmed([*command_of(name), *arguments], timeout=100)
    mt.check(os.path.isdir(done.trace.path), "%s left no trace: %s" % (name, done.err[-500:]))
    return done


def truth(name):
    """The verdict, and the lines that must be named with it: (file, function)."""
    found = re.search(r"^(?:#|//) truth: (\w+)(?: (\S+) (.+))?$", source(name), re.M)
    return found[1], [(found[2], function) for function in found[3].split(", ")] if found[2] else []


def said(name, *arguments):
    return [v for v in run(name, *arguments).trace.report["verdicts"] if (v["device"] != "host") == on_device(name)]


def check_quiet(name, *arguments):
    done = run(name, *arguments)
    mt.equal((done.status, done.trace.report["status"]), (0, "ok"), "exit and status of %s: %s %s" % (name, said(name, *arguments), done.err[-500:]))


def check(name, twin="twin"):
    """Its truth comes first, with its lines; its twin ends, and is accused of nothing."""
    kind, lines = truth(name)
    verdicts = said(name)
    report = run(name).trace.report
    why = [(v["kind"], v["evidence"]) for v in report["ruled_out"]] + report["unknown"]
    mt.check(verdicts and verdicts[0]["kind"] == kind, "%s: said %s, not: %s" % (name, [(v["kind"], v["certainty"], v["evidence"]) for v in verdicts], why))
    text = verdicts[0]["evidence"] + " ".join(verdicts[0]["sites"]) + (verdicts[0]["advice"] or "")
    for file, function in lines:
        mt.check(re.search(r"%s:\d+ %s" % (re.escape(file), re.escape(function)), text), "%s: no %s %s in %s" % (name, file, function, text))
    check_quiet(name, twin)
    return verdicts[0]


def check_both_lines(name, first, second, passing=0):
    """Bytes and rate are of both, and each line comes with what it makes. PASSING: what the second has in the middle of a step."""
    verdict = check(name)
    of_first, of_second = [float(n) * 2**20 for n in re.findall(r"\(([\d.]+) MiB\)", verdict["evidence"])]
    due = of_first / first * second
    mt.between(0.98 * due, of_second, 1.02 * due + passing, "the second line's part of " + verdict["evidence"])
    mt.between(0.99 * verdict["bytes"], of_first + of_second, 1.01 * verdict["bytes"], "sum of " + verdict["evidence"])
    rate, of = re.search(r"([\d.]+) ([KM])iB more each step", verdict["evidence"]).groups()
    mt.between(0.95 * (first + second), float(rate) * (2**20 if of == "M" else 2**10), 1.05 * (first + second), "rate in " + verdict["evidence"])
