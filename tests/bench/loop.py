"""A PyTorch training loop on one CPU thread: about 10,000 mallocs a step on stacks of about 60 frames.

usage: loop.py STEPS
"""
import sys
import time

import torch
from torch import nn

WIDTH, LAYERS = 128, 4


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        h = self.norm1(x)
        x = x + self.attention(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


def step(model, optimizer):
    x, y = torch.randn(8, 64, WIDTH), torch.randint(0, 64, (8, 64))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
    loss.backward()
    optimizer.step()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(*[Block() for _ in range(LAYERS)], nn.Linear(WIDTH, 64))
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        step(model, optimizer)  # the first steps build caches
    start, cpu = time.perf_counter(), time.process_time()
    for _ in range(int(sys.argv[1])):
        step(model, optimizer)
    print(f"bench seconds {time.perf_counter() - start:.6f}")
    print(f"bench cpu_seconds {time.process_time() - cpu:.6f}")
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                print(f"bench peak_rss_kib {line.split()[1]}")


main()
