"""Each image is seen eight times at test time; model.eval() was called, no_grad() was forgotten, and large scans come now and then.

truth: capacity of predict. The graphs of eight views of a scan are alive at once. All is freed after each scan.
helps: no_grad (healthy).
"""
# standin: DEVICES=79G CONTEXT=520M
import sys
import contextlib
import random
import time
import torch
from torch import nn

random.seed(3)
HEALTHY = "healthy" in sys.argv
model = nn.Sequential(*[nn.Sequential(nn.Linear(1024, 1024), nn.GELU()) for _ in range(6)], nn.Linear(1024, 16)).cuda()
model.eval()


def views(image):
    for number in range(8):
        yield image.roll(number, 0)


def predict(image):
    with torch.no_grad() if HEALTHY else contextlib.nullcontext():
        outputs = [model(view) for view in views(image)]
        return torch.stack(outputs).mean(0).argmax(1)


sizes = [random.choice([16384, 32768, 65536]) for _ in range(60)] + [212992] + [16384] * 10
for number, tokens in enumerate(sizes):
    image = torch.randn(tokens, 1024, device="cuda")
    mask = predict(image)
    time.sleep(0.02)
    print("image", number, flush=True)
print("done")
