"""Twelve equal layers that one line makes, each of five large weights, are one model: where a batch is too large, that is capacity.

Each is moved to the device on its own, as whole models would be.
"""
# standin: DEVICES=1020M CONTEXT=64M
# cause: capacity
# follow: batch
import torch
from torch import nn

import trial

LAYERS, STEPS, LAST = 12, 24, 15


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix, self.gate = nn.Linear(1024, 1024, bias=False), nn.Linear(1024, 1536, bias=False)
        self.up, self.down = nn.Linear(1024, 2048, bias=False), nn.Linear(2048, 1024, bias=False)
        self.out = nn.Linear(1536, 1024, bias=False)

    def forward(self, hidden):
        hidden = hidden + self.out(torch.relu(self.gate(self.mix(hidden))))
        return hidden + self.down(torch.relu(self.up(hidden)))


def main():
    layers = [Layer().cuda() for _ in range(LAYERS)]
    optimizer = torch.optim.SGD([p for layer in layers for p in layer.parameters()], lr=0.1)
    for step in trial.units(STEPS):
        hidden = torch.empty(2000 if step >= LAST and not trial.follows("batch") else 300, 1024, device="cuda")
        for layer in layers:
            hidden = layer(hidden)
        hidden.sum().backward()
        optimizer.step()
        optimizer.zero_grad()


main()
