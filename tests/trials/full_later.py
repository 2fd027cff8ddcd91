"""A decoder whose longest document is too long for the card: the block that fails would fit into holes, the rest of its step would not.

Every document has another length, so that the allocator's segments have holes; one in forty is three times as long.
"""
# standin: DEVICES=800M CONTEXT=64M
# cause: capacity
# follow: batch
import torch
from torch import nn

import trial

LAYERS, STEPS, WIDTH, LONGEST = 10, 48, 512, 37
LENGTHS = (1310, 1870, 1590, 2130, 1450, 1990)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, hidden):
        return hidden + self.down(torch.relu(self.up(self.norm(hidden))))


def main():
    decoder = nn.Sequential(*(Layer() for _ in range(LAYERS))).cuda()
    optimizer = torch.optim.SGD(decoder.parameters(), lr=0.1)
    for step in trial.units(STEPS):
        length = 6400 if step == LONGEST and not trial.follows("batch") else LENGTHS[step % len(LENGTHS)] + step % 7
        loss = decoder(torch.empty(length, WIDTH, device="cuda")).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


main()
