"""The optimizer is switched from SGD to Adam in the middle of the run, and Adam's state does not fit.

truth: capacity. Weights and gradients are 22 GiB each, Adam's state is 44. No input is to blame: it is 16 MiB.
helps: SGD (healthy), or an optimizer that keeps less.
"""
# standin: DEVICES=79G CONTEXT=520M
import sys
import torch
from torch import nn

HEALTHY = "healthy" in sys.argv
model = nn.Sequential(*[nn.Sequential(nn.Linear(8192, 8192, bias=False, device="cuda"), nn.ReLU()) for _ in range(88)])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(60):
    if step == 40:
        optimizer = (torch.optim.SGD if HEALTHY else torch.optim.Adam)(model.parameters(), lr=1e-4)
    x = torch.randn(512, 8192, device="cuda")
    loss = (model(x) - x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("step", step, flush=True)
print("done")
