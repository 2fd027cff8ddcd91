"""A logger is given p.grad itself, for histograms that it writes at the end; zero_grad() sets the gradients to None.

truth: leak of the backward pass. The gradients of each fifth step stay: 384 MiB.
helps: norms instead (healthy).
"""
# standin: DEVICES=79G CONTEXT=520M
import sys
import torch
from torch import nn

HEALTHY = "healthy" in sys.argv


class Writer:
    def __init__(self):
        self.history = {}

    def add_histogram(self, tag, values, step):
        if HEALTHY:
            values = values.norm().item()
        self.history.setdefault(tag, []).append((step, values))


writer = Writer()
model = nn.Sequential(*[nn.Sequential(nn.Linear(4096, 4096), nn.GELU()) for _ in range(6)]).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)


def train_step(step):
    x = torch.randn(256, 4096, device="cuda")
    loss = (model(x) - x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 5 == 0:
        for name, p in model.named_parameters():
            writer.add_histogram(name, p.grad, step)


for step in range(1200):
    train_step(step)
    if step % 100 == 0:
        print("step", step, flush=True)
print("done")
