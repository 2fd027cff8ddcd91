"""A server of two models, of which one is on the card at a time. A dictionary of runners keeps the parameters of each as it was when it came there.

truth: leak|copies of load. 256 MiB for each swap.
helps: runners by name alone (healthy).
"""
# standin: DEVICES=6G CONTEXT=520M
import sys
import time
import torch

HEALTHY = "healthy" in sys.argv
host = {name: [torch.zeros(4096, 4096, dtype=torch.half) for _ in range(8)] for name in ("small", "large")}
runners = {}
loads = 0
current = None


def load(name):
    global current, loads
    loads += 1
    weights = [w.to("cuda") for w in host[name]]

    def run(x):
        for w in weights:
            x = torch.tanh(x @ w)
        return x
    if HEALTHY:
        runners.clear()
    runners[name, loads] = run
    current = name, run


@torch.no_grad()
def answer(name):
    if current is None or current[0] != name:
        load(name)
    return current[1](torch.randn(256, 4096, device="cuda").half())


for request in range(160):
    answer("large" if request // 5 % 2 else "small")
    time.sleep(0.02)
    if request % 20 == 0:
        print("request", request, flush=True)
print("done")
