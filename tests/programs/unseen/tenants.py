"""A server of one base model and an adapter for each tenant: at a tenant's first request the adapter is merged into a copy of the weights.

truth: leak|copies of merge. The dictionary of merged weights has no bound: 2 GiB for each tenant that ever asked.
helps: keep the last eight (healthy), or don't merge.
"""
# standin: DEVICES=79G CONTEXT=520M
import collections
import random
import sys
import torch

HEALTHY = "healthy" in sys.argv
WIDTH, LAYERS = 8192, 16
random.seed(7)
base = [torch.randn(WIDTH, WIDTH, dtype=torch.bfloat16, device="cuda") for _ in range(LAYERS)]
merged = collections.OrderedDict()


def merge(tenant):
    layers = []
    for weight in base:
        down, up = (torch.randn(*shape, dtype=torch.bfloat16, device="cuda") for shape in ((16, WIDTH), (WIDTH, 16)))
        layers.append(torch.addmm(weight, up, down))
    return layers


@torch.inference_mode()
def answer(tenant):
    if tenant not in merged:
        if HEALTHY and len(merged) == 8:
            merged.popitem(last=False)
        merged[tenant] = merge(tenant)
    x = torch.randn(256, WIDTH, dtype=torch.bfloat16, device="cuda")
    for weight in merged[tenant]:
        x = torch.tanh(x @ weight)
    return x.float().mean().item()


for request in range(300):
    answer(random.randrange(120))
    print("request", request, len(merged), flush=True)
print("done")
