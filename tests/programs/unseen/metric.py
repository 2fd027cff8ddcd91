"""Validation at the end of each epoch: a metric keeps all predictions and targets, and nobody resets it.

truth: leak of validate. 31 MiB a batch, 781 MiB an epoch.
helps: reset() (healthy).
"""
# standin: DEVICES=24G CONTEXT=520M
import sys
import torch
from torch import nn

HEALTHY = "healthy" in sys.argv


class AUROC:
    def __init__(self):
        self.preds, self.targets = [], []

    def update(self, preds, target):
        self.preds.append(preds)
        self.targets.append(target)

    def compute(self):
        hits = sum((p.argmax(1) == t).float().mean() for p, t in zip(self.preds, self.targets))
        return float(hits) / len(self.preds)

    def reset(self):
        self.preds, self.targets = [], []


model = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 1000)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()
metric = AUROC()


def train_epoch():
    model.train()
    for _ in range(50):
        x, y = torch.randn(8192, 512, device="cuda"), torch.randint(0, 1000, (8192,), device="cuda")
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def validate():
    model.eval()
    with torch.no_grad():
        for _ in range(25):
            x, y = torch.randn(8192, 512, device="cuda"), torch.randint(0, 1000, (8192,), device="cuda")
            metric.update(model(x).softmax(1), y)
    return metric.compute()


for epoch in range(40):
    train_epoch()
    score = validate()
    if HEALTHY:
        metric.reset()
    print("epoch", epoch, flush=True)
print("done")
