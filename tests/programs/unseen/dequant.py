"""A model of 18 GiB in int8 is served; each layer keeps its weights as float beside them once they were needed.

truth: copies|capacity|leak of forward. `self.dense` of each layer is four times as large as the int8 weights, and all of them stay.
helps: not to keep what was dequantized (healthy), or to drop the int8.
"""
# standin: DEVICES=79G CONTEXT=520M
import sys
import torch
from torch import nn

HEALTHY = "healthy" in sys.argv


class Quantized(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.randint(-128, 127, (width, width), dtype=torch.int8, device="cuda")
        self.scale = torch.ones(width, 1, device="cuda")
        self.dense = None

    def forward(self, x):
        if HEALTHY:
            return x @ (self.weight * self.scale)
        if self.dense is None:
            self.dense = self.weight * self.scale
        return x @ self.dense


model = nn.Sequential(*[Quantized(8192) for _ in range(288)])
with torch.inference_mode():
    for request in range(3):
        model(torch.randn(16, 8192, device="cuda"))
        print("request", request, flush=True)
print("done")
