"""A random program with what real ones have: the default stream alone, first, or beside others; pinned memory, several devices, several threads,
CUDA graphs that are captured, replayed and dropped, record_stream(), expandable segments on and off by turns, an emptied cache, and
requests that are tried again, smaller, where they failed. Which of these a program has is drawn from its seed. Threads take turns, so that each
run of a seed is the same. Says what PyTorch counted on each device.

usage: mixed.py SEED COUNT [--only WORD,WORD] [--not-empty N,N]
    --only       with these habits alone: others, late, devices, threads, pinned, graphs, record, turns, empty, again
    --not-empty  without these calls of empty_cache(), by number
"""
import ctypes
import json
import queue
import random
import sys
import threading
import warnings

import torch

MIB = 1 << 20
HABITS = ("others", "late", "devices", "threads", "pinned", "graphs", "record", "turns", "empty", "again")

warnings.filterwarnings("ignore", "The CUDA Graph is empty")


getattr(ctypes.CDLL(None), "memtrace_start", lambda: None)()


def option(name):
    return sys.argv[sys.argv.index(name) + 1].split(",") if name in sys.argv else None


def number_of(device):
    """Requests so far."""
    stats = torch.cuda.memory_stats(device)
    return stats["allocation.all.allocated"] + stats["num_ooms"]


class Worker:
    """A thread that does one thing after the other, while who asked waits."""

    def __init__(self):
        self.orders, self.answers = queue.Queue(), queue.Queue()
        threading.Thread(target=self.work, daemon=True).start()

    def work(self):
        for order in iter(self.orders.get, None):
            try:
                self.answers.put((order(), None))
            except Exception as why:
                self.answers.put((None, type(why)))

    def do(self, order):
        self.orders.put(order)
        answer, why = self.answers.get()
        if why:
            raise why()
        return answer


class Here:
    def do(self, order):
        return order()


class Program:
    def __init__(self, seed, only):
        self.rng = rng = random.Random(seed)
        drawn = {habit for habit in HABITS if rng.random() < 0.45}
        self.has = set(only) if only else drawn
        self.devices = range(torch.cuda.device_count() if "devices" in self.has else 1)
        self.threads = [Here()] + [Worker() for _ in range(rng.randrange(1, 4))] * ("threads" in self.has)
        self.streams = {d: [None] for d in self.devices}  # the default one
        self.late = rng.randrange(10, 60) if "late" in self.has else 0  # requests until another stream is made, or a second device is used
        self.live, self.pinned, self.graphs, self.refused, self.in_vain = [], [], [], {d: [] for d in self.devices}, []
        self.used = set()  # devices
        self.emptied, self.made = 0, 0

    def size(self):
        low, high = self.rng.choices([(1, MIB), (MIB, 10 * MIB), (10 * MIB, 40 * MIB)], [5, 3, 2])[0]
        return self.rng.randrange(low, high)

    def request(self, device, size, stream=None):
        self.used.add(device)
        try:
            with torch.cuda.stream(stream):
                self.live.append(torch.empty(size, dtype=torch.uint8, device="cuda:%d" % device))
            return True
        except torch.cuda.OutOfMemoryError:  # its name in all versions
            self.refused[device].append(number_of(device))
            return False

    def ask(self, capturing=False):
        device = self.rng.choice(self.devices) if self.made >= self.late else 0
        stream, size, thread = self.rng.choice(self.streams[device]), self.size(), self.rng.choice(self.threads)
        if thread.do(lambda: self.request(device, size, stream)):
            return
        if "again" in self.has and thread.do(lambda: self.request(device, size // 4 + 1, stream)):
            return
        del self.live[::2]

    def free(self):
        if not self.live:
            return
        tensor = self.live.pop(self.rng.randrange(len(self.live)))
        if "record" in self.has and self.rng.random() < 0.2:
            tensor.record_stream(self.rng.choice(self.streams[tensor.device.index]) or torch.cuda.default_stream(tensor.device))

    def prepare(self):
        """A batch in pinned memory, and its copy."""
        if self.pinned and self.rng.random() < 0.5:
            self.pinned.pop(0)
        size = self.size() // 4 + 1
        self.pinned.append(torch.empty(size, dtype=torch.uint8, pin_memory=True))
        if self.rng.random() < 0.5:
            device = self.rng.choice(self.devices)
            self.used.add(device)
            try:
                self.live.append(self.pinned[-1].to("cuda:%d" % device, non_blocking=True))
            except torch.cuda.OutOfMemoryError:
                self.refused[device].append(number_of(device))
                del self.live[::2]

    def empty(self):
        self.emptied += 1
        if self.emptied in self.not_empty:
            return
        reserved = [torch.cuda.memory_reserved(d) for d in self.devices]
        torch.cuda.empty_cache()
        if reserved == [torch.cuda.memory_reserved(d) for d in self.devices]:
            self.in_vain.append(self.emptied)

    def capture(self):
        pool = self.rng.choice(self.graphs).pool() if self.graphs and self.rng.random() < 0.5 else None
        graph, ok = torch.cuda.CUDAGraph(), True
        with torch.cuda.device(0), torch.cuda.graph(graph, pool=pool, stream=self.capturing):
            for _ in range(self.rng.randrange(1, 8)):
                if len(self.live) > 3 and self.rng.random() < 0.3:
                    self.free()
                ok = ok and self.request(0, self.size() // 2 + 1, self.capturing)
                if self.live and self.rng.random() < 0.4:
                    self.live.pop()
        self.graphs.append(graph)
        if not ok:
            del self.live[::2]

    def graph(self):
        what = self.rng.random()
        if not self.graphs or what < 0.4:
            self.capture()
        elif what < 0.8:
            self.rng.choice(self.graphs).replay()
        else:
            self.graphs.pop(self.rng.randrange(len(self.graphs))).reset()

    def turn(self):
        torch.cuda.memory._set_allocator_settings("expandable_segments:%s" % self.rng.choice(["True", "False"]))

    def others(self):
        for d in self.devices:
            self.streams[d] += [torch.cuda.Stream(d) for _ in range(self.rng.randrange(1, 3))]
            if self.rng.random() < 0.3:
                self.streams[d].pop(0)  # and never the default one again

    def step(self):
        self.made += 1
        if "others" in self.has and self.made == self.late + 1:
            self.others()
        if self.live and (self.rng.random() < 0.46 or len(self.live) > 60):
            self.free()
        else:
            self.ask()
        for habit, share, act in (("pinned", 0.03, self.prepare), ("empty", 0.003, self.empty), ("graphs", 0.02, self.graph), ("turns", 0.01, self.turn)):
            if habit in self.has and self.rng.random() < share:
                act()


def main():
    program = Program(int(sys.argv[1]), option("--only"))
    program.not_empty = {int(n) for n in option("--not-empty") or ()}
    program.capturing = torch.cuda.Stream(0) if "graphs" in program.has else None
    for _ in range(int(sys.argv[2])):
        program.step()
    counted = {}
    for d in program.devices:
        stats = torch.cuda.memory_stats(d)
        if d in program.used:
            counted[d] = {"most_reserved_bytes": stats["reserved_bytes.all.peak"], "most_used_bytes": stats["allocated_bytes.all.peak"],
                          "most_requested_bytes": stats["requested_bytes.all.peak"], "retries": stats["num_alloc_retries"],
                          "requests": number_of(d), "requests_refused": stats["num_ooms"],
                          "first_refused": program.refused[d][0] if program.refused[d] else None}
    print(json.dumps({"has": sorted(program.has), "devices": counted, "emptied_in_vain": program.in_vain}))


main()
