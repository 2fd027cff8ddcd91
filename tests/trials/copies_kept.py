"""Every few steps the weights are cloned into a list, to be averaged at the end, until training does not fit beside them.

A mixer of linear layers; one line makes all clones, with training between them.
"""
# standin: DEVICES=760M CONTEXT=64M
# cause: copies
# follow: drop
import torch
from torch import nn

import trial

STEPS, EVERY = 40, 8


def build():
    sides = (900, 1800, 1300, 2600, 1700, 3400, 2100, 1000)
    return nn.Sequential(*(m for a, b in zip(sides, sides[1:]) for m in (nn.Linear(a, b), nn.GELU())), nn.Linear(1000, 9000)).cuda()


def main():
    model, kept = build(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in trial.units(STEPS):
        model(torch.empty(200, 900, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % EVERY == EVERY - 1:
            kept.append([p.detach().to("cpu" if trial.follows("drop") else "cuda", copy=True) for p in model.parameters()])


main()
