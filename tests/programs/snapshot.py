"""Traffic through PyTorch's caching allocator, of some seed, with its own memory history. Writes PyTorch's snapshot where memory runs out and
at the end, as FOLDER/oom.pickle and FOLDER/end.pickle, and is killed then.

usage: snapshot.py FOLDER SEED STEPS
"""
import ctypes
import os
import pickle
import random
import signal
import sys

import torch

FOLDER, SEED, STEPS = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
MIB = 1 << 20

if os.environ.get("MEMTRACE_PAUSED") == "1":  # what importing PyTorch does need not be in every trace
    ctypes.PyDLL(None).memtrace_start()


def keep(name):
    with open(os.path.join(FOLDER, name + ".pickle"), "wb") as file:
        pickle.dump(torch.cuda.memory._snapshot(), file, protocol=4)


def allocate(rng, streams, tensors, deeper):
    """By one of several stacks."""
    if deeper:
        return allocate(rng, streams, tensors, deeper - 1)
    device = rng.randrange(2)
    size = rng.choice([rng.randrange(600, 4096), rng.randrange(600, MIB), rng.randrange(MIB, 10 * MIB), rng.randrange(10 * MIB, 60 * MIB)])
    with torch.cuda.stream(rng.choice(streams[device])):
        return tensors.append(torch.empty(size, dtype=torch.uint8, device=device))


def main():
    rng, tensors = random.Random(SEED), []
    torch.cuda.memory._record_memory_history(stacks="python")
    streams = [[torch.cuda.default_stream(d), torch.cuda.Stream(d)] for d in range(2)]
    for step in range(STEPS):
        dice = rng.random()
        if dice < 0.55 or not tensors:
            allocate(rng, streams, tensors, rng.randrange(6))
        elif dice < 0.97 or len(tensors) > 60:
            tensors.pop(rng.randrange(len(tensors)))
        else:
            torch.cuda.empty_cache()
        if step == STEPS // 2:
            try:
                torch.empty(1 << 40, dtype=torch.uint8, device="cuda")
            except torch.OutOfMemoryError:
                keep("oom")
    keep("end")
    os.kill(os.getpid(), signal.SIGKILL)


main()
