"""Gradual unfreezing: each stage makes a new optimizer with a schedule, and the list of schedules keeps the optimizers of all stages.

truth: leak|copies of stage. Adam's state of each stage stays, 6 to 12 GiB, though that stage is over.
helps: let go of the schedule at the end of its stage (healthy).
"""
# standin: DEVICES=79G CONTEXT=520M
import sys
import torch
from torch import nn

layers = nn.ModuleList([nn.Linear(8192, 8192, device="cuda", bias=False) for _ in range(24)])
schedules = []


def stage(number):
    chosen = layers[-(number + 12):]
    for layer in layers:
        layer.requires_grad_(False)
    chosen.requires_grad_(True)
    optimizer = torch.optim.Adam(chosen.parameters(), lr=1e-4)
    schedules.append(torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 5))
    for step in range(5):
        x = torch.randn(512, 8192, device="cuda")
        for layer in layers:
            x = torch.tanh(layer(x))
        x.square().mean().backward()
        optimizer.step()
        schedules[-1].step()
        optimizer.zero_grad()


def main():
    for number in range(12):
        stage(number)
        if "healthy" in sys.argv:
            schedules.clear()
        print("stage", number, flush=True)


main()
print("done")
