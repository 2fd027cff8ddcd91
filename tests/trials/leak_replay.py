"""What an agent has seen goes into a replay buffer on the card, of which batches are drawn; nobody gave the buffer a bound.

The twin's forgets the oldest.
"""
# standin: DEVICES=330M CONTEXT=48M
# cause: leak
# follow: release
import collections

import torch
from torch import nn

import trial

STEPS, SEEN = 160, 40


def main():
    agent, replay = nn.Sequential(nn.Linear(SEEN * SEEN, 128), nn.ReLU(), nn.Linear(128, 4)).cuda(), collections.deque()
    optimizer = torch.optim.SGD(agent.parameters(), lr=0.01)
    for step in trial.units(STEPS):
        replay.append(torch.empty(300, SEEN * SEEN, device="cuda"))
        if trial.follows("release") and len(replay) > 30:
            replay.popleft()
        batch = torch.cat([replay[(step * k) % len(replay)][:40] for k in (1, 3, 7)])
        agent(batch).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


main()
