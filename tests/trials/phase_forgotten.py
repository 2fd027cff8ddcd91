"""Training and evaluation are lines of one function behind a dispatcher, and the evaluation has forgotten no_grad: its batch is larger.

The twin evaluates under no_grad.
"""
# standin: DEVICES=560M CONTEXT=64M
# cause: phase_peak
# follow: no_grad batch
import contextlib
import time

import torch
from torch import nn

import trial
from account import MIB
from trial import take

STEPS, CHECKS, WIDTH = 40, 10, 640


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.rise, self.fall = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.norm, self.act = nn.LayerNorm(WIDTH), nn.GELU()

    def forward(self, x):
        for _ in range(4):
            x = x + self.fall(self.act(self.rise(self.norm(x))))
        return x


def evaluate(encoder, unit):
    scores = []
    with torch.no_grad() if trial.follows("no_grad") else contextlib.nullcontext():
        for _ in range(CHECKS):
            sentences = torch.empty(1200 if trial.FOLLOW == "batch" else 6000, WIDTH, device="cuda")
            scores.append(encoder(sentences).mean().detach())
            next(unit)
    return scores


def train_and_check(encoder):
    unit = trial.units(STEPS + CHECKS)
    optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)
    for _ in range(STEPS):
        loss = encoder(torch.empty(1500, WIDTH, device="cuda")).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        next(unit)
    evaluate(encoder, unit)
    list(unit)


def load():
    shards = [take(MIB) for _ in range(40)]
    time.sleep(5)  # they are read
    del shards
    return Encoder().cuda()


def run():
    encoder = load()
    train_and_check(encoder)


COMMANDS = {"train": run}
COMMANDS["train"]()
