"""Continual learning: for every task that was learned the importance and the values of all weights are kept, to hold them in place.

truth: copies|leak of consolidate. Two tensors a weight and task, 4 GiB a task; the model itself has 2 GiB.
helps: one running importance instead of one a task (healthy).
"""
# standin: DEVICES=79G CONTEXT=520M
import sys
import torch
from torch import nn

HEALTHY = "healthy" in sys.argv
model = nn.ModuleList([nn.Linear(4096, 8192, device="cuda") for _ in range(16)])
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
anchors = []


def penalty():
    total = torch.zeros((), device="cuda")
    for importance, values in anchors:
        for weight, i, v in zip(model.parameters(), importance, values):
            total = total + (i * v).sum() * weight.sum()
    return total


def consolidate():
    importance = [p.grad.square() for p in model.parameters()]
    values = [p.detach().clone() for p in model.parameters()]
    if HEALTHY and anchors:
        anchors.clear()
    anchors.append((importance, values))


def learn(task):
    for step in range(4):
        x = torch.randn(1024, 4096, device="cuda")
        loss = sum(layer(x).square().mean() for layer in model) + penalty()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


for task in range(24):
    learn(task)
    consolidate()
    print("task", task, flush=True)
print("done")
