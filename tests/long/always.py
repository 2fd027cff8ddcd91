#!/usr/bin/env python3
"""Sampled blocks over 1,000 seeds of a generated program: 95 % intervals hold the truth 93-97 % of the time, estimates are unbiased, of owners
and of all that is alive."""
# timeout: 900
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt
import sampling


def case_intervals_over_1000_seeds():
    sampling.over(range(1, 1001), "picked")


mt.main()
