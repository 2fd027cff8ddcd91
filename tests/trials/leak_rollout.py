"""A policy acts, and what it thought of each state is stored with its graph: no backward pass ever comes for it.

The twin stores it detached.
"""
# standin: DEVICES=330M CONTEXT=64M
# cause: leak
# follow: detach
import torch
from torch import nn

import trial

STEPS, ACTORS, SEEN, WIDTH = 150, 512, 192, 448


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(SEEN, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH), nn.Tanh())
        self.action, self.value = nn.Linear(WIDTH, 12), nn.Linear(WIDTH, 1)

    def forward(self, state):
        hidden = self.body(state)
        return torch.log_softmax(self.action(hidden), -1), self.value(hidden)


def main():
    policy, rollout = Policy().cuda(), []
    for _ in trial.units(STEPS):
        state = torch.empty(ACTORS, SEEN, device="cuda")
        chances, value = policy(state)
        if trial.follows("detach"):
            chances, value = chances.detach(), value.detach()
        rollout.append((chances[:, 0], value))


main()
