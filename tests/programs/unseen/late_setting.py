"""Segmentation of crops of any size; features of some crops go into a memory bank. What should help is set when the allocator has begun.

truth: fragmentation. The bank's features lie in segments that activations left; half of what is reserved is unused.
helps: the same setting before the program starts (the variable is read once), which is what `healthy` has.
"""
# standin: DEVICES=79G CONTEXT=520M
import os
import random
import sys
if "healthy" in sys.argv:
    os.environ["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"
import torch
from torch import nn

random.seed(8)
weight = torch.zeros(64, 64, device="cuda", requires_grad=True)
os.environ["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"
bank = []


def train_step(number):
    height, width = random.randrange(400, 1600), random.randrange(400, 1600)
    crop = torch.randn(8, height, width, 64, device="cuda")
    first = crop @ weight
    second = torch.relu(first)
    third = second @ weight
    loss = third.square().mean()
    del crop
    features = torch.cat([third.detach()[:4], second.detach()[:1]])
    loss.backward()
    weight.grad = None
    if len(bank) == 24:
        bank.pop(random.randrange(24))
    bank.append(features)


for number in range(300):
    train_step(number)
    if number % 10 == 0:
        print("step", number, torch.cuda.memory_allocated() >> 20, torch.cuda.memory_reserved() >> 20, flush=True)
print("done")
