"""Cross-validation keeps the model of every fold on the device, five large weights each.

Each fold is trained in full before the next one begins; the fifth does not fit.
"""
# standin: DEVICES=1300M CONTEXT=64M
# cause: copies
# follow: drop
import torch
from torch import nn

import trial

FOLDS, BATCHES = 6, 6


def build():
    sides = (2800, 5200, 3100, 2300, 1900, 400)
    return nn.Sequential(*(nn.Linear(a, b, bias=False) for a, b in zip(sides, sides[1:]))).cuda()


def train(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(BATCHES):
        model(torch.empty(512, 2800, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def main():
    fitted = []
    for _ in trial.units(FOLDS):
        model = build()
        train(model)
        fitted.append(model.cpu() if trial.follows("drop") else model)


main()
