"""The seventh batch is forty times larger than those before it, and fails in its forward pass."""
# standin: DEVICES=500M CONTEXT=64M
# truth: capacity large_input.py <module>
import sys

import torch
from torch import nn

twin = sys.argv[1:] == ["twin"]
model = nn.Sequential(*[nn.Sequential(nn.Linear(256, 256), nn.GELU()) for _ in range(12)]).cuda()
optimizer = torch.optim.Adam(model.parameters())
for step in range(12):
    rows = 20480 if step == 6 and not twin else 512
    loss = model(torch.randn(rows, 256, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
