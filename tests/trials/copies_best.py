"""The best weights so far are cloned on the device at the end of an epoch, where a clone does not fit: it fails in its middle.

An autoencoder with Adam; gradients stay. What the batches used is free by then, in pieces that serve some of the weights.
"""
# standin: DEVICES=1130M CONTEXT=64M
# cause: copies
# follow: drop
import torch
from torch import nn

import trial

EPOCHS, BATCHES, INPUT = 4, 4, 2304
SIDES = (INPUT, 4000, 2600, 1200, 2600, 4000, INPUT)


def build():
    return nn.Sequential(*(m for a, b in zip(SIDES, SIDES[1:]) for m in (nn.Linear(a, b), nn.Tanh()))).cuda()


def train(model, optimizer):
    for batch in range(BATCHES):
        optimizer.zero_grad(set_to_none=False)
        model(torch.empty(260 + 40 * batch, INPUT, device="cuda")).sum().backward()
        optimizer.step()


def snapshot(model):
    if trial.follows("drop"):
        return {k: v.cpu() for k, v in model.state_dict().items()}
    return {k: v.clone() for k, v in model.state_dict().items()}


def main():
    model = build()
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    best = None
    for epoch in trial.units(EPOCHS):
        train(model, optimizer)
        best = snapshot(model)  # the one before goes afterwards
    del best


main()
