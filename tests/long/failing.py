#!/usr/bin/env python3
# timeout: 1500
"""10,000 failing calls for each of many seeds, as tests/cases/failing.py has them for one."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt
import refusals

SEEDS = range(2, 12)


def case_host():
    for seed in SEEDS:
        refusals.host(seed, 10000)


def case_cuda():
    for seed in SEEDS:
        refusals.cuda(seed, 10000)


def case_ascend():
    for seed in SEEDS:
        refusals.ascend(seed, 10000)


mt.main()
