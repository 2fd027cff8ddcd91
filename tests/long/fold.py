#!/usr/bin/env python3
"""Folding for long: more than a hundred million events, twenty times the limit."""
# timeout: 3000
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cases"))
import fold
import mt

LIMIT = 12 * fold.MIB


def case_twenty_times_the_limit():
    """An unfolded trace of this program takes 2.1 bytes an event."""
    run = fold.Run(60000000, LIMIT)
    fold.check(run)
    mt.between(0, run.most_disk, LIMIT, "bytes on disk")
    events = sum(2 * site["count"] for site in run.account["sites"].values())
    mt.check(events > 10**8 and 2 * events > 20 * LIMIT, "%d events are too few" % events)
    mt.check(run.main["folded"]["blocks"] > events // 2 * 9 // 10, "too little was folded: %s" % run.main["folded"])


if __name__ == "__main__":
    mt.main()
