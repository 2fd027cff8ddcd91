"""Training logs an attention map at each step, to a tracker that writes at every five hundredth step; until then it holds what it was given.

truth: leak of step. 400 MiB of maps a step wait for the write, which never comes.
helps: log numbers, or on the host, or write every 20 steps (healthy).
"""
# standin: DEVICES=79G CONTEXT=520M
import sys
import torch
from torch import nn


class Tracker:
    def __init__(self, every):
        self.every, self.waiting = every, []

    def log(self, **values):
        self.waiting.append(values)
        if len(self.waiting) == self.every:
            self.written = {name: float(value.mean()) for name, value in self.waiting[-1].items()}
            self.waiting.clear()


tracker = Tracker(20 if "healthy" in sys.argv else 500)
query, key, value = (nn.Linear(512, 512, device="cuda") for _ in range(3))
optimizer = torch.optim.Adam([p for layer in (query, key, value) for p in layer.parameters()])


def step(number):
    x = torch.randn(100, 1024, 512, device="cuda")
    attention = torch.softmax(query(x) @ key(x).transpose(1, 2) / 22.6, dim=-1)
    loss = (attention @ value(x) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    tracker.log(loss=loss.detach(), attention=attention.detach())


for number in range(260):
    step(number)
    if number % 10 == 0:
        print("step", number, flush=True)
print("done")
