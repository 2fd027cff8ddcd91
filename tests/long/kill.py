#!/usr/bin/env python3
"""SIGKILL at 200 random moments."""
# timeout: 900
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import killing
import mt


@mt.variants(11, 12, 13, 14, 15, 16, 17, 18, 19, 20)
def case_twenty_shots(seed):
    killing.volley(20, seed)


mt.main()
