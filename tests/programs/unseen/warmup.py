"""A search over batch sizes at the start (the largest that fits, less some), then training beside a library that has its own memory on the card.

truth: retained|outside_pool. The pool keeps 60 GiB from the search, training needs 12; the library asks the driver for 24 GiB and fails.
helps: empty_cache() behind the search (healthy).
"""
# standin: DEVICES=79G CONTEXT=520M
import ctypes
import re
import sys
import torch

with open("/proc/self/maps") as maps:
    library = re.search(r"\S*libcudart\.so\S*", maps.read())
runtime = ctypes.CDLL(library[0])
weight = torch.zeros(1024, 1024, device="cuda", requires_grad=True)


def step(batch):
    x = torch.randn(batch, 1024, device="cuda")
    (torch.tanh(x @ weight).square().mean()).backward()
    weight.grad = None


def search():
    batch = 65536
    while True:
        try:
            step(batch * 2)
        except torch.OutOfMemoryError:
            return batch // 8
        batch *= 2


def open_decoder(frames):
    place = ctypes.c_void_p()
    status = runtime.cudaMalloc(ctypes.byref(place), ctypes.c_size_t(frames << 20))
    if status:
        raise RuntimeError("decoder: no memory for %d frames (error %d)" % (frames, status))
    return place


batch = search()
print("batch", batch, torch.cuda.memory_reserved() >> 20, flush=True)
if "healthy" in sys.argv:
    torch.cuda.empty_cache()
surfaces = [open_decoder(8192)]
for number in range(24):
    step(batch)
    if number % 8 == 7:
        surfaces.append(open_decoder(8192))
    print("step", number, flush=True)
print("done")
