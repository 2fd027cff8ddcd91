"""Two towers of one retrieval model have the same shape and weights of their own: a batch that is too large is capacity, and nothing to drop.

The model is made on the device.
"""
# standin: DEVICES=600M CONTEXT=64M
# cause: capacity
# follow: batch
import torch
from torch import nn

import trial

STEPS, LAST, WIDTH = 24, 13, 1000


def tower():
    return nn.Sequential(nn.Linear(700, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 2 * WIDTH), nn.ReLU(), nn.Linear(2 * WIDTH, 3 * WIDTH), nn.ReLU(),
                         nn.Linear(3 * WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, 256))


class Retrieval(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = tower()
        self.passage = tower()

    def forward(self, pair):
        return (self.query(pair) * self.passage(pair)).sum()


def main():
    with torch.device("cuda"):
        model = Retrieval()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in trial.units(STEPS):
        model(torch.empty(40000 if step >= LAST and not trial.follows("batch") else 800, 700, device="cuda")).backward()
        optimizer.step()
        optimizer.zero_grad()


main()
