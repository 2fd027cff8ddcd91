"""A diffusion model draws pictures in fifty steps, and its loop has forgotten no_grad: the graph of all steps so far hangs on the picture"""
# standin: DEVICES=700M CONTEXT=64M
# truth: leak sampler.py <module>
import contextlib
import sys
import torch

no_grad = torch.no_grad() if "twin" in sys.argv or "no_grad" in sys.argv else contextlib.nullcontext()
torch.manual_seed(0)
denoiser = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.SiLU(), torch.nn.Linear(512, 512), torch.nn.SiLU(), torch.nn.Linear(512, 64)).cuda()
for picture in range(3):
    x = torch.randn(8, 256, 64, device="cuda")
    with no_grad:
        for t in range(50):
            noise = denoiser(x)
            x = x - 0.02 * noise
    print("picture", picture, flush=True)
