"""The batch grows from 2 to 8 by plan in a plain loop, and ends at the largest; what the last step made is bound until the next replaces it.

The twin has batches of 5.
"""
# standin: DEVICES=900M CONTEXT=64M
# cause: none
import torch
from torch import nn

import trial

STEPS, PIXELS, WIDTH = 84, 9216, 48


class Segments(nn.Module):
    def __init__(self):
        super().__init__()
        self.see = nn.Sequential(nn.Linear(12, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH), nn.GELU())
        self.name = nn.Linear(WIDTH, 260)

    def forward(self, images):
        return self.name(self.see(images))


def main():
    model = Segments().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=False)
    for step in trial.units(STEPS):
        batch = 5 if trial.TWIN else 2 + step * 7 // STEPS
        masks = model(torch.empty(batch, PIXELS, 12, device="cuda"))
        loss = masks.mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


main()
