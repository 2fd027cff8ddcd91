"""Expandable segments are on, and the last batch is the largest: nothing more can be won from them.

Image batches of growing resolution; the allocator already joins its pages.
"""
# standin: DEVICES=600M CONTEXT=64M
# cause: capacity
# follow: batch
import os

os.environ["PYTORCH_ALLOC_CONF"] = os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"

import torch
import trial
from account import MIB
from trial import take

STEPS = 30


def main():
    torch.cuda.synchronize()  # what computes has a context
    filters = [take(9 * MIB) for _ in range(10)]
    for step in trial.units(STEPS):
        side = 448 if step >= 25 and not trial.follows("batch") else 224
        maps = [take(side * side * 12 * channels) for channels in (3, 8, 16, 24, 48, 64)]
        maps += [take(side * side * 12 * channels // 4) for channels in (64, 96, 128)]
        del maps[::2]
        del maps
    del filters


main()
