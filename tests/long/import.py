#!/usr/bin/env python3
"""memtrace import of 20 snapshots of PyTorch's, equal to the byte, and of one of a gigabyte."""
# timeout: 1800
import importlib
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cases"))
import imports
import mt

quick = importlib.import_module("import")
GIGABYTE = 1_000_000_000


@mt.variants(*[(way, seed) for way in ("", "expandable") for seed in range(101, 106)])
def case_equal_to_the_byte(way, seed):
    for file in imports.snapshots(way, seed).values():
        imports.compare(file)


@mt.variants(*[(way, seed) for way in ("", "expandable", "rounded") for seed in (11, 12, 14, 16)])
def case_peaks(way, seed):
    quick.case_peaks_are_pytorchs(way, seed)


def case_a_gigabyte():
    size, most = quick.large(3_100_000)
    mt.check(size > GIGABYTE, "only %d bytes" % size)
    mt.check(most < 1 << 30, "%d bytes of memory" % most)
    print("# %.2f GB in %.0f MiB" % (size / 1e9, most / 2**20))


mt.main()
