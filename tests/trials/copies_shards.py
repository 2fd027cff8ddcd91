"""Parameters are sharded in eight, and at the end of an epoch all of them are put together beside the shards, which does not fit.

The run fails while they are gathered, with the shards' optimizer state there.
"""
# standin: DEVICES=500M CONTEXT=64M
# cause: copies
# follow: drop
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import trial

WORLD, EPOCHS, BATCHES = 8, 3, 5


def linear(hidden, part, shape):
    return nn.functional.linear(hidden, part.repeat(WORLD).view(shape))


class Shards(nn.Module):
    """An eighth of each weight; what a layer computes with is gathered for that long."""
    def __init__(self, model):
        super().__init__()
        self.shapes = [p.shape for p in model.parameters()]
        self.parts = nn.ParameterList(nn.Parameter(p.detach().flatten()[:p.numel() // WORLD].cuda()) for p in model.parameters())

    def forward(self, hidden):
        for part, shape in zip(self.parts, self.shapes):
            if len(shape) == 2:
                hidden = checkpoint(linear, hidden, part, shape, use_reentrant=False)
        return hidden


def whole(part, shape):
    full = torch.empty(shape, device="cpu" if trial.follows("drop") else "cuda")
    full.view(-1)[:part.numel()].copy_(part.detach())
    return full


def main():
    sides = (1600, 3600, 2000, 3200, 2400, 2800, 2200, 3400, 2100, 3000, 2300, 2900, 1200)
    model = Shards(nn.Sequential(*(nn.Linear(a, b) for a, b in zip(sides, sides[1:]))))
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    for _ in trial.units(EPOCHS):
        for _ in range(BATCHES):
            model(torch.empty(60, 1600, device="cuda")).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        state = [whole(part, shape) for part, shape in zip(model.parts, model.shapes)]
        del state


main()
