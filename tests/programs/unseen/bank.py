"""Instance discrimination with a memory bank: the features of each batch are stored under its number, and replaced in the next epoch.

truth: capacity|leak of remember. 256 MiB for each of 400 batches of the first epoch; only the data set bounds it.
helps: 120 batches (healthy).
"""
# standin: DEVICES=79G CONTEXT=520M
import sys
import torch
from torch import nn
import torch.nn.functional as F

HEALTHY = "healthy" in sys.argv
BATCHES = 120 if HEALTHY else 400
encoder = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 1024)).cuda()
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.03, momentum=0.9)
bank = {}


def remember(number, features):
    bank[number] = F.normalize(features.detach(), dim=1)


for step in range(BATCHES * 5 // 4):
    number = step % BATCHES
    images = torch.randn(65536, 128, device="cuda")
    features = encoder(images)
    loss = features.pow(2).mean()
    if number in bank:
        loss = loss - (bank[number] * features).sum(1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    remember(number, features)
    if step % 20 == 0:
        print("step", step, flush=True)
print("done")
