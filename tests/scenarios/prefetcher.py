"""Batches are copied on a side stream, and used on the main one: each block goes back only when that has caught up. Says what PyTorch counted.

usage: prefetcher.py SEED COUNT
"""
import ctypes
import json
import random
import sys

import torch

getattr(ctypes.CDLL(None), "memtrace_start", lambda: None)()
side, main = torch.cuda.Stream(), torch.cuda.current_stream()
weight = torch.empty(1024, 1024, device="cuda")
choice, kept = random.Random(int(sys.argv[1])), []


def fetch(rows):
    host = torch.empty(rows, 1024)
    with torch.cuda.stream(side):
        batch = host.to("cuda", non_blocking=True)
        scaled = batch * 2
    main.wait_stream(side)
    scaled.record_stream(main)
    return scaled


for number in range(int(sys.argv[2])):
    x = fetch(choice.randrange(64, 3000))
    for _ in range(choice.randrange(1, 6)):
        x = x @ weight
    if number % 10 == 0:
        kept.append(x)
stats = torch.cuda.memory_stats()
print(json.dumps({"most_reserved_bytes": stats["reserved_bytes.all.peak"], "most_used_bytes": stats["allocated_bytes.all.peak"],
                  "retries": stats["num_alloc_retries"], "requests": stats["allocation.all.allocated"] + stats["num_ooms"]}))
