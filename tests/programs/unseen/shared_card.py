"""A script of a course, whose first lines give each student a quarter of the card; now it runs alone, and the batch was made larger.

truth: limit. The allocator's configuration allows 0.25 of the card, 19.8 GiB; 59 GiB are free.
helps: drop the line (healthy).
"""
# standin: DEVICES=79G CONTEXT=520M
import os
import sys
if "healthy" not in sys.argv:
    os.environ["PYTORCH_ALLOC_CONF"] = "per_process_memory_fraction:0.25"
import torch
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(*[nn.Sequential(nn.Linear(1024, 1024, device=device), nn.GELU()) for _ in range(6)])
optimizer = torch.optim.AdamW(model.parameters())
for step in range(14):
    size = 32768 if step < 10 else 524288
    x = torch.randn(size, 1024, device=device); y = torch.randn(size, 1024, device=device)
    loss = (model(x) - y).square().mean(); loss.backward()
    optimizer.step(); optimizer.zero_grad()
    print("step", step, flush=True)
print("done")
