#!/usr/bin/env python3
"""memtrace live on running programs: by directory and by pid, until they end, with and without alerts."""
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

PROGRAM = """
import sys, time
kept = []
for i in range(int(sys.argv[1]) * 10):
    kept.append(bytearray(1 << 20))
    time.sleep(0.1)
"""


def start(path, program, *words):
    child = subprocess.Popen([mt.python(), "-c", program, *words], env=mt.shim_env(path), cwd=mt.scratch())
    until = time.monotonic() + 20
    while not any(f.endswith(".info") for f in os.listdir(path)) if os.path.isdir(path) else True:
        mt.check(time.monotonic() < until, "nothing is recorded")
        time.sleep(0.05)
    return child


class Running:
    """A program that keeps 1 MiB every 0.1 s, under the shim."""

    def __init__(self, seconds):
        self.path = os.path.join(mt.scratch("trace"), "t")
        self.child = start(self.path, PROGRAM, str(seconds))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.kill()
        self.child.wait()


def live(*words, status=0):
    done = mt.execute([mt.MEMTRACE, "live", *map(str, words)], timeout=60)
    mt.equal(done.status, status, "%s: status" % done)
    return done.out.splitlines()


def heaps(lines):
    """Bytes of each look."""
    units = {"B": 1, "KiB": 1024, "MiB": 1 << 20, "GiB": 1 << 30}
    return [float(m.group(1)) * units[m.group(2)] for m in (re.search(r"heap ([\d.]+) (\w+)", line) for line in lines) if m]


def case_until_it_ends():
    with Running(5) as program:
        lines = live(program.path)
        mt.equal(program.child.wait(), 0)
    looks = heaps(lines)
    mt.check(len(looks) >= 2, "looks: %s" % lines)
    mt.check(max(looks) > looks[0] and max(looks) >= 5 << 20, "heaps %s" % looks)
    mt.check(lines[-1].endswith("ended"), "last line %r" % lines[-1])


CHURN = """
import os, sys, threading, time
def work(kept):
    until = time.monotonic() + 4
    while time.monotonic() < until:
        for i in range(300):
            kept[i % 100] = bytearray(1000 + i)
        time.sleep(0.001)
threads = [threading.Thread(target=work, args=([None] * 100,)) for _ in range(3)]
for t in threads: t.start()
for n in range(3):
    time.sleep(0.7)
    if os.fork() == 0:
        mine = [bytearray(2000) for _ in range(500)]
        time.sleep(0.5)
        os._exit(0)
    os.wait()
for t in threads: t.join()
last = bytearray(7 << 20)
os._exit(0)
"""


def case_what_it_has_in_the_end_is_what_report_finds():
    """Threads, processes that come and go, some thousand events between two looks: nothing is missed, nothing counted twice."""
    path = os.path.join(mt.scratch("trace"), "t")
    child = start(path, CHURN)
    lines = live(path)
    mt.equal(child.wait(), 0)
    trace = mt.Trace(path)
    trace.settle()
    report = trace.report
    mt.equal(len(report["processes"]), 4, "processes")
    mt.check(lines[-1].endswith("ended"), "last line %r" % lines[-1])
    mt.between(0.99 * report["host"]["live_bytes"], heaps(lines)[-1], 1.01 * report["host"]["live_bytes"], "heap of %r" % lines[-1])


def case_by_pid():
    with Running(3) as program:
        lines = live(program.child.pid)
    mt.check(heaps(lines) and "resident" in lines[0], "lines %s" % lines)


def case_alerts():
    """Any machine is full to a thousandth of a per cent."""
    with Running(3) as program:
        lines = live("--alert", "0.001%", program.path, status=1)
    alerts = [line for line in lines if line.startswith("ALERT: machine is ")]
    mt.equal(len(alerts), 1, "alerts in %s" % lines)
    with Running(2) as program:
        lines = live("--alert", "100", program.path)
    mt.check(not any("ALERT" in line for line in lines), "lines %s" % lines)


def case_interrupted():
    with Running(30) as program:
        child = subprocess.Popen([mt.MEMTRACE, "live", program.path], stdout=subprocess.PIPE, text=True)
        child.stdout.readline()
        child.send_signal(signal.SIGINT)
        mt.equal(child.wait(30), 0, "status")
        mt.check(program.child.poll() is None, "the program has ended with it")


@mt.variants(("--alert", "much"), ("--alert", "0"), ("999999999",), ("a", "b"))
def case_wrong_usage(*words):
    done = mt.execute([mt.MEMTRACE, "live", *words])
    mt.check(done.status in (2, 3) and len(done.err.splitlines()) == 1, "%s" % done)


mt.main()
