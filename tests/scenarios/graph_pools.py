"""CUDA graphs for batches of six sizes, each captured into a private pool of its own: what a capture needed for a moment stays with its
graph. 1.2 GiB are unused there and 300 MiB are free, and a request of 512 MiB fails.

usage: graph_pools.py             the graphs' holes are nobody else's
       graph_pools.py --warm      each graph ran in its pool before it was captured, as those of torch.compile do
       graph_pools.py --common    the same work without graphs: the same holes, in the common pool
       graph_pools.py --capture   the request is made in one more capture, while the common pool has cached 1.5 GiB
       graph_pools.py --healthy   one pool for all, the largest batch first, results are used before the next graph runs: it fits
"""
# standin: DEVICES=6G CONTEXT=0.3G
import os
import sys
import warnings

import torch
from account import GIB, MIB, bytes_of, failing, pool, tell

warnings.filterwarnings("ignore", "The CUDA Graph is empty")
BATCHES = [64, 128, 192, 256, 320, 384]  # MiB of an activation
REQUEST = 512 * MIB
REST = 2846 * MIB  # what leaves 300 MiB free beside the private pools
GRAPHS = []


def forward(size):
    """Two activations, and a result of each."""
    first, second = bytes_of(size), bytes_of(size)
    del first
    logits = bytes_of(size * 5 // 10)
    del second
    return logits, bytes_of(size * 6 // 10)


def run_in(handle, stream, size):
    """Without a capture, but in the pool: what torch.compile does the first time."""
    with torch.cuda.stream(stream):
        torch._C._cuda_beginAllocateCurrentThreadToPool(0, handle)
        forward(size)
        torch._C._cuda_endAllocateToPool(0, handle)


def capture(work, handle, stream):
    GRAPHS.append(torch.cuda.CUDAGraph())
    with torch.cuda.graph(GRAPHS[-1], pool=handle, stream=stream):
        return work()


def pools():
    """PyTorch's pools by their ids: what they have, and where."""
    found = {}
    for s in torch.cuda.memory_snapshot():
        one = found.setdefault("%d,%d" % s["segment_pool_id"], {"reserved": 0, "allocated": 0, "hole": 0, "large_hole": 0, "segments": []})
        one["reserved"] += s["total_size"]
        one["allocated"] += s["active_size"]
        hole = max([b["size"] for b in s["blocks"] if b["state"] == "inactive"], default=0)
        one["hole"] = max(one["hole"], hole)
        if s["segment_type"] == "large":
            one["large_hole"] = max(one["large_hole"], hole)  # small blocks have segments of their own
        one["segments"].append(s["address"])
    return found


def main():
    torch.cuda.init()
    how = sys.argv[1] if len(sys.argv) > 1 else ""
    stream, shared, kept = torch.cuda.Stream(), torch.cuda.graph_pool_handle(), []
    cached = bytes_of(3 * GIB // 2) if how == "--capture" else None
    for size in sorted((b * MIB for b in BATCHES), reverse=how == "--healthy"):
        handle = shared if how == "--healthy" else torch.cuda.graph_pool_handle()
        if how == "--warm":
            run_in(handle, stream, size)
        results = forward(size) if how == "--common" else capture(lambda: forward(size), handle, stream)
        kept += [] if how == "--healthy" else results
    kept.append(bytes_of(REST if how == "--healthy" else (pool()["free_bytes"] - 300 * MIB) // (2 * MIB) * 2 * MIB))
    if how == "--healthy":
        kept.append(bytes_of(REQUEST))
        tell(end=pool(), pools=pools())
        os._exit(0)  # with all of it
    with failing(REQUEST, pools=pools), torch.cuda.stream(stream if cached is not None else None):
        if cached is not None:
            del cached
            torch.cuda.CUDAGraph().capture_begin()  # without torch.cuda.graph(), which would have returned the cache
        kept.append(bytes_of(REQUEST))


main()
