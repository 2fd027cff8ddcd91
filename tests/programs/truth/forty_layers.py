"""The first forward pass of forty layers does not fit: at the thirtieth it fails, and thirty layers are no steps."""
# standin: DEVICES=1G CONTEXT=64M
# truth: capacity
import sys

import torch
from torch import nn

rows = 1024 if sys.argv[1:] == ["twin"] else 6144
model = nn.Sequential(*[nn.Sequential(nn.Linear(1024, 1024, bias=False), nn.ReLU()) for _ in range(40)]).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(30):
    loss = model(torch.randn(rows, 1024, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
