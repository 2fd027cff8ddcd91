"""The loss of an epoch is summed up for its log as a tensor, not as a number: each step's graph stays until the epoch ends.

The twin adds what .item() says.
"""
# standin: DEVICES=380M CONTEXT=48M
# cause: leak
# follow: detach
import torch
from torch import nn

import trial

STEPS, WIDTH = 140, 256


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.score = nn.Linear(64, WIDTH), nn.Linear(WIDTH, 1)

    def forward(self, pairs):
        return torch.sigmoid(self.score(torch.relu(self.embed(pairs))))


def main():
    scorer, total = Scorer().cuda(), 0
    optimizer = torch.optim.SGD(scorer.parameters(), lr=0.1)
    for _ in trial.units(STEPS):
        pairs = torch.empty(2000, 64, device="cuda")
        scores = scorer(pairs)
        loss = (scores * scores).mean()
        loss.backward(retain_graph=True)
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            weights = torch.rand(2000, 1, device="cuda")
        total = total + (loss.item() if trial.follows("detach") else (scorer(pairs) * weights).sum())


main()
