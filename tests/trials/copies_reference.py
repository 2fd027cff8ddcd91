"""A policy is trained against a reference model, a deep copy of it that may be needed and could lie elsewhere.

Activations of the fourth batch, the longest, do not fit beside both.
"""
# standin: DEVICES=1080M CONTEXT=64M
# cause: copies
# follow: drop
import copy

import torch
from torch import nn

import trial

LAYERS, BATCHES, WIDTH = 7, 16, 896
LENGTHS = (600, 700, 640, 2700)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.mix = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(3 * WIDTH, WIDTH)

    def forward(self, hidden):
        hidden = self.mix(self.norm(hidden))
        return hidden + self.down(torch.relu(self.up(hidden)))


def build():
    return nn.Sequential(*(Layer() for _ in range(LAYERS)), nn.Linear(WIDTH, 12000)).cuda()


def main():
    policy = build()
    reference = copy.deepcopy(policy).requires_grad_(False)
    if trial.follows("drop"):
        reference = reference.cpu()
    optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
    for step in trial.units(BATCHES):
        batch = torch.empty(LENGTHS[step % len(LENGTHS)], WIDTH, device="cuda")
        if not trial.follows("drop"):
            with torch.no_grad():
                reference(batch[:64])
        policy(batch).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


main()
