"""A server with a pool of threads; each thread loads a model of its own when it answers for the first time.

truth: copies|leak of load. 48 threads, 1.8 GiB each.
helps: one model for all (healthy), or fewer threads.
"""
# standin: DEVICES=79G CONTEXT=520M
import concurrent.futures
import sys
import threading
import time
import torch
from torch import nn

HEALTHY = "healthy" in sys.argv
local = threading.local()


def load():
    return nn.Sequential(*[nn.Sequential(nn.Linear(4096, 4096, device="cuda"), nn.ReLU()) for _ in range(28)])


shared = load()


def answer(request):
    if not hasattr(local, "model"):
        local.model = shared if HEALTHY else load()
    with torch.no_grad():
        result = local.model(torch.randn(64, 4096, device="cuda")).mean()
    time.sleep(0.002)
    return float(result)


with concurrent.futures.ThreadPoolExecutor(48) as pool:
    for number, result in enumerate(pool.map(answer, range(600))):
        if number % 50 == 0:
            print("answered", number, flush=True)
print("done")
