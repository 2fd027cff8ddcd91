"""Backward passes in threads of autograd's engine. Prints JSON: [bytes of a block made there, line that called backward(), thread's name]."""
import json
import os
import sys

import torch

FACTS = []
KEEP = []


def line():
    return sys._getframe(1).f_lineno


def name():
    with open("/proc/thread-self/comm") as comm:
        return comm.read().strip()


class Allocates(torch.autograd.Function):
    """Whose backward, in Python, makes a block of so many bytes."""

    @staticmethod
    def forward(ctx, x, size):
        ctx.size = size
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        KEEP.append(bytearray(ctx.size))
        FACTS.append([ctx.size + 1, None, name()])
        return gradient, None


def device():
    """A device that is written in Python: PyTorch gives it a thread of its own, as it does for a GPU."""
    from torch.utils.backend_registration import _setup_privateuseone_for_python_backend
    from torch.utils._pytree import tree_map

    _setup_privateuseone_for_python_backend("imaginary")

    class Tensor(torch.Tensor):
        @staticmethod
        def __new__(cls, raw, requires_grad=False):
            made = torch.Tensor._make_wrapper_subclass(cls, raw.size(), strides=raw.stride(), dtype=raw.dtype, device="imaginary:0",
                                                       requires_grad=requires_grad)
            made.raw = raw
            return made

        @classmethod
        def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
            plain = lambda x: x.raw if isinstance(x, Tensor) else x
            result = function(*tree_map(plain, args), **{k: plain(v) for k, v in (kwargs or {}).items() if k != "device"})
            return tree_map(lambda x: Tensor(x) if isinstance(x, torch.Tensor) else x, result)

    x = Tensor(torch.ones(10), requires_grad=True)
    first = Allocates.apply(x, 1000002).sum()
    second = Allocates.apply(x, 1000004).sum()
    here = line(); first.backward()
    FACTS[-1][1] = here
    here = line(); second.backward()
    FACTS[-1][1] = here


class Deep(torch.autograd.Function):
    """A backward pass within one, and so on: the sixtieth runs in a thread of a pool."""

    @staticmethod
    def forward(ctx, x, depth, size):
        ctx.depth, ctx.size = depth, size
        return x.detach().clone()

    @staticmethod
    def backward(ctx, gradient):
        with torch.enable_grad():
            if ctx.depth:
                y = torch.ones(1, requires_grad=True)
                Deep.apply(y, ctx.depth - 1, ctx.size).sum().backward()
            else:
                big = torch.ones(ctx.size, requires_grad=True)
                KEEP.append(big)
                (big * 2).sum().backward()  # MulBackward makes the gradient, in C++
                FACTS.append([big.grad.numel() * 4, None, name()])
        return gradient, None, None


def pool():
    x = torch.ones(1, requires_grad=True)
    for depth in range(56, 64):
        y = Deep.apply(x, depth, 300000 + depth).sum()
        if depth % 2:
            here = line(); y.backward()
        else:
            here = line(); y.backward()
        FACTS[-1][1] = here


{"device": device, "pool": pool}[sys.argv[1]]()
print(json.dumps(FACTS), flush=True)
os._exit(0)  # everything is alive at the end
