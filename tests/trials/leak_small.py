"""One in a hundred of the card is kept by a list of statistics, and the run ends long before that matters.

The twin keeps none.
"""
# standin: DEVICES=1400M CONTEXT=64M
# cause: none
import torch
from torch import nn

import trial
from account import MIB
from trial import take

STEPS = 110


def main():
    model = nn.Sequential(nn.Linear(700, 1800), nn.Tanh(), nn.Linear(1800, 700)).cuda()
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    norms = []
    for _ in trial.units(STEPS):
        loss = model(torch.empty(160, 700, device="cuda")).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if not trial.TWIN:
            norms.append(take(MIB // 8))


main()
