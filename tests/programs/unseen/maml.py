"""Meta-learning: each episode adapts a copy of the model, with a backward pass that makes a graph of itself. PyTorch warns of the cycle that this makes.

truth: leak of episode. Each copy and its graph hold each other, 0.7 GiB an episode, though nobody has them any more.
helps: torch.autograd.grad() instead of backward() (healthy).
"""
# standin: DEVICES=79G CONTEXT=520M
import copy
import sys
import torch
from torch import nn

HEALTHY = "healthy" in sys.argv
model = nn.Sequential(nn.Linear(1024, 8192, device="cuda"), nn.Tanh(), nn.Linear(8192, 8192, device="cuda"), nn.Tanh(), nn.Linear(8192, 1024, device="cuda"))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def episode():
    fast = copy.deepcopy(model)
    x = torch.randn(1024, 1024, device="cuda")
    loss = (fast(x) - x).square().mean()
    if HEALTHY:
        grads = torch.autograd.grad(loss, list(fast.parameters()), create_graph=True)
    else:
        loss.backward(create_graph=True)
        grads = [p.grad for p in fast.parameters()]
    penalty = sum(g.square().sum() for g in grads)
    for mine, own in zip(model.parameters(), torch.autograd.grad(loss + 0.1 * penalty, list(fast.parameters()))):
        mine.grad = own
    optimizer.step()


def main():
    for number in range(140):
        episode()
        print("episode", number, torch.cuda.memory_allocated() >> 20, flush=True)


main()
print("done")
