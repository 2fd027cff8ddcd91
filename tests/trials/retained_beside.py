"""A collective library asks the driver for its buffers once training has begun, and the pool's cache from the warm-up has the whole card.

The twin's warm-up gives its cache back.
"""
# standin: DEVICES=600M CONTEXT=48M
# cause: retained
# follow: empty_cache
import ctypes

import torch

import trial
from account import MIB
from trial import take

STEPS = 24
DRIVER = ctypes.CDLL("libcudart.so.13")


def buffers(size):
    """As a library makes them, beside PyTorch."""
    place = ctypes.c_void_p()
    status = DRIVER.cudaMalloc(ctypes.byref(place), ctypes.c_size_t(size))
    if status:
        DRIVER.cudaGetLastError()
        raise MemoryError("buffers: %d" % status)


def warm_up():
    for size in (30, 60, 120, 200):
        images = [take(size * MIB // 2) for _ in range(2)]
        del images


def main():
    weights = [take(20 * MIB) for _ in range(4)]
    warm_up()
    if trial.follows("empty_cache"):
        torch.cuda.empty_cache()
    for step in trial.units(STEPS):
        batch = take(12 * MIB)
        if step == 3:
            buffers(150 * MIB)
        del batch
    del weights


main()
