"""Snapshot ensemble: at the end of each cycle of the learning rate the weights are kept, and at test time all members predict at once.

truth: phase_peak|capacity of predict. Twenty outputs of 4 GiB are stacked; training needs less than 10 GiB.
helps: a running mean (healthy).
"""
# standin: DEVICES=79G CONTEXT=520M
import sys
import copy
import time
import torch
from torch import nn

HEALTHY = "healthy" in sys.argv
model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 8192)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
members = []
for cycle in range(20):
    for step in range(15):
        x, y = torch.randn(16384, 256, device="cuda"), torch.randint(0, 8192, (16384,), device="cuda")
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad(); loss.backward(); optimizer.step()
        time.sleep(0.005)
    members.append(copy.deepcopy(model).eval())
    print("cycle", cycle, flush=True)


@torch.no_grad()
def predict(x):
    if HEALTHY:
        mean = 0
        for member in members:
            mean = mean + member(x).softmax(1) / len(members)
        return mean.argmax(1)
    return torch.stack([member(x).softmax(1) for member in members]).mean(0).argmax(1)


for batch in range(4):
    predict(torch.randn(131072, 256, device="cuda"))
    print("predicted", batch, flush=True)
print("done")
