"""32 MiB that did not fit (incident 2): on a GPU of 23.52 GiB a first run trains and evaluates (8, 12, 15, 9, 11.44 GiB), a second program
that is not traced holds 3.80, and a third run fails on its first step with 28.25 MiB free. All three call the GPU cuda:0.

usage: incident2.py [--healthy]    without the second program
"""
# standin: DEVICES=23.52G,23.52G CONTEXT=0.43G
import ctypes
import json
import os
import subprocess
import sys
import time

import torch

from account import GIB, MIB, bytes_of, failing, fill, pool, tell

CONTEXT = int(0.43 * GIB)
NEIGHBOUR = round((3.80 * GIB - CONTEXT) / (2 * MIB)) * 2 * MIB
HERE = os.path.abspath(__file__)


def steps(count, peak):
    """Steps that return to where they began; the highest has PEAK bytes with the context's."""
    for i in range(count):
        logits = bytes_of(400 * MIB)
        activations = bytes_of(peak - CONTEXT - torch.cuda.memory_allocated() - (i % 3) * 64 * MIB)
        del logits, activations


def train(weights, peak):
    steps(40, peak)
    torch.cuda.empty_cache()


def evaluate(weights, peak):
    steps(15, peak)
    torch.cuda.empty_cache()


def first_run():
    """Says when it is at what the third finds, and ends with its input."""
    torch.cuda.init()
    weights = [bytes_of(100 * MIB) for _ in range(40)]
    peaks, most = [], 0
    for phase, peak in [(train, 8), (train, 12), (evaluate, 15), (train, 9)]:
        torch.cuda.reset_peak_memory_stats()
        phase(weights, int(peak * GIB))
        peaks.append(pool()["peak_allocated_bytes"] + CONTEXT)
        most = max(most, pool()["peak_reserved_bytes"])
    weights.append(fill(int(11.44 * GIB) - CONTEXT))
    print(json.dumps({"pid": os.getpid(), "peaks": peaks, "most": most, "bytes": torch.cuda.memory_reserved() + CONTEXT,
                      "largest_block_bytes": pool()["largest_block_bytes"]}), flush=True)
    sys.stdin.read()
    time.sleep(2)  # it doesn't end because another failed


def outside_pool(size):
    """What libraries take from the driver themselves."""
    runtime = ctypes.CDLL("libcudart.so.13")
    assert runtime.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(size)) == 0


def third_run(healthy):
    weights = [bytes_of(128 * MIB) for _ in range(40)]
    outside_pool(194 * MIB)
    left = 8.25 * GIB - 194 * MIB - CONTEXT if healthy else torch.cuda.memory_reserved() + pool()["free_bytes"] - 28.25 * MIB
    weights.append(fill(int(left)))
    while not healthy and pool()["free_bytes"] >= 30 * MIB:
        weights.append(bytes_of(2 * MIB))
    if healthy:
        weights.append(bytes_of(32 * MIB))
        tell(end=pool())
        return
    tell(other_own_bytes=194 * MIB + CONTEXT, libraries_bytes=194 * MIB)
    with failing(32 * MIB, pid=os.getpid()):
        weights.append(bytes_of(32 * MIB))


def start(*command, traced=True):
    environment = {k: v for k, v in os.environ.items() if traced or not k.startswith(("LD_PRELOAD", "MEMTRACE_SESSION"))}
    child = subprocess.Popen([sys.executable, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    return child, json.loads(child.stdout.readline())


def main():
    healthy = "--healthy" in sys.argv
    neighbour = os.path.join(os.path.dirname(HERE), "neighbour.py")
    others = [] if healthy else [start(neighbour, "0", str(NEIGHBOUR), traced=False)]
    others.append(start(HERE, "--first"))
    tell(verdict=None if healthy else "other_process", context_bytes=CONTEXT, first=others[-1][1],
         neighbours=[dict(facts, bytes=facts["bytes"] + (0 if "peaks" in facts else CONTEXT)) for _, facts in others])
    third_run(healthy)


first_run() if "--first" in sys.argv else main()
