"""Results are copied to the host through a pinned buffer of 8 MiB, a new one each time, and whoever waits for them keeps the buffer.

truth: leak of fetch, of the host's pinned memory: 8 MiB each request, 2 GiB at the end; the device is fine.
helps: copy out of one buffer (healthy).
"""
# standin: DEVICES=79G CONTEXT=520M
import sys
import time
import torch

HEALTHY = "healthy" in sys.argv
answers = {}
buffer = torch.empty(2048, 1024, pin_memory=True)


def fetch(result):
    if HEALTHY:
        buffer.copy_(result)
        return buffer[:4].clone()
    host = torch.empty(2048, 1024, pin_memory=True)
    host.copy_(result, non_blocking=True)
    return host


def answer(request):
    x = torch.randn(2048, 4096, device="cuda")
    answers[request] = fetch(torch.tanh(x)[:, :1024].contiguous())
    torch.cuda.synchronize()
    time.sleep(0.003)


for request in range(250):
    answer(request)
    if request % 25 == 0:
        print("request", request, flush=True)
print("done")
