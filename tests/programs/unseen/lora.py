"""Adapters are fitted to a model of 33 GiB, which nobody froze: a backward pass makes gradients of its weights, too, and nobody drops them.

truth: capacity. 33 GiB of weights, as much for gradients of weights that are not trained, and 16 GiB of activations.
helps: requires_grad_(False) for the model (healthy), or a smaller one.
"""
# standin: DEVICES=79G CONTEXT=520M
import sys
import torch
from torch import nn


class Adapted(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.base = nn.Linear(width, width, bias=False, device="cuda", dtype=torch.bfloat16)
        self.down = nn.Linear(width, 16, bias=False, device="cuda", dtype=torch.bfloat16)
        self.up = nn.Linear(16, width, bias=False, device="cuda", dtype=torch.bfloat16)

    def forward(self, x):
        return torch.tanh(self.base(x) + self.up(self.down(x)))


model = nn.Sequential(*[Adapted(16384) for _ in range(66)])
if "healthy" in sys.argv:
    for layer in model:
        layer.base.requires_grad_(False)
adapters = [p for layer in model for p in (*layer.down.parameters(), *layer.up.parameters())]
optimizer = torch.optim.AdamW(adapters, lr=1e-4)
for step in range(3):
    x = torch.randn(8192, 16384, device="cuda", dtype=torch.bfloat16)
    loss = model(x).float().square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("step", step, flush=True)
print("done")
