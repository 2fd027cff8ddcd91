#!/usr/bin/env python3
"""What somebody meets who uses it on programs of their own: the right process named, the right words, options that say when they are wrong."""
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
    subprocess.run([sys.executable, "-S", sys.argv[1]], check=True)
    work(1000, 50000)
else:
    kept.clear()
    work(1000, 20000)
""" % os.path.join(mt.TOP, "scripts")


def recorded(program, *arguments):
    path = os.path.join(mt.scratch(), "program.py")
    with open(path, "w") as file:
        file.write(program)
    return mt.shimmed([mt.python(), "-S", path, *[path if a is None else a for a in arguments]]).trace.settle()


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
    mt.check("GROWTH  host of %d " % first_of(trace)["pid"] in screen, screen)
    mt.check(re.search(r"WHAT GROWS.*\n +\d+ % +work ", screen), screen)


if __name__ == "__main__":
    mt.main()
