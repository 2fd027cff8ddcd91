"""Momentum contrast: a queue of keys. Of each batch 64 keys go into it as a slice, which keeps the whole batch's projection.

truth: leak of encode_keys. 256 MiB a step, of which 128 KiB are needed.
helps: the slice is cloned (healthy).
"""
# standin: DEVICES=79G CONTEXT=520M
import sys
import collections
import torch
from torch import nn
import torch.nn.functional as F

HEALTHY = "healthy" in sys.argv
query = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 512)).cuda()
key = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 512)).cuda()
optimizer = torch.optim.SGD(query.parameters(), lr=0.03, momentum=0.9)
queue = collections.deque(maxlen=2048)


@torch.no_grad()
def encode_keys(images):
    for q, k in zip(query.parameters(), key.parameters()):
        k.mul_(0.999).add_(q, alpha=0.001)
    return F.normalize(key(images), dim=1)


for step in range(400):
    images = torch.randn(131072, 128, device="cuda")
    q = F.normalize(query(images), dim=1)
    k = encode_keys(images)
    negatives = torch.cat(list(queue)[-16:]) if queue else k[:64]
    logits = torch.cat([(q * k).sum(1, keepdim=True), q @ negatives.T], dim=1)
    loss = F.cross_entropy(logits / 0.07, torch.zeros(len(q), dtype=torch.long, device="cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    queue.append(k[:64].clone() if HEALTHY else k[:64])
    if step % 20 == 0:
        print("step", step, flush=True)
print("done")
