"""A speech service on the driver's own allocator (cudaMallocAsync); the encoder's features of each call stay, for a quality report.

truth: leak of encode. 300 MiB of features a call stay in `report`, the rest of a call is freed.
helps: bound the report (healthy), or keep numbers.
"""
# standin: DEVICES=79G CONTEXT=520M
# environment: PYTORCH_ALLOC_CONF=backend:cudaMallocAsync
import collections
import os
import sys
os.environ["PYTORCH_ALLOC_CONF"] = "backend:cudaMallocAsync"
import torch
from torch import nn

encoder = nn.Sequential(nn.Linear(80, 4096, device="cuda"), nn.GELU(), nn.Linear(4096, 1024, device="cuda"))
report = collections.deque(maxlen=5 if "healthy" in sys.argv else None)


@torch.no_grad()
def encode(frames):
    return encoder(torch.randn(frames, 80, device="cuda"))


def serve(call):
    features = encode(76800)
    report.append((call, features))
    return features.argmax(-1)


for call in range(360):
    serve(call)
    print("call", call, flush=True)
print("done")
