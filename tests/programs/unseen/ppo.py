"""PPO: a rollout is stored, learned from and cleared. Of the lists that the buffer has, one is not cleared.

truth: leak of act. 40 MiB of value features an iteration stay; it ends long before that matters, after 160 iterations with 6 GiB.
helps: clear that list, too (healthy).
"""
# standin: DEVICES=79G CONTEXT=520M
import sys
import torch
from torch import nn

body = nn.Sequential(nn.Linear(64, 1024), nn.Tanh(), nn.Linear(1024, 640), nn.Tanh()).cuda()
policy, value = nn.Linear(640, 8).cuda(), nn.Linear(640, 1).cuda()
optimizer = torch.optim.Adam([*body.parameters(), *policy.parameters(), *value.parameters()], lr=3e-4)
states, logits, features = [], [], []


@torch.no_grad()
def act(state):
    feature = body(state)
    states.append(state); logits.append(policy(feature))
    features.append(feature)


def learn():
    for epoch in range(3):
        for state, old in zip(states, logits):
            hidden = body(state)
            loss = (policy(hidden) - old).square().mean() + value(hidden).square().mean()
            optimizer.zero_grad(); loss.backward(); optimizer.step()


def clear():
    states.clear(); logits.clear()
    if "healthy" in sys.argv:
        features.clear()


for iteration in range(160):
    for _ in range(4):
        act(torch.randn(4096, 64, device="cuda"))
    learn()
    clear()
    if iteration % 10 == 0:
        print("iteration", iteration, torch.cuda.memory_allocated() >> 20, flush=True)
print("done")
