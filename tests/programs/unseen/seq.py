"""Inference without no_grad: model.eval() alone. Each answer's score is kept in a list of results, with its graph.

truth: leak. 544 MiB a request; nothing ever calls backward.
helps: no_grad (healthy), or .item().
"""
# standin: DEVICES=79G CONTEXT=520M
import sys
import time
import contextlib
import torch
from torch import nn

HEALTHY = "healthy" in sys.argv
model = nn.Sequential(*[nn.Sequential(nn.Linear(1024, 1024), nn.GELU()) for _ in range(8)], nn.Linear(1024, 64)).cuda()
model.eval()
results = []


def generate(x):
    with torch.no_grad() if HEALTHY else contextlib.nullcontext():
        return model(x).mean()


for request in range(200):
    results.append(generate(torch.randn(8192, 1024, device="cuda")))
    time.sleep(0.01)
    if request % 20 == 0:
        print("request", request, flush=True)
print("done")
