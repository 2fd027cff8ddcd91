"""A batch is halved until it fits, but the exceptions are kept, and with each all that its attempt had made: 48, 24, ... 1 all fail.

The twin begins with a batch that fits.
"""
# standin: DEVICES=800M CONTEXT=64M
# cause: leak
# follow: release
import torch
from torch import nn

import trial

LAYERS, WIDTH, ROWS, STEPS = 14, 768, 512, 12


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(3 * WIDTH, WIDTH)

    def forward(self, hidden):
        return hidden + self.down(nn.functional.gelu(self.up(hidden)))


def attempt(model, batch):
    model(torch.empty(batch * ROWS, WIDTH, device="cuda")).sum().backward()


def fitting(model):
    batch, failures = 1 if trial.TWIN else 48, []
    while batch:
        try:
            attempt(model, batch)
            return batch
        except torch.OutOfMemoryError as error:
            failures.append(str(error) if trial.follows("release") else error)
        batch //= 2
    raise failures[-1]


def main():
    model = nn.Sequential(*(Layer() for _ in range(LAYERS))).cuda()
    units = trial.units(STEPS)
    next(units)
    batch = fitting(model)
    for _ in units:
        attempt(model, batch)
        model.zero_grad()


main()
