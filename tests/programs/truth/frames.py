"""A video model whose decoder (a library with memory of its own, beside PyTorch's pool) leaks a surface with each clip"""
# standin: DEVICES=1400M CONTEXT=64M
# truth: leak frames.py decode
import ctypes
import sys
import torch

TWIN = "twin" in sys.argv or "release" in sys.argv
driver = ctypes.CDLL("libcudart.so.13")


def decode(size):
    surface = ctypes.c_void_p()
    if driver.cudaMalloc(ctypes.byref(surface), ctypes.c_size_t(size)):
        raise MemoryError("decoder: out of device memory")
    return surface


def main():
    model = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 1024)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(200):
        surface = decode(8 << 20)
        loss = model(torch.randn(256, 1024, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if TWIN:
            driver.cudaFree(surface)
        print("step", step, flush=True)


main()
