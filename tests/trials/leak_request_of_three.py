"""Each request is answered by three calls of one model (draft, check, final), and each call's attention map is logged on the device.

The twin logs its mean.
"""
# standin: DEVICES=430M CONTEXT=64M
# cause: leak
# follow: release
import torch
from torch import nn

import trial

REQUESTS, WORDS, WIDTH = 70, 512, 384


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.feed = nn.Sequential(nn.Linear(WIDTH, 3 * WIDTH), nn.ReLU(), nn.Linear(3 * WIDTH, WIDTH))

    def forward(self, words):
        attention = torch.softmax(self.query(words) @ self.key(words).T, -1)
        return self.feed(attention @ self.value(words)), attention


def answer(reader, words, log):
    for _ in ("draft", "check", "final"):
        words, attention = reader(words)
        if not trial.follows("release"):
            log.append(attention)
    return words


def main():
    reader, log = Reader().cuda().eval(), []
    with torch.no_grad():
        for _ in trial.units(REQUESTS):
            answer(reader, torch.empty(WORDS, WIDTH, device="cuda"), log)


main()
