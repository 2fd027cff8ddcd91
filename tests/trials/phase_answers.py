"""An evaluation under no_grad keeps the logits of all its sentences, though only the best word of each is wanted.

no_grad has nothing to give here, and is not advised. The twin keeps the words.
"""
# standin: DEVICES=500M CONTEXT=64M
# cause: phase_peak
# follow: batch
import torch
from torch import nn

import trial

STEPS, CHECKS, WIDTH, WORDS = 40, 16, 384, 6000


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WORDS)
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x):
        return self.out(self.norm(torch.relu(self.second(torch.relu(self.first(x))))))


def evaluate(tagger, unit):
    answers = []
    with torch.no_grad():
        for _ in range(CHECKS):
            sentences = torch.empty(250 if trial.FOLLOW == "batch" else 1600, WIDTH, device="cuda")
            logits = tagger(sentences)
            answers.append(logits.argmax(-1) if trial.TWIN else logits)
            next(unit)
    return answers


def train(tagger, unit):
    optimizer = torch.optim.Adam(tagger.parameters())
    for _ in range(STEPS):
        loss = tagger(torch.empty(800, WIDTH, device="cuda")).logsumexp(-1).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        next(unit)


def main():
    tagger, unit = Tagger().cuda(), trial.units(STEPS + CHECKS)
    train(tagger, unit)
    evaluate(tagger, unit)
    list(unit)


main()
