"""A model is loaded in a memory pool of its own, for which much is needed for a moment; the pool keeps its cache, and the training beside it fails.

truth: retained|fragmentation. 50 GiB of the MemPool are unused, and blocks of another pool may not lie there.
helps: to let go of the pool object (fixed), or loading outside of it (healthy).
"""
# standin: DEVICES=79G CONTEXT=520M
import contextlib
import sys
import torch
from torch import nn

pool = torch.cuda.MemPool()


def load():
    weights = []
    for _ in range(4):
        shards = [torch.zeros(4096, 262144, dtype=torch.half, device="cuda") for _ in range(8)]
        weights.append(torch.stack(shards).sum(0))
        weights[-1] = weights[-1][:, :65536].clone()
        kept = shards
    del shards, kept
    return weights


def train(weights):
    layers = nn.Sequential(*[nn.Sequential(nn.Linear(4096, 4096), nn.GELU()) for _ in range(6)]).cuda().half()
    for step in range(4):
        x = torch.randn(262144 if step < 3 else 393216, 4096, device="cuda", dtype=torch.half) if step else torch.randn(16384, 4096, device="cuda", dtype=torch.half)
        loss = layers(x[:, :4096]).square().mean()
        loss.backward()
        print("step", step, torch.cuda.memory_allocated() >> 20, torch.cuda.memory_reserved() >> 20, flush=True)
        layers.zero_grad(); del x, loss


with contextlib.nullcontext() if "healthy" in sys.argv else torch.cuda.use_mem_pool(pool):
    weights = load()
if "healthy" in sys.argv:
    torch.cuda.empty_cache()
if "fixed" in sys.argv:
    del pool
print("loaded", torch.cuda.memory_allocated() >> 20, torch.cuda.memory_reserved() >> 20, flush=True)
train(weights)
print("done")
