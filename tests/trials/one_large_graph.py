"""Molecules, one graph a step; one is thirty times larger than all before, and there is no batch to make smaller.

The twin leaves it out.
"""
# standin: DEVICES=500M CONTEXT=64M
# cause: capacity
# follow: batch
import torch
from torch import nn

import trial

STEPS, WIDTH, LARGE = 70, 128, 52


class Messages(nn.Module):
    def __init__(self):
        super().__init__()
        self.edge, self.node = nn.Linear(2 * WIDTH, WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, nodes, sources, targets):
        messages = torch.relu(self.edge(torch.cat((nodes[sources], nodes[targets]), -1)))
        return torch.relu(self.node(torch.cat((nodes, torch.zeros_like(nodes).index_add(0, targets, messages)), -1)))


def main():
    model = nn.ModuleList(Messages() for _ in range(4)).cuda()
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    for step in trial.units(STEPS):
        atoms = 60000 if step == LARGE and not trial.follows("batch") else 700 + step * 37 % 900
        hidden, sources, targets = torch.empty(atoms, WIDTH, device="cuda"), *(torch.zeros(3 * atoms, dtype=torch.long, device="cuda") for _ in range(2))
        for layer in model:
            hidden = layer(hidden, sources, targets)
        hidden.sum().backward()
        optimizer.step()
        optimizer.zero_grad()


main()
