"""A second job on the card loads its table for retrieval, which is traced too: the training beside it fails, and the table's line is named.

The twin's neighbour keeps its table on the host.
"""
# standin: DEVICES=600M CONTEXT=48M
# cause: other_process
# follow: host alone
import os
import subprocess
import sys

import torch
from torch import nn

import trial
from account import MIB
from trial import take

STEPS, WIDTH = 30, 512


def retrieve():
    table = take(260 * MIB) if not trial.follows("host") else torch.empty(260 * MIB, dtype=torch.uint8)
    queries = take(2 * MIB)
    print("ready", flush=True)
    sys.stdin.read()
    del table, queries


def train():
    model = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.ReLU(), nn.Linear(4 * WIDTH, 4 * WIDTH), nn.ReLU(), nn.Linear(4 * WIDTH, WIDTH)).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in trial.units(STEPS):
        loss = model(torch.empty(4000, WIDTH, device="cuda")).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def main():
    if "--neighbour" in sys.argv:
        return retrieve()
    if trial.FOLLOW == "alone":
        return train()
    neighbour = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--neighbour", *sys.argv[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    neighbour.stdout.readline()
    try:
        train()
    finally:
        neighbour.stdin.close()
        neighbour.stdout.read()
        neighbour.wait()


main()
