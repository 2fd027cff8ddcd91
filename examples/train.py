"""A small language model, trained on the CPU: what `make demo` traces.

The text is made by a grammar, so nothing is downloaded and every run prints the same losses. Two DataLoader
workers (forked processes) make the batches.

usage: train.py [STEPS]
"""
import random
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

CONTEXT = 64
WIDTH = 128
LAYERS = 4
BATCH = 16

SUBJECTS = ["the tensor", "a gradient", "the optimizer", "every worker", "one batch"]
VERBS = ["allocates", "frees", "copies", "keeps", "forgets"]
OBJECTS = ["a buffer", "two pages", "the cache", "its arena", "nothing"]


def sentence(rng):
    return f"{rng.choice(SUBJECTS)} {rng.choice(VERBS)} {rng.choice(OBJECTS)}. "


class Sentences(Dataset):
    """Item i is made from seed i: the same whichever worker makes it."""

    def __init__(self, items):
        self.items = items

    def __len__(self):
        return self.items

    def __getitem__(self, i):
        rng = random.Random(i)
        text = ""
        while len(text) <= CONTEXT:
            text += sentence(rng)
        codes = torch.tensor([ord(c) for c in text[: CONTEXT + 1]])
        return codes[:-1], codes[1:]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.norm2 = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x, mask):
        h = self.norm1(x)
        x = x + self.attention(h, h, h, attn_mask=mask, is_causal=True, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Embedding(128, WIDTH)
        self.place = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, 128)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(CONTEXT))

    def forward(self, codes):
        x = self.token(codes) + self.place.weight
        for block in self.blocks:
            x = block(x, self.mask)
        return self.head(self.norm(x))


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)

    loader = DataLoader(Sentences(steps * BATCH), batch_size=BATCH, num_workers=2, multiprocessing_context="fork")
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    parameters = sum(p.numel() for p in model.parameters())
    print(f"{parameters / 1e6:.2f} M parameters, {steps} steps of {BATCH} x {CONTEXT} tokens")

    start = time.monotonic()
    for step, (codes, targets) in enumerate(loader, 1):
        loss = F.cross_entropy(model(codes).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0 or step == steps:
            print(f"step {step:4}  loss {loss.item():.4f}")
    # Times go to stderr: stdout is the same in every run.
    print(f"trained in {time.monotonic() - start:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
