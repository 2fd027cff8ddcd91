"""A model of 36 layers is made on the host; it fits with its gradients, and not with what Adam keeps from the first step on."""
# standin: DEVICES=300M CONTEXT=64M
# truth: capacity
import sys

import torch
from torch import nn

width = 384 if sys.argv[1:] == ["twin"] else 704
model = nn.Sequential(*[nn.Sequential(nn.Linear(width, width, bias=False), nn.ReLU()) for _ in range(36)]).cuda()
optimizer = torch.optim.Adam(model.parameters())
for step in range(20):
    loss = model(torch.randn(8, width, device="cuda")).square().mean()
    loss.backward()
    try:
        optimizer.step()
    finally:
        made = sum(tensor.nbytes for state in optimizer.state.values() for tensor in state.values() if tensor.is_cuda)
        print("to come:", 2 * sum(p.grad.nbytes for p in model.parameters()) - made)
    optimizer.zero_grad()
