#!/usr/bin/env python3
"""memtrace holders --scan against LeakSanitizer: thirty programs with lost and reachable blocks."""
# timeout: 1800
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cases"))
import holders_scan
import mt

SOURCE = os.path.join(mt.TOP, "tests/programs/scan_random.cc")


def case_against_leak_sanitizer():
    """To the byte what it finds, and what the program knows of itself."""
    sanitized = os.path.join(mt.scratch(), "sanitized")
    done = mt.execute(["g++", "-std=c++17", "-O1", "-g", "-fsanitize=leak", "-pthread", SOURCE, "-o", sanitized])
    if done.status:
        mt.skip("no LeakSanitizer: %s" % done.err[-200:])
    lost = 0
    for seed in range(1, 31):
        done = mt.execute([sanitized, str(seed)], stdin=b"x")
        sums = [(int(n), int(b)) for b, n in re.findall(r"leak of (\d+) byte\(s\) in (\d+) object\(s\)", done.err)]
        mt.check(sums, "seed %d: %s" % (seed, done))
        truth, root = holders_scan.scan(seed)
        found = root["lost_blocks"], root["lost_bytes"]
        mt.equal(tuple(map(sum, zip(*sums))), truth, "seed %d: what LeakSanitizer finds, and what is lost" % seed)
        mt.equal(found, truth, "seed %d: what is found, and what is lost" % seed)
        lost += found[0]
    mt.say("%d lost blocks in 30 programs, the same as LeakSanitizer finds" % lost)


@mt.variants((10**6, 1000), (10**7, 48))
def case_large(count, size):
    """What it takes is for the table of docs/holders.md."""
    with holders_scan.Running([mt.program("scan_large"), str(count), str(size)]) as running:
        begin = os.times()
        root = json.loads(running.scan("--json"))
        end = os.times()
        running.end()
    mt.say("%d blocks, %.1f GB: stood still for %.2f s; %.0f s of processor time" % (
        count, root["bytes"] / 1e9, root["stopped_s"], end.children_user + end.children_system - begin.children_user - begin.children_system))
    mt.equal((root["lost_blocks"], root["lost_bytes"], root["blocks"] >= count), (10, 10 * size, True), "the list that nothing leads to")


if __name__ == "__main__":
    mt.main()
