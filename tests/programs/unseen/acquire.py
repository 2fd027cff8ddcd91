"""Active learning: a round trains for a while, then asks which of the unlabelled are worth a label, by twenty passes with dropout.

truth: phase_peak of acquire. All twenty passes' probabilities are stacked, 3 GiB each; training needs 6 GiB.
helps: a running mean (healthy).
"""
# standin: DEVICES=79G CONTEXT=520M
import sys
import torch
from torch import nn

HEALTHY = "healthy" in sys.argv
model = nn.Sequential(nn.Linear(256, 2048), nn.ReLU(), nn.Dropout(0.2), nn.Linear(2048, 1000)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train():
    for step in range(20):
        x = torch.randn(131072, 256, device="cuda")
        loss = model(x).logsumexp(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def acquire(pool):
    if HEALTHY:
        mean = torch.zeros(len(pool), 1000, device="cuda")
        for _ in range(20):
            mean += torch.softmax(model(pool), dim=1) / 20
    else:
        mean = torch.stack([torch.softmax(model(pool), dim=1) for _ in range(20)]).mean(0)
    return (mean * mean.log()).sum(1).topk(1000, largest=False).indices


for round in range(3):
    train()
    print("trained", round, flush=True)
    chosen = acquire(torch.randn(800000 if HEALTHY else 400000 + 400000 * round, 256, device="cuda"))
    print("chosen", round, flush=True)
print("done")
