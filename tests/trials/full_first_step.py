"""A training that is too large for the card, at its fourth layer of twenty in its first step, with holes from loading.

Each weight was made where a larger buffer had been, so that a few percent lie unused in segments; used whole they would serve this one
request, and the next would fail.
"""
# standin: DEVICES=1200M CONTEXT=64M
# cause: capacity
# follow: batch
import torch
from torch import nn

import trial
from account import MIB
from trial import take

LAYERS, STEPS, WIDTH = 20, 12, 3472


def layer():
    buffer = take(49 * MIB)
    del buffer
    return nn.Linear(WIDTH, WIDTH, bias=False, device="cuda")


def main():
    model = nn.Sequential(*(nn.Sequential(layer(), nn.ReLU()) for _ in range(LAYERS)))
    batch = 80 if trial.follows("batch") else 2500
    for _ in trial.units(STEPS):
        loss = model(torch.empty(batch, WIDTH, device="cuda")).sum()
        del loss  # the backward pass would need as much again


main()
