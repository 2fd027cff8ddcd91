#!/usr/bin/env python3
"""The oracle of tests/cases/oracle.py with more seeds, and with enough operations for several blocks."""
# timeout: 1800
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cases"))
import mt
import oracle


@mt.variants(*range(100, 120))
def case_heap_maps_forks(seed):
    oracle.compare(seed, "mf")


@mt.variants(*range(120, 140))
def case_handed_over(seed):
    oracle.compare(seed, "hf")


@mt.variants(*range(140, 145))
def case_many_operations(seed):
    run, _ = oracle.compare(seed, "m" if seed % 2 else "h", rounds=20, ops=5000, pace=1000)
    mt.check(any(f.endswith(".trace") for f in run.trace.files()), "no block was written: %s" % run.trace.files())


@mt.variants(*range(145, 150))
def case_recorder_killed(seed):
    oracle.compare(seed, "m" if seed % 2 else "h", rounds=20, ops=5000, pace=3000, how=oracle.recorder_killed)


mt.main()
