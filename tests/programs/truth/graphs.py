"""A graph network is trained on sampled neighbourhoods, and evaluated on the whole graph at once, which does not fit"""
# standin: DEVICES=500M CONTEXT=64M
# truth: phase_peak
import sys
import torch

PARTS = 16 if "twin" in sys.argv or "batch" in sys.argv else 1
NODES, WIDTH = 120000, 256
first, last = torch.nn.Linear(64, WIDTH).cuda(), torch.nn.Linear(2 * WIDTH, 16).cuda()
optimizer = torch.optim.Adam([*first.parameters(), *last.parameters()])
features = torch.zeros(NODES, 64, device="cuda")


def network(nodes, neighbours):
    own, theirs = torch.relu(first(features[nodes])), torch.relu(first(features[neighbours]))
    return last(torch.cat([own, theirs], dim=1))


def train():
    for step in range(30):
        nodes, neighbours = (torch.zeros(2000, dtype=torch.long, device="cuda") for _ in range(2))
        loss = network(nodes, neighbours).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def evaluate():
    right = 0
    with torch.no_grad():
        for part in range(PARTS):
            nodes = torch.arange(part * NODES // PARTS, (part + 1) * NODES // PARTS, device="cuda")
            right += int((network(nodes, nodes).argmax(dim=1) == 0).sum())
    return right


for epoch in range(3):
    train()
    print("epoch", epoch, evaluate(), flush=True)
