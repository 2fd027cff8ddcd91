"""What only looks ill on a host: looks.py KIND [--sick]. The sick twin is what it looks like."""
import collections
import ctypes
import json
import mmap
import os
import sys
import tempfile
import time

STEPS, MIB = 150, 1 << 20
EACH = 12000  # texts that a worker looks at in a step


def tell(**facts):
    print("ACCOUNT " + json.dumps(facts), flush=True)


def steps(work, count=STEPS):
    """A loop that also makes and frees something in each step, and takes long enough to be sampled."""
    for number in range(count):
        batch = [bytearray(40000 + 8000 * k) for k in range(20)]
        work(number)
        del batch
        time.sleep(0.02)


def lru(sick):
    """A cache that forgets the oldest when it is full; sick: one that has no end."""
    cache, room = collections.OrderedDict(), STEPS if sick else 30

    def work(number):
        cache[number] = bytearray(MIB)
        if len(cache) > room:
            cache.popitem(last=False)
    steps(work)
    tell(kept_bytes=len(cache) * MIB)


def mapped(sick):
    """A table of a file that is read through a mapping; sick: into a list."""
    with tempfile.TemporaryFile() as file:
        for _ in range(STEPS):
            file.write(os.urandom(MIB))
        file.flush()
        pages, rows = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ), []

        def work(number):
            if sick:
                rows.append(bytearray(pages[number * MIB:(number + 1) * MIB]))
            else:
                sum(pages[number * MIB:(number + 1) * MIB:4096])
        steps(work)
        tell(status=status(), kept_bytes=len(rows) * MIB)


def touched(sick):
    """A worker that looks at what its parent made, whose reference counts lie in the same pages; sick: that copies it."""
    data = [str(k) for k in range(STEPS * EACH)]
    worker = os.fork()
    if worker == 0:
        before, kept = status()["private_dirty"], []

        def work(number):
            for text in data[number * EACH:(number + 1) * EACH]:
                pass
            if sick:
                kept.append(bytearray(MIB // 4))
        steps(work)
        tell(worker=os.getpid(), copied_bytes=status()["private_dirty"] - before, kept_bytes=len(kept) * MIB // 4)
        sys.stdout.flush()
        time.sleep(4)  # it is seen once more as it is now, on a busy machine too
        os._exit(0)
    os.waitpid(worker, 0)


def spike(sick):
    """Many small blocks for a moment, of which one in a hundred stays and holds its pages; sick: all stay, and more come."""
    blocks, peak = [], 400 * MIB // 2000

    def work(number):
        if number == 20:
            blocks.extend(bytes(1960) for _ in range(peak))
            if not sick:
                blocks[:] = blocks[::100]
        if sick and number > 20:
            blocks.extend(bytes(1960) for _ in range(500))
    steps(work)
    tell(status=status(), kept_blocks=len(blocks))


def copying(sick):
    """A model's arrays are copied one after the other, each through what is freed again; sick: copies of one array are kept, each a new one."""
    model, copies = [bytearray(MIB // 2 + MIB // 8 * (i * i % 5)) for i in range(STEPS)], []

    def work(number):
        copies.append(bytearray(bytes(model[0 if sick else number])))
    steps(work)
    tell(kept_bytes=sum(map(len, copies)))


def ending(sick):
    """What a program has it frees as it ends; sick: long before, and its allocator keeps the pages."""
    blocks = [bytes(1960) for _ in range(120 * MIB // 2000)]
    time.sleep(1 if sick else 6)
    blocks[:] = blocks[::100]
    time.sleep(6 if sick else 1.1)  # it is sampled once more
    tell(freed_bytes=120 * MIB // 2000 * 99 // 100 * 2000)
    if sick:  # the last look may fall into an interpreter's end, which gives all of it back
        sys.stdout.flush()
        os._exit(0)


def status():
    """Of this process, from the kernel, in bytes."""
    found = {}
    with open("/proc/self/smaps_rollup", encoding="ascii") as file:
        for line in file:
            name, *rest = line.split()
            if name in ("Rss:", "Private_Dirty:"):
                found[name[:-1].lower()] = int(rest[0]) << 10
    with open("/proc/self/status", encoding="ascii") as file:
        for line in file:
            if line.startswith(("RssAnon", "RssFile")):
                found[line.split(":")[0]] = int(line.split()[1]) << 10
    return found


getattr(ctypes.CDLL(None), "memtrace_start", lambda: None)()
globals()[sys.argv[1]]("--sick" in sys.argv)
