"""A few steps of a small model. Says what PyTorch counted.

usage: batches.py ROWS    of each batch
"""
import json
import sys

import torch
from torch import nn

STEPS, WIDTH, LAYERS = 4, 256, 3


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.linear = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return x + torch.relu(self.linear(self.norm(x)))


def main():
    rows = int(sys.argv[1])
    model = nn.Sequential(*(Block() for _ in range(LAYERS)), nn.Linear(WIDTH, 10)).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(STEPS):
        x, target = torch.zeros(rows, 64, WIDTH).cuda(), torch.zeros(rows, 64, 10).cuda()
        optimizer.zero_grad()
        ((model(x) - target) ** 2).mean().backward()
        optimizer.step()
    stats = torch.cuda.memory_stats()
    print(json.dumps({"most_reserved_bytes": stats["reserved_bytes.all.peak"], "most_used_bytes": stats["allocated_bytes.all.peak"]}))


main()
