"""A server's busiest moment: requests come faster than they are answered, and each has its KV cache for as long as it runs. Earlier ones gave
theirs back, and what there is now would go, too; there are too many at once.

The twin's requests come as fast as they go.
"""
# standin: DEVICES=720M CONTEXT=48M
# cause: capacity
# follow: batch
import random

import torch
from torch import nn

import trial

ROUNDS, WIDTH, TOKENS = 260, 512, 384


class Answerer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, hidden):
        for layer in self.layers:
            hidden = layer(hidden)
        return hidden


class Request:
    def __init__(self, rounds):
        self.left = rounds
        self.cache = [torch.empty(2, TOKENS + 8 * random.randrange(16), WIDTH, device="cuda") for _ in range(2)]


def main():
    random.seed(11)
    model, running, due = Answerer().cuda().eval(), [], 0.0
    with torch.no_grad():
        for i in trial.units(ROUNDS):
            due += 1.0 if i < 150 or trial.follows("batch") else 1.0 + (i - 150) * 0.06
            while due >= 1:
                running.append(Request(random.randrange(30, 60)))
                due -= 1
            model(torch.empty(len(running), 16, WIDTH, device="cuda"))
            for request in running:
                request.left -= 1
            running = [r for r in running if r.left]


main()
