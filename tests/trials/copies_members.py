"""An ensemble of five deep copies of one encoder, the fourth of which is cut off in its middle.

Each member has 21 weights, fewer than would be called a model by their number.
"""
# standin: DEVICES=1150M CONTEXT=64M
# cause: copies
# follow: drop
import copy

import torch
from torch import nn

import trial

MEMBERS, DEPTH, WIDTH = 5, 9, 1400


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(24000, WIDTH)
        self.layers = nn.ModuleList(nn.Linear(WIDTH + 100 * (i % 3), WIDTH, bias=i % 2 == 0) for i in range(DEPTH))
        self.out = nn.Linear(WIDTH, 9000)

    def forward(self, words):
        return self.out(self.words(words))


def main():
    base = Encoder().cuda()
    members = [base]
    words = torch.zeros(64, dtype=torch.long, device="cuda")
    for i in trial.units(MEMBERS):
        if i and not trial.follows("drop"):
            members.append(copy.deepcopy(base))
        with torch.no_grad():
            members[-1](words)


main()
