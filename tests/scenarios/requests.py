"""Requests and frees in a random order, of sizes over the allocator's whole range, on two streams; now and then the cache is emptied. What
doesn't fit makes the program drop half of what it has. Says what PyTorch counted.

usage: requests.py SEED COUNT [--plain] [--beside] [--keeping BYTES] [--requests N] [--not-empty N,N]
    --plain      all on the default stream, and none other is ever made, as most programs are
    --beside     with memory of the driver's own beside the pool, mapped and unmapped
    --keeping    with a block of so many bytes more, which stays, now and then
    --requests   ends behind that one
    --not-empty  without the calls of empty_cache() behind these requests
"""
import ctypes
import json
import random
import sys

import torch

import recording

MIB = 1 << 20


def size(choice):
    low, high = choice.choices([(1, MIB), (MIB, 10 * MIB), (10 * MIB, 40 * MIB)], [5, 3, 2])[0]
    return choice.randrange(low, high)


class Properties(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("location_type", ctypes.c_int), ("location", ctypes.c_int),
                ("metadata", ctypes.c_void_p), ("flags", ctypes.c_ubyte * 8)]


class Beside:
    """2 MiB at an address of its own, by the driver's calls that expandable segments make, too."""
    SIZE = ctypes.c_size_t(2 * MIB)

    def __init__(self):
        self.cuda, self.address, self.handle = ctypes.CDLL("libcuda.so.1"), ctypes.c_ulonglong(), ctypes.c_ulonglong()
        zero = ctypes.c_ulonglong(0)
        torch.cuda.init()
        assert self.cuda.cuMemAddressReserve(ctypes.byref(self.address), self.SIZE, ctypes.c_size_t(0), zero, zero) == 0
        assert self.cuda.cuMemCreate(ctypes.byref(self.handle), self.SIZE, ctypes.byref(Properties(1, 0, 1, 0)), zero) == 0
        self.mapped = False

    def change(self):
        if self.mapped:
            assert self.cuda.cuMemUnmap(self.address, self.SIZE) == 0
        else:
            assert self.cuda.cuMemMap(self.address, self.SIZE, ctypes.c_size_t(0), self.handle, ctypes.c_ulonglong(0)) == 0
        self.mapped = not self.mapped


def keep(kept, count):
    kept.append(torch.empty(count, dtype=torch.uint8, device="cuda"))


def number(option):
    return int(sys.argv[sys.argv.index(option) + 1]) if option in sys.argv else 0


def main():
    recording.begin()
    kept, keeping, last = [], number("--keeping"), number("--requests")
    left_out = {int(n) for n in sys.argv[sys.argv.index("--not-empty") + 1].split(",")} if "--not-empty" in sys.argv else set()
    in_vain = []  # calls of empty_cache() that had nothing to give back
    beside = Beside() if "--beside" in sys.argv else None
    choice, live, refused, requests = random.Random(int(sys.argv[1])), [], [], 0
    streams = [None] * 2 if "--plain" in sys.argv else [torch.cuda.default_stream(), torch.cuda.Stream()]
    for _ in range(int(sys.argv[2])):
        if last and requests == last:
            break
        if live and (choice.random() < 0.48 or len(live) > 60):
            live.pop(choice.randrange(len(live)))
        else:
            requests += 1
            with torch.cuda.stream(streams[choice.random() < 0.2]):
                try:
                    live.append(torch.empty(size(choice), dtype=torch.uint8, device="cuda"))
                except torch.cuda.OutOfMemoryError:  # its name in all versions
                    refused.append(requests)
                    del live[::2]
        if choice.random() < 0.002 and requests not in left_out:
            reserved = torch.cuda.memory_reserved()
            torch.cuda.empty_cache()
            in_vain += [requests] * (torch.cuda.memory_reserved() == reserved)
        if keeping and requests % 40 == 0:
            keep(kept, keeping)
        if beside and requests % 50 == 0:
            beside.change()
    stats = torch.cuda.memory_stats()
    print(json.dumps({"most_reserved_bytes": stats["reserved_bytes.all.peak"], "most_used_bytes": stats["allocated_bytes.all.peak"],
                      "most_requested_bytes": stats["requested_bytes.all.peak"], "retries": stats["num_alloc_retries"], "requests": requests,
                      "requests_refused": stats["num_ooms"], "first_refused": refused[0] if refused else None,
                      "emptied_in_vain": in_vain}))


main()
