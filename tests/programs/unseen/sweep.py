"""A sweep over widths and learning rates in one process; each trial's model and optimizer are remembered, to take the best one at the end.

truth: leak|copies of trial. The list of results holds every trial's weights, gradients and Adam's state, 2 to 6 GiB a trial.
helps: keep the score and the settings alone (healthy), or the state on the host.
"""
# standin: DEVICES=79G CONTEXT=520M
import sys
import torch
from torch import nn

HEALTHY = "healthy" in sys.argv


def trial(width, lr):
    model = nn.Sequential(*[nn.Sequential(nn.Linear(width, width, device="cuda"), nn.ReLU()) for _ in range(8)])
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for step in range(6):
        inputs = torch.randn(512, width, device="cuda")
        loss = (model(inputs) - inputs).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item(), model, optimizer


def main():
    results = []
    for number in range(32):
        width, lr = [4096, 5120, 6144, 7168][number % 4], 10 ** -(1 + number // 8)
        score, model, optimizer = trial(width, lr)
        print("trial", number, width, lr, flush=True)
        results.append((score, width, lr) if HEALTHY else (score, model, optimizer))
    return min(results, key=lambda r: r[0])


main()
print("done")
