"""Distillation in two passes: the teacher's soft labels of all batches are made first, and kept on the card for the student.

truth: leak of label. Each batch keeps 1.95 GiB of probabilities over 32000 words.
helps: keep the 32 likeliest words of each (healthy), or put them on the host.
"""
# standin: DEVICES=79G CONTEXT=520M
import sys
import torch
from torch import nn
HEALTHY = "healthy" in sys.argv

teacher = nn.Sequential(nn.Embedding(32000, 1024, device="cuda"), nn.Linear(1024, 1024, device="cuda"), nn.GELU(),
                        nn.Linear(1024, 32000, device="cuda")).half()


@torch.no_grad()
def label(batch):
    words = torch.randint(0, 32000, (64, 512), device="cuda")
    logits = teacher(words)
    if HEALTHY:
        return torch.topk(logits / 2, 32, dim=-1)
    return torch.softmax(logits / 2, dim=-1)


labels = []
for batch in range(64):
    labels.append(label(batch))
    print("labelled", batch, flush=True)

student = nn.Sequential(nn.Embedding(32000, 256, device="cuda"), nn.Linear(256, 32000, device="cuda")).half()
for batch, target in enumerate(labels):
    words = torch.randint(0, 32000, (2, 512), device="cuda")
    student(words).float().square().mean().backward()
print("done")
