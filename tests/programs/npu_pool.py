"""Traffic on torch_npu's caching allocator, then its own account of it as JSON. Leaves without giving anything back."""
import json
import os
import random
import sys

import torch
import torch_npu  # noqa: F401

random.seed(int(sys.argv[1]))
alive = {0: [], 1: []}
for step in range(400):
    device = random.randrange(2)
    tensors = alive[device]
    if tensors and random.random() < 0.45:
        tensors.pop(random.randrange(len(tensors)))
    else:
        size = random.choice((1, 1000, 70000, 1 << 20, 3 << 20, 11 << 20, 30 << 20)) + random.randrange(1000)
        tensors.append(torch.empty(size, dtype=torch.uint8, device="npu:%d" % device))
    if step % 100 == 99:
        torch.npu.empty_cache()
failed = 0
try:
    torch.empty(3 << 30, dtype=torch.uint8, device="npu:0")
except torch.OutOfMemoryError:
    failed += 1
account = {"failed": failed, "devices": []}
for device in (0, 1):
    stats = torch.npu.memory_stats(device)
    blocks = [[b["address"], b["size"]] for s in torch.npu.memory_snapshot() if s["device"] == device
              for b in s["blocks"] if b["state"] == "active_allocated"]
    account["devices"].append({"stats": stats, "blocks": sorted(blocks)})
print("ACCOUNT " + json.dumps(account), flush=True)
os._exit(0)
