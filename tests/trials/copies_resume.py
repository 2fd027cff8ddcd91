"""A training resumes from a checkpoint that holds the model twice, as it was and averaged; it was loaded onto the device and is never dropped.

Gradients and Adam's states have the model's sizes, too. The longest document comes late.
"""
# standin: DEVICES=830M CONTEXT=64M
# cause: copies
# follow: drop
import os
import tempfile

import torch
from torch import nn

import trial

STEPS, WORDS, WIDTH, LONGEST = 24, 16000, 512, 17


def build():
    return nn.Sequential(nn.Linear(WIDTH, 3 * WIDTH), nn.ReLU(), nn.Linear(3 * WIDTH, 2 * WIDTH), nn.ReLU(), nn.Linear(2 * WIDTH, WIDTH),
                         nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 5 * WIDTH), nn.ReLU(), nn.Linear(5 * WIDTH, WIDTH), nn.Linear(WIDTH, WORDS))


def save(path):
    average = build().state_dict()
    torch.save({k: (v, average[k]) for k, v in build().state_dict().items()}, path)


def main():
    path = os.path.join(tempfile.mkdtemp(), "last.pt")
    save(path)
    loaded = torch.load(path, map_location="cuda")
    model = build().cuda()
    optimizer = torch.optim.Adam(model.parameters())
    model.load_state_dict({k: now for k, (now, _) in loaded.items()})
    os.remove(path)
    if trial.follows("drop"):
        del loaded
        torch.cuda.empty_cache()
    for step in trial.units(STEPS):
        optimizer.zero_grad()
        model(torch.empty(4900 if step == LONGEST else 900, WIDTH, device="cuda")).sum().backward()
        optimizer.step()


main()
