"""Copies of single precision are made of forty layers, one behind another; the holes that loading left take a few of them more."""
# standin: DEVICES=700M CONTEXT=64M
# truth: capacity
import sys

import torch
from torch import nn

count = 10 if sys.argv[1:] == ["twin"] else 40
model = nn.Sequential(*[nn.Linear(2048, 2048, bias=False, device="cuda", dtype=torch.half) for _ in range(count)])
masters = [weight.detach().float() for weight in model.parameters()]
optimizer = torch.optim.SGD(masters, lr=0.1)
for step in range(30):
    model(torch.randn(16, 2048, device="cuda", dtype=torch.half)).square().mean().backward()
    for master, weight in zip(masters, model.parameters()):
        master.grad = weight.grad.float()
    optimizer.step()
    model.zero_grad()
