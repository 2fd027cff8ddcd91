"""An embedding service appends to its index with torch.cat: the old index and the new one are both there for a moment.

truth: capacity|copies|phase_peak|leak of add. The index is 38 GiB, and one of 39 is asked for beside it.
helps: chunks in a list, or rows allocated once (healthy).
"""
# standin: DEVICES=79G CONTEXT=520M
import sys
import torch
from torch import nn

HEALTHY = "healthy" in sys.argv
encoder = nn.Sequential(nn.Linear(512, 2048, device="cuda"), nn.GELU(), nn.Linear(2048, 1024, device="cuda"))
ROWS, BATCHES = 262144, 60
index = torch.empty(BATCHES * ROWS if HEALTHY else 0, 1024, device="cuda")
used = 0


@torch.inference_mode()
def add(documents):
    global index, used
    vectors = nn.functional.normalize(encoder(documents), dim=1)
    if HEALTHY:
        index[used:used + len(vectors)] = vectors
    else:
        index = torch.cat([index, vectors])
    used += len(vectors)


for batch in range(BATCHES):
    add(torch.randn(ROWS, 512, device="cuda"))
    print("batch", batch, used, flush=True)
print("done")
