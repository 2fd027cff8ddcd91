"""A checkpoint that was loaded onto the device stays there beside the model that was filled from it.

Vision transformer: attention registers its own weights before its children's, so that the checkpoint's order is not that of Module.cuda().
"""
# standin: DEVICES=1040M CONTEXT=64M
# cause: copies
# follow: drop
import os
import tempfile

import torch
from torch import nn

import trial

LAYERS, STEPS, WIDTH = 8, 12, 640


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(WIDTH))
        self.attention = nn.MultiheadAttention(WIDTH, 8, batch_first=True)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, hidden):
        return hidden + self.down(torch.relu(self.up(hidden * self.scale)))


class Vision(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*(Layer() for _ in range(LAYERS)))
        self.places = nn.Parameter(torch.zeros(2048, WIDTH))
        self.head = nn.Linear(WIDTH, 9000)

    def forward(self, hidden):
        return self.head(self.layers(hidden + self.places)[:, 0])


def main():
    path = os.path.join(tempfile.mkdtemp(), "vision.pt")
    torch.save(Vision().state_dict(), path)
    state = torch.load(path, map_location="cpu" if trial.follows("drop") else "cuda")
    os.remove(path)
    model = Vision().cuda()
    model.load_state_dict(state)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in trial.units(STEPS):
        model(torch.empty(2, 2048, WIDTH, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


main()
