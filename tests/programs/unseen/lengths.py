"""A decoder captures a CUDA graph for each length of its input, and keeps all of them; each has a memory pool of its own.

truth: fragmentation|retained of capture. What a capture needed for a moment stays in its graph's pool, 0.1 to 4 GiB a graph, unused.
helps: one pool for all, the longest first (healthy), or fewer lengths.
"""
# standin: DEVICES=79G CONTEXT=520M
import sys
import torch
from torch import nn

HEALTHY = "healthy" in sys.argv
model = nn.Sequential(nn.Linear(2048, 65536, device="cuda"), nn.GELU(), nn.Linear(65536, 2048, device="cuda")).half()
model.requires_grad_(False)
graphs = {}


def capture(length):
    inputs = torch.zeros(length, 2048, dtype=torch.half, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        model(inputs)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    pool = next(iter(graphs.values()))[0].pool() if HEALTHY and graphs else None
    with torch.cuda.graph(graph, pool=pool):
        outputs = model(inputs)
    return graph, inputs, outputs


sizes = range(256, 16385, 256)
for length in reversed(sizes) if HEALTHY else sizes:
    graphs[length] = capture(length)
    graphs[length][0].replay()
    print("captured", length, torch.cuda.memory_allocated() >> 20, torch.cuda.memory_reserved() >> 20, flush=True)
print("done")
