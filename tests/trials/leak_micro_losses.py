"""The losses of forty micro-batches wait in a list for one backward pass, and with them all their graphs.

The twin runs the backward pass of each at once.
"""
# standin: DEVICES=600M CONTEXT=64M
# cause: leak
# follow: detach
import torch
from torch import nn

import trial

MICRO, ROWS, WIDTH = 40, 700, 512


def main():
    model = nn.Sequential(*(nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))
                            for _ in range(4))).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses = []
    for i in trial.units(3 * MICRO):
        out = model(torch.empty(ROWS, WIDTH, device="cuda"))
        loss = (out * out).mean() / MICRO
        if trial.follows("detach"):
            loss.backward()
        else:
            losses.append(loss)
        if i % MICRO == MICRO - 1:
            if losses:
                torch.stack(losses).sum().backward()
            losses.clear()
            optimizer.step()
            optimizer.zero_grad()


main()
