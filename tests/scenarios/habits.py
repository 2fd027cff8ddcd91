"""What people do in programs of their own: habits.py KIND [--sick]. The sick twin keeps what the other lets go."""
import asyncio
import ctypes
import json
import random
import os
import sys
import time

SICK, MIB = "--sick" in sys.argv, 1 << 20


def tell(**facts):
    print("ACCOUNT " + json.dumps(facts), flush=True)


def begin():
    getattr(ctypes.CDLL(None), "memtrace_start", lambda: None)()


def step(number):
    getattr(ctypes.CDLL(None), "memtrace_step", lambda _: None)(ctypes.c_uint64(number))


def batch():
    return [bytearray(30000 + 8000 * k) for k in range(10)]


def epochs():
    """What a step gives is gathered and thrown away at an epoch's end, the last of which is in the eleventh twelfth of the run."""
    kept = []
    for number in range(300):
        images = batch()
        kept.append(bytearray(len(images) * 20000))
        if not SICK and number in (40, 265):
            kept.clear()
        time.sleep(0.001)
    tell(kept_bytes=200000 * len(kept))


def walk():
    """A crop of very different size of each batch is kept: what is kept is a random walk. Healthy: only the last ten."""
    dice, kept = random.Random(3), []
    for _ in range(300):
        images = [bytearray(dice.randrange(100, 900) ** 2 * 3) for _ in range(dice.randrange(2, 10))]
        kept.append(bytearray(images[0][::4]))
        if not SICK:
            del kept[:-10]
        time.sleep(0.001)
    tell(kept_bytes=sum(map(len, kept)))


def load():
    """A data set is read into a list, which takes a third of the time; sick: batches are kept while it is worked with."""
    rows, kept = [], []
    for _ in range(60):
        rows.append(bytearray(MIB))
        time.sleep(0.02)
    for number in range(240 if SICK else 3):  # healthy: nothing that recurs as often
        images = [bytearray(rows[(number + k) % 60][:40000 + 8000 * k]) for k in range(10)]
        if SICK:
            kept.append(images[0] * 2)
        time.sleep(0.01 if SICK else 1)
    tell(kept_bytes=sum(map(len, kept)))


def tokens():
    """A tokenizer's cache of lists of numbers, the largest part of which lies in the interpreter's arenas; healthy: with a bound."""
    dice, cache = random.Random(1), {}
    words = ["w%05d" % k for k in range(30000)]
    for number in range(500):
        step(number)
        texts = [" ".join(dice.choices(words, k=30)) for _ in range(32)]
        for text in texts:
            if not SICK and len(cache) >= 1000:
                cache.pop(next(iter(cache)))
            cache[text] = [hash(text[k:k + 4]) % 50000 for k in range(0, len(text), 2)]
    tell(entries=len(cache))


def tasks():
    """A task for each request, which holds its body; sick: none is ever answered. Nothing that the heap sees is freed meanwhile."""
    pending = set()

    async def handle(body, answered):
        text = body.decode()
        await answered.wait()
        return len(text)

    async def serve():
        for _ in range(1000):
            answered = asyncio.Event()
            task = asyncio.create_task(handle(bytes(30000), answered))
            pending.add(task)
            task.add_done_callback(pending.discard)
            if not SICK:
                answered.set()
            await asyncio.sleep(0.001)
        tell(pending=len(pending))
        for task in list(pending):
            task.cancel()
    asyncio.run(serve())


def shapes():
    """Batches that are longer in each step: oneDNN keeps a kernel for each shape, up to a bound."""
    import torch
    begin()
    torch.set_num_threads(1)
    layers = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 64))
    for number in range(150):
        layers(torch.randn(40 * (5 + number), 64)).square().mean().backward()
    sys.stdout.flush()
    os._exit(0)  # on a busy machine tearing PyTorch down takes half as long as all this


if sys.argv[1] != "shapes":
    begin()
globals()[sys.argv[1]]()
