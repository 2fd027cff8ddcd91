"""Truncated backpropagation was forgotten: the state goes on into the next step with its graph, so that each backward pass is longer.

The twin detaches the state.
"""
# standin: DEVICES=420M CONTEXT=64M
# cause: leak
# follow: detach
import torch
from torch import nn

import trial

STEPS, ROWS, WIDTH = 90, 384, 448


class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen, self.kept, self.out = nn.Linear(96, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 24)

    def forward(self, x, state):
        state = torch.tanh(self.seen(x) + self.kept(state))
        return self.out(state), state


def main():
    memory, state = Memory().cuda(), torch.zeros(ROWS, WIDTH, device="cuda")
    optimizer = torch.optim.SGD(memory.parameters(), lr=0.1)
    for _ in trial.units(STEPS):
        out, state = memory(torch.empty(ROWS, 96, device="cuda"), state)
        out.sum().backward(retain_graph=True)
        optimizer.zero_grad()
        if trial.follows("detach"):
            state = state.detach()


main()
