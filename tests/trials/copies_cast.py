"""A copy at half precision is made for serving, and the model it was cast from stays on the device.

Requests grow until their activations do not fit beside both.
"""
# standin: DEVICES=1080M CONTEXT=64M
# cause: copies
# follow: drop
import copy

import torch
from torch import nn

import trial

REQUESTS, WIDTH = 30, 1152


class Rater(nn.Module):
    def __init__(self):
        super().__init__()
        self.items, self.users = nn.Embedding(30000, WIDTH), nn.Embedding(17000, WIDTH)
        self.tower = nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.ReLU(), nn.Linear(2 * WIDTH, WIDTH)) for _ in range(6)))

    def forward(self, hidden):
        return self.tower(hidden)


def main():
    rater = Rater().cuda()
    serving = copy.deepcopy(rater).half()
    if trial.follows("drop"):
        del rater
    torch.cuda.empty_cache()
    with torch.no_grad():
        for i in trial.units(REQUESTS):
            rows = 40000 if i >= 21 else 6000 + 200 * i
            serving(torch.empty(rows, WIDTH, dtype=torch.float16, device="cuda"))


main()
