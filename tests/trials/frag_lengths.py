"""Training on sentences of any length, whose caching allocator keeps a segment for each length, in pieces.

Encoder of 12 blocks; lengths are random (a step is told by its batch of tokens, which is small), so that blocks of one length are cut from segments of another, and long-lived states pin them.
The twin pads to one length. --load SECONDS is how long its weights take to be read.
"""
# standin: DEVICES=760M CONTEXT=64M
# cause: fragmentation
# follow: expandable
import random
import sys
import time

import torch

import trial
from account import MIB
from trial import take

LAYERS, STEPS, WIDTH = 12, 80, 3 * 1024
LOAD = float(sys.argv[sys.argv.index("--load") + 1]) if "--load" in sys.argv else 0


def weights():
    time.sleep(LOAD / LAYERS)
    return take(20 * MIB)


def block(length, kept):
    """A layer's activations: some live until the backward pass."""
    hidden, scores = take(length * WIDTH), take(length * WIDTH * 2)
    kept.append(hidden)
    del scores


def train(length):
    kept = []
    for _ in range(LAYERS):
        block(length, kept)
    while kept:
        gradient = take(length * WIDTH)
        kept.pop()
        del gradient


def main():
    draw = random.Random(7)
    parameters, averages = [weights() for _ in range(LAYERS)], []
    for step in trial.units(STEPS):
        length = 6000 if trial.TWIN else draw.choice((900, 1700, 2600, 3900, 5100, 6600, 8100)) + draw.randrange(700)
        tokens = take(length * 64)
        train(length)
        if step % 3 == 2 and len(averages) < 6:
            averages.append(take(9 * MIB + length * 100))
    torch.cuda.synchronize()
    del parameters, tokens


main()
