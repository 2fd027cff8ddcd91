"""A notebook's kernel was left open: its training is over, and its allocator has cached all that the training needed. An evaluation starts.

truth: other_process|retained. The first kernel uses 1 GiB, and has 56 GiB of the card in its cache.
helps: empty_cache() in the first kernel (healthy), or to close it.
"""
# standin: DEVICES=79G CONTEXT=520M
import os
import sys
import torch


def first_kernel(ready, end):
    model = torch.zeros(256, 1024, 1024, device="cuda")
    activations = [torch.ones(1024, 1024, 1024, device="cuda") for _ in range(14)]
    del activations
    if "healthy" in sys.argv:
        torch.cuda.empty_cache()
    torch.cuda.synchronize()
    os.write(ready, b"x")
    os.read(end, 1)
    return model


def evaluate():
    weights = torch.zeros(8, 1024, 1024, 256, device="cuda", dtype=torch.half)
    for batch in range(12):
        hidden = torch.ones(batch + 1, 1024, 1024, 1024, device="cuda", dtype=torch.half)
        score = hidden.mean()
        print("batch", batch, flush=True)
    return weights, score


end, end_in = os.pipe()
ready, ready_in = os.pipe()
child = os.fork()
if child == 0:
    os.close(end_in)
    first_kernel(ready_in, end)
    os._exit(0)
os.read(ready, 1)
try:
    evaluate()
    print("done")
finally:
    os.close(end_in)
    os.wait()
