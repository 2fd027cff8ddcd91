"""A transformer of 48 blocks on long sequences: checkpointing was forgotten, and its first step fails in the forward pass.

truth: capacity. Some 5 GiB of activations are kept for each block.
helps: torch.utils.checkpoint of each block (healthy).
"""
# standin: DEVICES=79G CONTEXT=520M
import sys
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

HEALTHY = "healthy" in sys.argv


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        return x + self.mlp(self.norm(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(1024) for _ in range(48)])
        self.head = nn.Linear(1024, 256)

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if HEALTHY else block(x)
        return self.head(x)


model = Model().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(4):
    x = torch.randn(16, 8192, 1024, device="cuda")
    loss = model(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("step", step, flush=True)
print("done")
