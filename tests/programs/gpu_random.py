"""Random traffic through PyTorch's caching allocator: sizes, devices, streams, caches emptied, more than there is. At MOMENTS random moments it
makes a mark `moment N` and writes what PyTorch says of itself; at the end what its memory history says.

usage: gpu_random.py SEED STEPS MOMENTS OUTPUT PEERS ROOM    waits until PEERS processes that write to OUTPUT's folder have their contexts;
                                                             then takes all of each device but ROOM bytes, unless that is 0
"""
import ctypes
import json
import os
import random
import sys
import time

import torch

SEED, STEPS, MOMENTS = map(int, sys.argv[1:4])
MIB = 1 << 20
COUNTERS = ["allocation", "allocated_bytes", "segment", "reserved_bytes", "active", "active_bytes"]
SHIM = ctypes.CDLL(None)


def tell_shim(name, *arguments):
    function = getattr(SHIM, name, None)
    if function:
        function(*arguments)


def uuid(device):
    return "GPU-" + str(torch.cuda.get_device_properties(device).uuid)


def size_of(rng):
    return rng.choice([rng.randrange(1, 4096), rng.randrange(1, MIB), rng.randrange(MIB, 10 * MIB), rng.randrange(10 * MIB, 150 * MIB)])


class Traffic:
    def __init__(self):
        self.rng = random.Random(SEED)
        self.devices = range(torch.cuda.device_count())
        self.streams = {d: [torch.cuda.default_stream(d), torch.cuda.Stream(d), torch.cuda.Stream(d)] for d in self.devices}
        self.tensors = []
        self.caught = 0

    def allocate(self, device, size):
        stream = self.rng.choice(self.streams[device])
        try:
            with torch.cuda.stream(stream):
                self.tensors.append(torch.empty(size, dtype=torch.uint8, device=device))
        except torch.OutOfMemoryError:
            self.caught += 1
            for _ in range(len(self.tensors) // 2):
                self.free()

    def free(self):
        if self.tensors:
            self.tensors.pop(self.rng.randrange(len(self.tensors)))

    def share_and_free(self):
        """A tensor that another stream uses: its block comes back later than the tensor goes."""
        if self.tensors:
            tensor = self.tensors.pop(self.rng.randrange(len(self.tensors)))
            tensor.record_stream(self.rng.choice(self.streams[tensor.device.index]))

    def step(self):
        device = self.rng.choice(self.devices)
        dice = self.rng.random()
        if dice < 0.55:
            self.allocate(device, size_of(self.rng))
        elif dice < 0.90:
            self.free()
        elif dice < 0.97:
            self.share_and_free()
        elif dice < 0.99:
            torch.cuda.empty_cache()
        else:
            self.allocate(device, torch.cuda.mem_get_info(device)[1] * self.rng.randrange(1, 5) // 2)


def settle(device):
    """What streams still held is given back at the next allocation after they are done."""
    torch.cuda.synchronize(device)
    try:
        torch.empty(1, device=device)
    except torch.OutOfMemoryError:
        pass  # a neighbour has it all; what was held is given back all the same


def moment(number, devices):
    for device in devices:
        settle(device)
    tell_shim("memtrace_mark", b"moment %d" % number)
    snapshot = torch.cuda.memory_snapshot()
    facts = {}
    for device in devices:
        stats = torch.cuda.memory_stats(device)
        mine = [s for s in snapshot if s["device"] == device]
        facts[uuid(device)] = {
            "stats": {c: {k: stats["%s.all.%s" % (c, k)] for k in ("allocated", "freed", "current", "peak")} for c in COUNTERS},
            "ooms": stats["num_ooms"], "retries": stats["num_alloc_retries"],
            "segments": sorted([s["address"], s["total_size"], s["is_expandable"]] for s in mine),
            "blocks": sorted([b["address"], b["size"], b["state"], s["stream"]] for s in mine for b in s["blocks"])}
    return facts


def meet(peers):
    """A context, too, is memory that a neighbour may have taken."""
    folder = os.path.dirname(sys.argv[4])
    with open(sys.argv[4] + ".ready", "w", encoding="utf-8"):
        pass
    while sum(name.endswith(".ready") for name in os.listdir(folder)) < peers:
        time.sleep(0.01)


def take(device, room):
    """On a large device, so that traffic still meets its end."""
    while True:  # what the device says is free it may not have in one piece
        try:
            return torch.empty(max(torch.cuda.mem_get_info(device)[0] - room, 1), dtype=torch.uint8, device=device)
        except torch.OutOfMemoryError:
            room += 64 * MIB


def main():
    tell_shim("memtrace_start")
    for device in range(torch.cuda.device_count()):
        torch.cuda.synchronize(device)
    meet(int(sys.argv[5]))
    torch.cuda.memory._record_memory_history(max_entries=10**7, context=None)
    traffic = Traffic()
    ballast = [take(device, int(sys.argv[6])) for device in traffic.devices if int(sys.argv[6])]
    when = set(traffic.rng.sample(range(1, STEPS - 1), MOMENTS - 1))
    moments = []
    for step in range(STEPS):
        traffic.step()
        if step in when:
            moments.append(moment(len(moments), traffic.devices))
    moments.append(moment(len(moments), traffic.devices))
    history = torch.cuda.memory._snapshot()["device_traces"]
    with open(sys.argv[4], "w", encoding="utf-8") as file:
        json.dump({"pid": os.getpid(), "moments": moments, "caught": traffic.caught,
                   "history": {uuid(d): [[e["action"], e.get("addr", 0), e["size"], e["stream"]] for e in history[d]] for d in traffic.devices}}, file)
    os._exit(0)  # with its tensors: what an interpreter frees at its end is not in PyTorch's figures


main()
