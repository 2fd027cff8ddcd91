#!/usr/bin/env python3
"""What somebody meets who uses it on programs of their own: the right process named, the right words, options that say when they are wrong."""
import functools
import os
import re
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

# A server that has much and leaks, and a helper that began with nothing: its growth is nearly all of its own heap.
SERVER = """
import subprocess, sys
sys.path.insert(0, %r)
import memtrace
def work(steps, size):
    for n in range(steps):
        memtrace.step(n)
        kept.append(bytearray(size))
        bytearray(2 * size)
kept = [bytearray(60 << 20)]
if len(sys.argv) > 1:
    subprocess.run([sys.executable, sys.argv[1]], check=True)
    work(1000, 50000)
else:
    kept.clear()
    work(1000, 20000)
""" % os.path.join(mt.TOP, "scripts")


def recorded(program, *arguments):
    path = os.path.join(mt.scratch(), "program.py")
    with open(path, "w") as file:
        file.write(program)
    return mt.shimmed([mt.python(), path, *[path if a is None else a for a in arguments]]).trace.settle()


def report(trace):
    done = trace.tool("report")
    mt.equal(done.status, 0, "status")
    return done.out


def first_of(trace):
    """The process that started all others."""
    processes = trace.json("report")["processes"]
    pids = [p["pid"] for p in processes]
    return next(p for p in processes if p["ppid"] not in pids)


def case_growth_is_of_the_process_that_leaks():
    trace = recorded(SERVER, None)
    screen = report(trace)
    mt.check("GROWTH  heap of %d " % first_of(trace)["pid"] in screen, screen)
    mt.check(re.search(r"WHAT GROWS.*\n +\d+ % +work ", screen), screen)


# ---- steps ------------------------------------------------------------------------------------------------------

# What the file is called makes it an optimizer.
OPTIMIZER = """
class Optimizer:
    def step(self, closure=lambda: 0):
        closure()
        self.state = bytearray(20000)
"""

LOOPS = {
    "a loop that warms up": """
for n in range(40):
    forward(); one.step()
for n in range(60):
    forward(); one.step()
""",
    "two loaders in each epoch": """
def train(count):
    for n in range(count):
        forward(); one.step()
for epoch in range(5):
    train(8)
    train(12)
""",
    "a closure, and batches ahead": """
batches = []
def fetch(n):
    return bytearray(9000) if n < 100 else None
for n in range(-8, 100):
    batches.append(fetch(n + 8))
    if n >= 0:
        one.step(forward)
""",
    "two optimizers in each step": """
for n in range(100):
    forward(); one.step()
    forward(); other.step()
""",
}


@mt.variants(*LOOPS)
def case_steps_of_an_optimizer(loop):
    folder = mt.scratch()
    with open(os.path.join(folder, "optim.py"), "w") as file:
        file.write(OPTIMIZER)
    trace = recorded("""
import sys; sys.path.insert(0, %r)
from optim import Optimizer
one, other = Optimizer(), Optimizer()
def forward():
    layers = [bytearray(5000 + 100 * i) for i in range(10)]
%s""" % (folder, LOOPS[loop]))
    # nothing but the optimizer's closure runs in the last eight steps of the loader that is ahead: they can't be told apart
    mt.between(92 if "ahead" in loop else 100, trace.json("report")["steps"]["count"], 100, "steps")


# ---- options and words ------------------------------------------------------------------------------------------


@functools.lru_cache(None)
def ordinary():
    """A Python program with something of everything."""
    return recorded("import json, sys\nkept = [bytearray(i) for i in range(0, 100000, 100)]\nsys.stdout.flush()\nimport os; os._exit(3)")


@mt.variants("report", "peak", "peak --fit 50M", "peak --by category", "leaks", "frag", "check")
def case_no_line_is_too_wide(command):
    done = ordinary().tool(*command.split())
    wide = [line for line in done.out.splitlines() if len(line) > 100]
    mt.equal((done.status, wide), (0, []), "status and lines over 100 columns")


@mt.variants(("peak", "--fit", "0"), ("live", "--every", "0"))
def case_nothing_is_ignored(*words):
    done = ordinary().tool(*words)
    mt.equal((done.status, done.out, len(done.err.splitlines())), (2, "", 1), "status, output, lines of the error")
    mt.check(words[1] in done.err, done.err)


def case_one_process_is_singular():
    mt.check(re.search(r"^1 process, \d+ events: complete$", ordinary().tool("check").out, re.M), "check: %r" % ordinary().tool("check").out)


def case_what_has_ended_is_not_resident():
    line = ordinary().tool("live").out
    mt.check("resident" not in line and line.endswith("  ended\n"), line)


@mt.once
def compressor():
    done = mt.shimmed([mt.program("compressor"), "keeps"])
    done.trace.settle()
    return done.trace


@mt.variants("report", "leaks", "peak")
def case_a_librarys_memory_is_of_the_line_that_called_it(command):
    """What zstd makes, whose functions have no lines here, and whose own names tell its user nothing."""
    text = " ".join(compressor().tool(command).out.split())
    mt.check(re.search(r"compressor\.c:1[01] open_member|open_member compressor\.c:1[01]", text), text)


def case_a_library_that_frees_is_quiet():
    done = mt.shimmed([mt.program("compressor")])
    mt.equal(done.trace.report["verdicts"], [], "verdicts")


if __name__ == "__main__":
    mt.main()
