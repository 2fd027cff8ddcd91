"""Nanoseconds of a pair of calls, the best of several rounds, as JSON: what tracing adds is the difference to a run without.

usage: cost.py [--history]    with PyTorch's own memory history
"""
import ctypes
import glob
import json
import os
import sys
import time

import torch

MIB, ROUNDS = 1 << 20, 60


def runtime():
    """The CUDA runtime that PyTorch has loaded."""
    with open("/proc/self/maps", encoding="utf-8") as file:
        paths = {line.split()[-1] for line in file if "libcudart" in line}
    return ctypes.CDLL(paths.pop() if paths else glob.glob(os.path.join(sys.prefix, "**/libcudart.so*"), recursive=True)[0])


def best(calls, function):
    times = []
    for _ in range(ROUNDS):
        begin = time.thread_time_ns()  # on a busy machine waiting would be counted too
        for _ in range(calls):
            function()
        times.append((time.thread_time_ns() - begin) / calls)
    return min(times)


def driver_pair():
    cuda, address, size = runtime(), ctypes.c_void_p(), ctypes.c_size_t(2 * MIB)
    where = ctypes.byref(address)

    def pair():
        cuda.cudaMalloc(where, size)
        cuda.cudaFree(address)
    return pair


def deep(function, depth):
    return deep(function, depth - 1) if depth else best(2000, function)


def main():
    device = torch.device("cuda")
    torch.empty(1, device=device)
    if "--history" in sys.argv:
        torch.cuda.memory._record_memory_history(max_entries=100000)

    take, give = torch._C._cuda_cudaCachingAllocator_raw_alloc, torch._C._cuda_cudaCachingAllocator_raw_delete
    stream = torch.cuda.current_stream().cuda_stream

    def block():  # a tensor's block without the tensor, which is several of the host's
        give(take(512, stream))
    print(json.dumps({"driver_pair": best(50, driver_pair()), "block": best(2000, block), "block_20_deep": deep(block, 20)}))


main()
