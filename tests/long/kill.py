#!/usr/bin/env python3
"""SIGKILL at 200 random moments, and at 100 with young blocks."""
# timeout: 900
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import killing
import mt


@mt.variants(11, 12, 13, 14, 15, 16, 17, 18, 19, 20)
def case_twenty_shots(seed):
    killing.volley(20, seed)


@mt.variants(41, 42, 43, 44, 45)
def case_twenty_shots_of_young(seed):
    killing.volley(20, seed, record="young")


mt.main()
