#!/usr/bin/env python3
"""Holders at the sizes that users have: sixty random graphs, and what a million and ten million objects cost."""
# timeout: 3600
import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cases"))
import holders
import mt

MANY = """
import ctypes, os, sys, time
class Node:
    def __init__(self, i):
        self.a, self.b = i, [i]
kept = [Node(i) for i in range(int(sys.argv[1]) // 2)]
snapshot = ctypes.CDLL(os.environ["HOLDERS"]).memtrace_holders
begin = time.monotonic()
snapshot(b"many")
for _ in range(3): pass
print(time.monotonic() - begin)
"""


@mt.variants(*holders.pythons())
def case_random(version, python):
    mt.say("%s: %.2f %% of the bytes have the right holder" % (version, 100 * holders.try_seeds(range(1, 61), python)))


@mt.variants((10**6, 5, 120), (10**7, 20, 900))
def case_many(count, seconds, megabytes):
    """How long the program stands still, and that the answer is right; what it takes is for the table of docs/holders.md."""
    done = holders.record(mt.python(), "-c", MANY, str(count))
    pause = float(done.out)
    trace = done.trace.settle()
    (file,) = [f for f in os.listdir(trace.path) if f.endswith(".holders")]
    size = os.path.getsize(os.path.join(trace.path, file)) / 2  # there is one of the end, too
    begin = time.monotonic()
    root = trace.json("holders", "--snapshot", "1")
    mt.say("%d objects: %.1f s, %.0f MB; %.1f s to read" % (count, pause, size / 1e6, time.monotonic() - begin))
    mt.check(root["complete"] and root["objects"] >= count, "%d objects" % root["objects"])
    small = next(m for m in root["memory"] if m["kind"] == "small")
    mt.check(re.fullmatch(r"__main__\.kept", small["holders"][0]["path"]) and small["holders"][0]["bytes"] > 0.9 * small["bytes"], small["holders"][0])
    mt.check(pause < seconds, "it stood still for %.1f s" % pause)
    mt.check(size < megabytes * 1e6, "%.0f MB" % (size / 1e6))


if __name__ == "__main__":
    mt.main()
