"""Perplexity by a sliding window: the logits of all windows of a document are gathered, to be looked at later; the last document is much longer.

truth: capacity|phase_peak|leak of score. 125 MiB a window, and 700 windows. Those of the documents before are freed.
helps: each window's loss is kept (healthy).
"""
# standin: DEVICES=79G CONTEXT=520M
import sys
import random
import torch
from torch import nn

random.seed(5)
HEALTHY = "healthy" in sys.argv
model = nn.Sequential(nn.Embedding(32000, 512), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 32000)).cuda().half()


@torch.no_grad()
def score(windows):
    kept = []
    for _ in range(windows):
        logits = model(torch.randint(0, 32000, (2048,), device="cuda"))
        kept.append(logits.float().logsumexp(1).mean() if HEALTHY else logits)
    return sum(k.float().mean() for k in kept).item() / windows


for document, windows in enumerate([random.randint(10, 60) for _ in range(24)] + [700]):
    score(windows)
    print("document", document, flush=True)
print("done")
