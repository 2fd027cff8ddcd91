"""Requests of a server come and go, each with its KV cache, but whoever hangs up before the answer is not taken off the list of those that are
cancelled, and that keeps their caches.

The twin takes them off.
"""
# standin: DEVICES=520M CONTEXT=56M
# cause: leak
# follow: release
import random

import torch
from torch import nn

import trial

ROUNDS, WIDTH = 300, 448


class Chat:
    def __init__(self, number):
        self.ends = number + random.randrange(6, 14)
        self.cache = torch.empty(640 + 16 * random.randrange(24), 2, WIDTH, device="cuda")


def main():
    random.seed(5)
    model, chats, cancelled = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH)).cuda().eval(), [], []
    with torch.no_grad():
        for number in trial.units(ROUNDS):
            chats += [Chat(number), Chat(number)]
            model(torch.empty(len(chats), 24, WIDTH, device="cuda"))
            cancelled.append(chats.pop(random.randrange(len(chats))))
            if trial.follows("release"):
                cancelled.clear()
            chats = [c for c in chats if c.ends > number]


main()
