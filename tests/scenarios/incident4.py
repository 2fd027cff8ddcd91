"""Host RAM (incident 4, bytes / 64): PyArrow's pool, DataLoader's prefetch, model, optimizer, pinned memory and accumulation, in one
process with two workers. In the middle it stands still, with more than it ever has, and reads what /proc says of all three.

usage: incident4.py [--healthy]      reads the table in batches and prefetches one
       incident4.py --endless        goes on to need more after it stood still, until it is killed
       incident4.py --spike BYTES    has that much more while it stands still
       incident4.py --fill BYTES     has so much that all three have that much, and what is prefetched with it
"""
# standin: DEVICES=2G,2G,2G CONTEXT=64M
import os
import sys
import time

import pyarrow as pa
import torch
from torch.utils.data import DataLoader, Dataset

from account import MIB, tell

HEALTHY = "--healthy" in sys.argv
ROWS = 64
SAMPLE = 3 * MIB
WORKERS, AHEAD = 2, 1 if HEALTHY else 8
SPIKE, FILL = (int(sys.argv[sys.argv.index(name) + 1]) if name in sys.argv else size for name, size in (("--spike", 40 * MIB), ("--fill", 0)))


class Samples(Dataset):
    def __len__(self):
        return ROWS

    def __getitem__(self, i):
        return torch.full((SAMPLE,), i % 100, dtype=torch.uint8)


def load_table():
    size = 24 if HEALTHY else 144
    return [pa.array(range(MIB // 8), type=pa.int64()) for _ in range(size)]


def accumulate(total, batch):
    total.append(batch.to(torch.float16))
    return total if len(total) < 6 else []


def proc(pid):
    """What the kernel says of a process: its status and its rollup, in bytes."""
    facts = {}
    for name in ("status", "smaps_rollup"):
        with open("/proc/%d/%s" % (pid, name), encoding="utf-8") as file:
            for line in file:
                words = line.replace(":", " ").split()
                if len(words) == 3 and words[2] == "kB":
                    facts[words[0]] = int(words[1]) * 1024
    return {k: facts[k] for k in ("VmRSS", "RssAnon", "VmSwap", "Pss", "Pss_Anon", "Pss_File", "Pss_Shmem", "Private_Dirty")}


def large():
    """(start, bytes not in memory) of our large private mappings of no file."""
    found = []
    with open("/proc/self/smaps", encoding="utf-8") as file:
        for line in file:
            words = line.split()
            if "-" in words[0] and not words[0].endswith(":"):
                low, high = (int(x, 16) for x in words[0].split("-"))
                is_large = words[1] == "rw-p" and len(words) == 5 and high - low >= 16 * MIB
                found += [[low, 0]] if is_large else []
            elif is_large and words[0] in ("Size:", "Rss:", "Swap:"):
                found[-1][1] += int(words[1]) * 1024 * (1 if words[0] == "Size:" else -1)
    return dict(found)


def work_of(pid):
    """CPU time of a process, or None while one of its threads works or waits for a processor."""
    times, states = 0, set()
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/stat" % (pid, task), encoding="utf-8") as file:
            words = file.read().rsplit(")", 1)[1].split()
        states.add(words[0])
        times += int(words[11]) + int(words[12])
    return times if states == {"S"} else None


def stand_still(workers, total, mapped, old):
    """When the workers have done all they may, so long that the sampler comes by twice while nothing changes (a worker that waits for 5 s looks
    after its parent, and writes to pages it has of it); with more than there ever is, so that this is the fullest moment."""
    work, before = [work_of(pid) for pid in workers], None
    while None in work or work != before:
        time.sleep(1)
        work, before = [work_of(pid) for pid in workers], work
    has = sum(proc(pid)[name] for pid in [os.getpid(), *workers] for name in ("Pss_Anon", "Pss_Shmem")) + WORKERS * AHEAD * SAMPLE
    spike = torch.ones(FILL - has if FILL else SPIKE, dtype=torch.uint8)
    seen, now = 0, 2 * MIB
    while abs(now - seen) > MIB:
        seen = now
        time.sleep(2.5)
        now = sum(proc(pid)["Private_Dirty"] for pid in [os.getpid(), *workers])
    tell(still_ns=time.clock_gettime_ns(time.CLOCK_MONOTONIC), accumulated_bytes=sum(t.nbytes for t in total), workers=workers,
         spike_bytes=spike.nbytes, resident={pid: proc(pid) for pid in [os.getpid(), *workers]},
         untouched_bytes=[sum(n for start, n in large().items() if start in mapped and start not in known) for known in ({}, old)])


def main():
    torch.set_num_threads(1)
    old = large()
    table = load_table()
    model = [torch.ones(12 * MIB // 4) for _ in range(4)]
    optimizer = [torch.ones(12 * MIB // 4) for _ in range(4)]
    mapped = large()  # before there is a driver, that maps what no hook sees
    pinned = [torch.empty(8 * MIB, dtype=torch.uint8).pin_memory() for _ in range(3)]
    loader = DataLoader(Samples(), batch_size=1, num_workers=WORKERS, prefetch_factor=AHEAD, multiprocessing_context="fork")
    total, seen = [], 0
    batches = iter(loader)
    workers = [w.pid for w in batches._workers]
    for i, batch in enumerate(batches):
        total = accumulate(total, batch)
        seen += batch.numel()
        if i == 28:
            stand_still(workers, total, mapped, old)
            while "--endless" in sys.argv:
                model.append(torch.ones(12 * MIB // 4))
    tell(verdict=None if HEALTHY else "host_pressure", pid=os.getpid(), arrow_bytes=pa.total_allocated_bytes(), arrow_peak_bytes=pa.default_memory_pool().max_memory(),
         arrow_backend=pa.default_memory_pool().backend_name, table=len(table), model_bytes=sum(t.nbytes for t in model),
         optimizer_bytes=sum(t.nbytes for t in optimizer), pinned_bytes=sum(t.nbytes for t in pinned),
         pinned_blocks=len(pinned), prefetched_bytes=seen)


main()
