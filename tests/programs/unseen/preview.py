"""A video model denoises in steps, and decodes a preview of each step; one clip's previews are freed with it. The last clip takes 400 steps.

truth: leak|capacity of generate. 256 MiB of preview a step are kept until the clip ends: 12 GiB at 50 steps.
helps: previews on the host, or every tenth alone (healthy).
"""
# standin: DEVICES=79G CONTEXT=520M
import sys
import torch
from torch import nn

denoiser = nn.Sequential(nn.Linear(64, 1024), nn.SiLU(), nn.Linear(1024, 64)).cuda()
decoder = nn.Linear(64, 512).cuda()
EVERY = 10 if "healthy" in sys.argv else 1


@torch.no_grad()
def generate(steps):
    x = torch.randn(131072, 64, device="cuda")
    previews = []
    for step in range(steps):
        x = x - denoiser(x) / steps
        if step % EVERY == 0:
            previews.append(decoder(x))
    return torch.stack(previews[-4:]).mean()


for clip, steps in enumerate([50, 50, 60, 50, 400]):
    generate(steps)
    print("clip", clip, flush=True)
print("done")
