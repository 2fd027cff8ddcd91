#!/usr/bin/env python3
"""SIGKILL at 14 random moments (42 in check-long, and tests/long/kill.py: 200 more), a third each of the target, target and recorder, recorder."""
# timeout: 400
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import killing
import mt


@mt.variants(1, long=(2, 3))
def case_fourteen_shots(seed):
    killing.volley(14, seed)


mt.main()
