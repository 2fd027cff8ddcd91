#!/usr/bin/env python3
"""What looking at the system costs: processor time of the recorder, bytes on disk, and the program's own time."""
# timeout: 300
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

WEEK = 7 * 86400
PROCESSES = 16
FORKS = """
import os, sys, time
import torch
def work():
    kept, end = [], time.time() + float(sys.argv[1])
    while time.time() < end:
        kept.append(os.urandom(200000))
        if len(kept) > 50:
            kept = []
        time.sleep(0.1)
    os._exit(0)
for _ in range(%d):
    if os.fork() == 0:
        work()
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
""" % PROCESSES


def seconds(pid):
    with open("/proc/%d/stat" % pid) as file:
        words = file.read().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def case_sixteen_processes():
    """After ten seconds, less than 1 % of a core, and less than 200 MiB a week."""
    if not mt.has_module("torch"):
        mt.skip("no PyTorch")
    output = os.path.join(mt.scratch("trace"), "t")
    child = subprocess.Popen([mt.python(), "-c", FORKS, "75"], env=mt.shim_env(output), cwd=mt.scratch())
    try:
        time.sleep(20)
        recorder, path = mt.Trace(output).recorder(), os.path.join(output, "samples")
        mt.check(recorder, "no recorder")
        used, size, start = seconds(recorder), os.path.getsize(path), time.monotonic()
        time.sleep(40)
        share = (seconds(recorder) - used) / (time.monotonic() - start)
        rate = (os.path.getsize(path) - size) / (time.monotonic() - start)
    finally:
        child.kill()
        child.wait()
    print("# %.2f %% of a core, %.0f bytes a second: %.0f MiB a week" % (100 * share, rate, rate * WEEK / 2**20))
    mt.check(share < 0.01, "the recorder takes %.2f %% of a core" % (100 * share))
    mt.check(rate * WEEK < 200 << 20, "a week would take %d MiB" % (rate * WEEK / 2**20))


LARGE = """
import mmap, sys, time
kept = [bytearray(64 << 20) for _ in range(24)]
for block in kept:
    block[::4096] = b"x" * len(block[::4096])
worst, count, end = 0, 0, time.time() + 20
while time.time() < end:
    start = time.perf_counter()
    mmap.mmap(-1, 4096).close()
    took = time.perf_counter() - start
    worst, count = max(worst, took), count + 1
    time.sleep(0.0005)
print(count, worst)
"""


def case_a_large_process_maps_memory_as_ever():
    """1.5 GiB in small pages: what a look at all of them takes is what a mapping may have to wait, and no more often than once in 10 s."""
    done = mt.shimmed([mt.python(), "-c", LARGE], timeout=120)
    mt.equal(done.status, 0, done.err[-300:])
    count, worst = done.out.split()
    print("# %s mappings, the slowest took %.1f ms" % (count, 1000 * float(worst)))
    looks = sum("pss" in line for line in done.trace.settle().tool("dump", "--samples").out.splitlines()
                if " process " in line and " rss 16" in line)
    mt.check(looks <= 3, "%d looks at all pages in 20 s" % looks)


mt.main()
