"""Capacity: the activations of a large batch need 2.50 GiB, of 23.69 GiB 1.89 are free, and of the 21.50 reserved 21.45 are in use."""
# standin: DEVICES=23.69G CONTEXT=0.30G
import torch
from torch import nn

from account import FLOAT, GIB, MIB, bytes_of, failing, fill, hole, tell

BATCH, WIDTH = 8192, 16384


def train_step(model, optimizer, batch):
    loss = model(batch).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def main():
    model = nn.Sequential(*[nn.Linear(n, m, bias=False, device="cuda") for n, m in [(4096, WIDTH), (WIDTH, 4096)] * 4])
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        train_step(model, optimizer, torch.empty(16, 4096, device="cuda"))
    torch.cuda.empty_cache()
    held = [hole(12 * MIB, 52 * MIB)]
    held.append(fill(21.50 * GIB))  # the other activations
    tell(verdict="capacity", parameters=sum(p.numel() for p in model.parameters()) * FLOAT)
    with failing(int(2.5 * GIB)):
        held.append(bytes_of(2.5 * GIB))


main()
