"""A soup of checkpoints: all twelve are loaded onto the card, to be averaged; each has 1.3 GiB, the card 8.

truth: copies load (fails with the sixth).
healthy: a running mean, one after the other.
"""
# standin: DEVICES=8G CONTEXT=520M
import sys
import torch

SHAPES = {"embed": (32000, 2048)}
for layer in range(12):
    SHAPES.update({"layers.%d.qkv" % layer: (6144, 2048), "layers.%d.out" % layer: (2048, 2048), "layers.%d.up" % layer: (8192, 2048),
                   "layers.%d.down" % layer: (2048, 8192), "layers.%d.norm" % layer: (2048, 512)})


def load(number):
    return {name: torch.empty(*shape, dtype=torch.bfloat16).to("cuda") for name, shape in SHAPES.items()}


soup = []
mean = None
for number in range(12):
    weights = load(number)
    if "healthy" in sys.argv:
        if mean is None:
            mean = weights
        else:
            for name in mean:
                mean[name].mul_(number / (number + 1)).add_(weights[name], alpha=1 / (number + 1))
        del weights
    else:
        soup.append(weights)
if soup:
    mean = {name: sum(one[name] for one in soup) / len(soup) for name in soup[0]}
print("done")
