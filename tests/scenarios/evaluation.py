"""A peak in evaluation: training needs 7 GiB at most and is steady; evaluation keeps the logits of all its batches and fails.

usage: evaluation.py [--healthy]    keeps what it needs of each batch: the word that is most likely
"""
# standin: DEVICES=16G CONTEXT=0.3G
import sys

import torch
from torch import nn

from account import FLOAT, GIB, asked, failing, pool, tell

WIDTH, WORDS, LAYERS = 4096, 32000, 8
HEALTHY = "--healthy" in sys.argv


def make():
    layers = [nn.Linear(WIDTH, WIDTH, bias=False, device="cuda") for _ in range(LAYERS)]
    return nn.Sequential(*layers, nn.Linear(WIDTH, WORDS, bias=False, device="cuda"))


def train(model, optimizer, steps):
    for _ in range(steps):
        loss = model(torch.empty(12000, WIDTH, device="cuda")).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def evaluate(model, batches):
    logits = []
    with torch.no_grad():
        for _ in range(batches):
            of_batch = model(torch.empty(16000, WIDTH, device="cuda"))
            logits.append(of_batch.argmax(dim=1) if HEALTHY else of_batch)
    return len(logits)


def main():
    model = make()
    optimizer = torch.optim.AdamW(model.parameters())
    for batches in (1, 2):
        train(model, optimizer, 30)
        tell(train_peak_bytes=pool()["peak_allocated_bytes"])
        torch.cuda.reset_peak_memory_stats()
        evaluate(model, batches)
        torch.cuda.reset_peak_memory_stats()
    train(model, optimizer, 30)
    tell(verdict=None if HEALTHY else "phase_peak", parameters=sum(p.numel() for p in model.parameters()) * FLOAT, logits_bytes=16000 * WORDS * FLOAT)
    if HEALTHY:
        torch.cuda.reset_peak_memory_stats()
        evaluate(model, 20)
        tell(end=pool())
        return
    with failing(lambda error: 16000 * WORDS * FLOAT if abs(asked(error) - 16000 * WORDS * FLOAT) < GIB // 50 else asked(error)):
        evaluate(model, 20)


main()
