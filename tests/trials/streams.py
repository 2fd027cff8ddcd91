"""Twelve streams of a server, each with a cache of its own in the allocator: what one has unused no other can use.

A request on a thirteenth stream fails with a tenth of the card unused in the others' segments. With expandable segments it goes on.
"""
# standin: DEVICES=1000M CONTEXT=64M
# cause: fragmentation
# follow: expandable
import torch

import trial
from account import MIB
from trial import take

STREAMS, ANSWERS = 12, 30


def main():
    weights = take(300 * MIB)
    kept = []
    for i in range(STREAMS):
        with torch.cuda.stream(torch.cuda.Stream()):
            whole = take(30 * MIB)
            del whole
            kept.append(take(20 * MIB))
    side = torch.cuda.Stream()
    size = 40 if trial.follows("expandable") else 280
    for i in trial.units(ANSWERS):
        with torch.cuda.stream(side):
            answer = take((size if i > 20 else 30) * MIB)
            del answer
    del weights


main()
