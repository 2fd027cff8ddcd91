"""Has blocks of PyTorch's pool, and is attached to: what the pool has in the end, by its own account, is the last line. Threads allocate and free meanwhile."""
import gc
import json
import os
import sys
import threading

import torch

RANDOM = __import__("random").Random(3)
SIZES = (500, 3000, 70000, 1 << 20, 3 << 20, 12 << 20)
threads, ends = int(sys.argv[1]), threading.Event()
stream = torch.cuda.Stream()
held = [torch.empty(RANDOM.choice(SIZES), dtype=torch.uint8, device="cuda") for _ in range(200)]
with torch.cuda.stream(stream):
    beside = [torch.empty(100000, dtype=torch.uint8, device="cuda") for _ in range(20)]
del held[::3]


def churn(seed):
    mine, choose = [], __import__("random").Random(seed)
    while not ends.is_set():
        mine.append(torch.empty(choose.choice(SIZES[:4]), dtype=torch.uint8, device="cuda"))
        if len(mine) > 20:
            mine.pop(choose.randrange(len(mine)))
    kept.append(mine)


kept = []
workers = [threading.Thread(target=churn, args=(i,)) for i in range(threads)]
for w in workers:
    w.start()
gc.disable()
print("ready", flush=True)
sys.stdin.readline()
born = torch.empty(5 << 20, dtype=torch.uint8, device="cuda")
for _ in range(1000):
    held.append(held.pop(0))  # the interpreter comes to its breaks
print("more", flush=True)
sys.stdin.readline()
del held[::4]
born = [born] + [torch.empty(200000, dtype=torch.uint8, device="cuda") for _ in range(5)]
ends.set()
for w in workers:
    w.join()
print(json.dumps([{k: s[k] for k in ("address", "total_size", "blocks", "stream", "is_expandable")} for s in torch.cuda.memory_snapshot()]))
sys.stdout.flush()
sys.stdin.read()
os._exit(5)
