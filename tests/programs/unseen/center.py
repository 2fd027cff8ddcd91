"""Self-distillation: a center follows the mean of the teacher's outputs. Nobody told the teacher not to record its graph.

truth: leak of teacher. The center is a chain through each step's graph of the teacher: its activations, 2 GiB a step, stay.
helps: run the teacher under no_grad (healthy), or detach the mean that goes into the center (fixed).
"""
# standin: DEVICES=79G CONTEXT=520M
import contextlib
import sys
import torch
from torch import nn

HEALTHY, FIXED = "healthy" in sys.argv, "fixed" in sys.argv


def network():
    return nn.Sequential(*[nn.Sequential(nn.Linear(1024, 1024, device="cuda"), nn.GELU()) for _ in range(4)])


student, teacher = network(), network()
optimizer = torch.optim.SGD(student.parameters(), lr=0.01)
center = torch.zeros(1024, device="cuda")
for step in range(60):
    images = torch.randn(65536, 1024, device="cuda")
    with torch.no_grad() if HEALTHY else contextlib.nullcontext():
        target = teacher(images)
    loss = (student(images) - (target - center).detach()).square().mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    mean = target.mean(0).detach() if FIXED else target.mean(0)
    center = 0.9 * center + 0.1 * mean
    print("step", step, flush=True)
print("done")
