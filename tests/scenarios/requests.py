"""Requests and frees in a random order, of sizes over the allocator's whole range, on two streams; now and then the cache is emptied. What
doesn't fit makes the program drop half of what it has. Says what PyTorch counted.

usage: requests.py SEED COUNT
"""
import json
import random
import sys

import torch

MIB = 1 << 20


def size(choice):
    low, high = choice.choices([(1, MIB), (MIB, 10 * MIB), (10 * MIB, 40 * MIB)], [5, 3, 2])[0]
    return choice.randrange(low, high)


def main():
    choice, live, refused, requests = random.Random(int(sys.argv[1])), [], [], 0
    streams = [torch.cuda.default_stream(), torch.cuda.Stream()]
    for _ in range(int(sys.argv[2])):
        if live and (choice.random() < 0.48 or len(live) > 60):
            live.pop(choice.randrange(len(live)))
        else:
            requests += 1
            with torch.cuda.stream(streams[choice.random() < 0.2]):
                try:
                    live.append(torch.empty(size(choice), dtype=torch.uint8, device="cuda"))
                except torch.OutOfMemoryError:
                    refused.append(requests)
                    del live[::2]
        if choice.random() < 0.002:
            torch.cuda.empty_cache()
    stats = torch.cuda.memory_stats()
    print(json.dumps({"most_reserved_bytes": stats["reserved_bytes.all.peak"], "most_used_bytes": stats["allocated_bytes.all.peak"],
                      "most_requested_bytes": stats["requested_bytes.all.peak"], "retries": stats["num_alloc_retries"], "requests": requests,
                      "requests_refused": stats["num_ooms"], "first_refused": refused[0] if refused else None}))


main()
