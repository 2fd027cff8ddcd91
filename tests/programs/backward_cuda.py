"""Backward passes on a GPU: gradients are made in the device's thread of autograd. Prints JSON: [bytes of a gradient, line]."""
import json
import os
import sys

import torch

FACTS = []


def line():
    return sys._getframe(1).f_lineno


def parameter(count):
    return torch.ones(count, device="cuda", requires_grad=True)


first, second = parameter(3 << 20), parameter(5 << 20)
one, two = (first * 2).sum(), (second * 2).sum()
here = line(); one.backward()
FACTS.append([first.grad.numel() * 4, here])
here = line(); two.backward()
FACTS.append([second.grad.numel() * 4, here])
print(json.dumps(FACTS), flush=True)
os._exit(0)
