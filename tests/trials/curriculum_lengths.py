"""Sequences grow by plan, in five lengths, and the last step's logits are still bound when the next begins: nothing outlives a step.

The twin has one length.
"""
# standin: DEVICES=1400M CONTEXT=64M
# cause: none
import torch
from torch import nn

import trial

VOCABULARY, WIDTH, LENGTHS, STEPS = 3000, 320, (96, 160, 256, 352, 480), 18


class Writer(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        self.memory = nn.GRUCell(WIDTH, WIDTH)
        self.mix = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens):
        hidden = self.words(tokens)
        return self.head(hidden + self.mix(hidden))


def main():
    model = Writer().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    for step in trial.units(STEPS * len(LENGTHS)):
        length = LENGTHS[2 if trial.TWIN else step // STEPS]
        tokens = torch.zeros(12, length, dtype=torch.long, device="cuda")
        logits = model(tokens)
        loss = logits.sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


main()
