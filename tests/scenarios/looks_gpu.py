"""What only looks ill on a device: looks_gpu.py KIND [--sick]. The sick twin is what it looks like."""
# standin: DEVICES=4G,4G CONTEXT=64M
import os
import sys

KIND, SICK = sys.argv[1], "--sick" in sys.argv
if KIND == "driver_pool":  # the driver's own, PyTorch's allocator is not in use
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = os.environ["PYTORCH_ALLOC_CONF"] = "backend:cudaMallocAsync"

import copy
import time

import torch
from torch import nn

from account import GIB, MIB, bytes_of, failing, pool, tell

STEPS = 100


def model(width=2048, pairs=6):
    layers = [(nn.Linear(width, width + 64 * k), nn.Linear(width + 64 * k, width)) for k in range(pairs)]
    return nn.Sequential(*(layer for pair in layers for layer in pair)).cuda()


def steps(count=STEPS):
    for number in range(count):
        yield number
        time.sleep(0.01)


def driver_pool():
    """Batches of changing lengths; the driver's pool keeps what was freed; sick: each step leaves something."""
    weights, kept = [bytes_of(20 * MIB) for _ in range(8)], []
    for number in steps():
        batch = [bytes_of((1 + (number * k) % 7) * MIB) for k in range(1, 9)]
        if SICK:
            kept.append(bytes_of(8 * MIB))
        del batch
    tell(kept_bytes=8 * MIB * len(kept))


def pinned():
    """Batches of changing lengths in pinned memory, which its cache rounds to powers of two; sick: they are kept."""
    kept = []
    for number in steps():
        for k in range(4):
            batch = torch.empty(int((1 + (number * 7 + k * 3) % 13) * 300000), dtype=torch.uint8, pin_memory=True)
            if SICK:
                kept.append(batch)
        torch.cuda.synchronize()
    tell(kept_bytes=sum(b.numel() for b in kept))


def by_design():
    """Weights that are there more than once for a reason: tied, a replica on another device, a moving average; sick: a forgotten
    deep copy. Then more is asked for than would be free without it."""
    net = model()
    net.tied = net[0]
    replica = copy.deepcopy(net).to("cuda:1")
    average = copy.deepcopy(net) if SICK else torch.optim.swa_utils.AveragedModel(net)
    each = sum(p.numel() * p.element_size() for p in net.parameters())
    tell(copy_bytes=each)
    left = torch.cuda.mem_get_info()[0]
    with failing(left + each // 2):
        bytes_of(left + each // 2)
    del replica, average  # they live until here


def idle():
    """Everything was freed, and the pool keeps its segments for the next time; sick: pieces were left in them."""
    rows = [bytes_of(10 * MIB) for _ in range(330)]
    if SICK:
        rows[:] = [bytes_of(MIB) for _ in range(1)] + rows[::2]
    else:
        rows.clear()
    for _ in steps():
        del [bytes_of(MIB)][:]
    tell(end=pool())


def serving():
    """One block at the beginning, as a serving engine's cache of keys and values; then requests. Sick: answers are kept."""
    cache, kept = bytes_of(3.5 * GIB), []
    for number in steps():
        answer = [bytes_of(MIB + 4096 * (number % 5)) for _ in range(4)]
        if SICK:
            kept.append(answer[0])
        del answer
    tell(cache=cache.numel(), kept_bytes=sum(t.numel() for t in kept))


globals()[KIND]()
