"""A fine-tuned model is to be tried beside the one it came from, and the deep copy fails at its first weight, the largest.

Nothing of the copy is there. What a tokenizer and a warm-up left is in pieces.
"""
# standin: DEVICES=600M CONTEXT=64M
# cause: copies
# follow: drop
import copy

import torch
from torch import nn

import trial

TRIES, WIDTH = 6, 1088


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(60000, WIDTH)
        self.layers = nn.Sequential(*(m for i in range(5) for m in (nn.Linear(WIDTH, WIDTH + 32 * i), nn.ReLU(), nn.Linear(WIDTH + 32 * i, WIDTH))))
        self.out = nn.Linear(WIDTH, 5000)

    def forward(self, words):
        return self.out(self.layers(self.words(words)))


def main():
    reader = Reader().cuda()
    words = torch.zeros(3000, dtype=torch.long, device="cuda")
    for i in trial.units(TRIES):
        if i == 2:
            changed = reader if trial.follows("drop") else copy.deepcopy(reader)
        with torch.no_grad():
            (changed if i > 2 else reader)(words)


main()
