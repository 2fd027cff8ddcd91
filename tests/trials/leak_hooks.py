"""A forward hook that looks at activations is registered once more at every round, and none is ever removed: all keep what they saw last.

The twin removes the hook when its round is over.
"""
# standin: DEVICES=420M CONTEXT=48M
# cause: leak
# follow: release
import torch
from torch import nn

import trial

ROUNDS, WIDTH = 120, 320


class Probe:
    def __init__(self, layer):
        self.seen, self.handle = None, layer.register_forward_hook(self.look)

    def look(self, layer, inputs, output):
        if self.seen is None:
            self.seen = output.detach().abs()

    def remove(self):
        self.handle.remove()


def main():
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in trial.units(ROUNDS):
        probe = Probe(model[1])
        loss = model(torch.empty(3000, WIDTH, device="cuda")).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if trial.follows("release"):
            probe.remove()


main()
