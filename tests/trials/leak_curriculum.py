"""Sequences grow by plan, in five lengths, and what was thought of each step's first words is kept for a report that nobody writes: the lengths are no leak, the list is

The twin keeps none.
"""
# standin: DEVICES=520M CONTEXT=64M
# cause: leak
# follow: release
import torch
from torch import nn

import trial

VOCABULARY, WIDTH, LENGTHS, STEPS = 2200, 288, (64, 112, 176, 240, 320), 24
SHOWN = 140  # words


class Writer(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.head = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, VOCABULARY)
        self.mix = nn.Sequential(nn.Linear(WIDTH, 3 * WIDTH), nn.GELU(), nn.Linear(3 * WIDTH, WIDTH))

    def forward(self, tokens):
        hidden = self.words(tokens)
        return self.head(hidden + self.mix(hidden))


def main():
    model, shown = Writer().cuda(), []
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    for step in trial.units(STEPS * len(LENGTHS)):
        logits = model(torch.zeros(9, LENGTHS[step // STEPS], dtype=torch.long, device="cuda"))
        if not trial.follows("release"):
            shown.append(logits.detach().flatten(0, 1)[:SHOWN].clone())
        logits.sum().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


main()
