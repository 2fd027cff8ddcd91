"""Captures graphs at random, into private pools of their own, shared ones and such that have a handle, on several streams, beside requests
of the common pool, until memory runs out and on; then says what PyTorch knows of its pools. usage: graph_random.py SEED"""
import ctypes
import json
import os
import random
import sys
import warnings

import torch

MIB = 1 << 20
ROUNDS = 120

warnings.filterwarnings("ignore", "The CUDA Graph is empty")
getattr(ctypes.CDLL(None), "memtrace_start", lambda: None)()
rng = random.Random(int(sys.argv[1]))
torch.cuda.init()
streams = [torch.cuda.Stream() for _ in range(3)]
graphs, live = [], []


def requests():
    for _ in range(rng.randrange(1, 12)):
        if live and rng.random() < 0.4:
            live.pop(rng.randrange(len(live)))
        block = torch.empty(rng.randrange(512, rng.choice([1, 30]) * MIB), dtype=torch.uint8, device="cuda")
        if rng.random() < 0.5:
            live.append(block)


def capture():
    pool = rng.choice(graphs).pool() if graphs and rng.random() < 0.5 else rng.choice([None, torch.cuda.graph_pool_handle()])
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool, stream=rng.choice(streams)):
        requests()
    graphs.append(graph)


def on_a_stream():
    with torch.cuda.stream(rng.choice(streams)):
        requests()


def drop():
    for _ in range(rng.randrange(len(live) + 1)):
        live.pop(rng.randrange(len(live)))


def forget():
    if graphs:
        graphs.pop(rng.randrange(len(graphs))).reset()


def main():
    in_captures = 0
    for _ in range(ROUNDS):
        what = rng.choices([capture, requests, drop, on_a_stream, forget, torch.cuda.empty_cache], [25, 25, 20, 15, 10, 5])[0]
        try:
            what()
        except torch.cuda.OutOfMemoryError:
            in_captures += what is capture
            live.clear()
    pools = {}
    for s in torch.cuda.memory_snapshot():
        holes = [b["size"] for b in s["blocks"] if b["state"] == "inactive"]
        pools.setdefault("%d,%d" % s["segment_pool_id"], {})[s["address"]] = [s["total_size"], s["active_size"], max(holes, default=0)]
    stats = torch.cuda.memory_stats()
    print("ACCOUNT " + json.dumps({"pools": pools, "in_captures": in_captures, "ooms_and_retries": [stats["num_ooms"], stats["num_alloc_retries"]],
                                 "most_reserved": stats["reserved_bytes.all.peak"], "most_used": stats["allocated_bytes.all.peak"]}),
          flush=True)
    os._exit(0)  # with all of it


main()
