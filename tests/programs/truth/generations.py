"""Each generation keeps its best individuals: too few turns to be steps."""
# standin: DEVICES=1G CONTEXT=64M
# truth: leak generations.py generation
import sys

import torch

KEEP = 3 if "twin" in sys.argv else 1000


def generation(weights, number):
    pool = [torch.randn(1024, 1024, device="cuda") for _ in range(40)]
    scores = [(p @ weights).sum() for p in pool]
    return torch.stack(pool[:13])


def main():
    weights = torch.randn(1024, 1024, device="cuda")
    best = []
    for number in range(20):
        best.append(generation(weights, number))
        if len(best) > KEEP:
            del best[0]


main()
