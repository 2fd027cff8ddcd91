"""Small trainings that say nothing about their steps, and write down when each began and ended: train_loops.py MODE STEPS LOG"""
import ctypes
import json
import os
import sys
import time

import torch
from torch import nn

LEAK = 25600  # floats

if os.environ.get("MEMTRACE_PAUSED") == "1":  # what importing PyTorch does need not be in every trace
    ctypes.PyDLL(None).memtrace_start()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(128, 128) for _ in range(6))

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


kept = []


def keep(count):
    for _ in range(count):
        kept.append(torch.zeros(LEAK))


def evaluate(model):
    with torch.no_grad():
        for _ in range(20):
            model(torch.randn(256, 128))


def train(model, opt, steps, mode, log):
    for step in range(steps):
        begin = time.time_ns()
        for _ in range(4 if mode == "accumulate" else 1):
            loss = model(torch.randn(64, 128)).square().mean()
            loss.backward()
        opt.step()
        opt.zero_grad()
        if mode == "leak":
            keep(1)
        if mode == "faster":
            keep(1 + step // 20)
        if mode == "evaluate" and (step + 1) % 20 == 0:
            evaluate(model)
        log.append((begin, time.time_ns()))


def epochs(model, opt, steps, log):
    data = torch.utils.data.TensorDataset(torch.randn(32 * 20, 128))
    loader = torch.utils.data.DataLoader(data, batch_size=32, shuffle=True)
    for _ in range(steps // 20):
        begin = time.time_ns()  # fetching a batch is a part of its step
        for (batch,) in loader:
            opt.zero_grad()
            model(batch).square().mean().backward()
            opt.step()
            log.append((begin, time.time_ns()))
            begin = time.time_ns()
        evaluate(model)


def infer(model, steps, log):
    with torch.no_grad():
        for _ in range(steps):
            begin = time.time_ns()
            out = model(torch.randn(256, 128))
            out.softmax(dim=1).sum().item()
            log.append((begin, time.time_ns()))


def main():
    mode, steps, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    torch.set_num_threads(1)
    torch.manual_seed(1)
    log = []
    model = Net()
    opt = torch.optim.Adam(model.parameters(), lr=1e-4) if mode != "infer" else None
    if mode == "epochs":
        epochs(model, opt, steps, log)
    elif mode == "infer":
        infer(model, steps, log)
    else:
        train(model, opt, steps, mode, log)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(log, file)


main()
