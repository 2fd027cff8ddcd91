"""A server loads its shards for seconds, then answers for a moment: each answer's embedding stays in a dictionary of sessions.

The loop is under a tenth of the process's time. The twin forgets a session once it is answered.
"""
# standin: DEVICES=560M CONTEXT=64M
# cause: leak
# follow: release
import time

import torch
from torch import nn

import trial
from account import MIB
from trial import take

trial.PAUSE = 0.002
REQUESTS, WIDTH, LENGTH = 260, 640, 896


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(WIDTH, 8, 2 * WIDTH, batch_first=True, device="cuda") for _ in range(3))

    def forward(self, tokens):
        for layer in self.layers:
            tokens = layer(tokens)
        return tokens


def load():
    shards = []
    for _ in range(12):
        time.sleep(0.4)  # of a disk
        shards.append(take(6 * MIB))
    return shards


def main():
    shards, sessions = load(), {}
    reader = Reader().eval()
    with torch.no_grad():
        for request in trial.units(REQUESTS):
            answer = reader(torch.empty(1, LENGTH + request % 5 * 8, WIDTH, device="cuda"))
            sessions[request] = answer
            if trial.follows("release"):
                del sessions[request]
            del answer
    del shards


main()
