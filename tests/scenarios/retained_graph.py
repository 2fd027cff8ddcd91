"""A retained graph on the CPU: the loss of a held-out batch is kept for a curve after each step, and with it the activations that its
backward pass would need.

usage: retained_graph.py [--healthy]    keeps its value
"""
import ctypes
import json
import sys

import torch
from torch import nn

STEPS, ROWS, WIDTH, LAYERS = 120, 64, 256, 6

getattr(ctypes.CDLL(None), "memtrace_start", lambda: None)()  # with MEMTRACE_PAUSED=1 without the imports


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        hidden = self.norm(x)
        hidden = self.up(hidden)
        hidden = nn.functional.gelu(hidden)
        return x + self.down(hidden)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, x):
        return self.head(self.blocks(x))


def saved_bytes(model, x, target):
    """What the graph of one loss keeps, by PyTorch's own hook: each storage once, without the parameters."""
    storages = {}

    def pack(tensor):
        storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = nn.functional.cross_entropy(model(x), target)
    own = {t.untyped_storage().data_ptr() for t in (x, target, *model.parameters())}
    del loss
    return sum(size for address, size in storages.items() if address not in own)


def main():
    healthy = "--healthy" in sys.argv
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    batch, held_out, target = torch.randn(ROWS, WIDTH), torch.randn(ROWS, WIDTH), torch.randint(10, (ROWS,))
    kept = saved_bytes(model, held_out, target)
    curve = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(batch), target).backward()
        optimizer.step()
        loss = nn.functional.cross_entropy(model(held_out), target)
        curve.append(loss.item() if healthy else loss)
    print("ACCOUNT " + json.dumps({"steps": STEPS, "kept_each": kept, "kept_bytes": 0 if healthy else STEPS * kept}), flush=True)


main()
