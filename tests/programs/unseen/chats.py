"""A chat server with a cache like transformers' DynamicCache, whose keys and values are appended by a line each; sessions are never evicted.

truth: leak update (both lines), 7.4 GiB on a card of 8 GiB.
healthy: an LRU of 32 sessions.
"""
# standin: DEVICES=8G CONTEXT=520M
import collections
import sys
import time
import torch
from torch import nn

layers = nn.ModuleList(nn.Linear(1024, 1024) for _ in range(8)).cuda().half()


class Cache:
    def __init__(self):
        self.keys, self.values = {}, {}

    def update(self, layer, k, v):
        if layer not in self.keys:
            self.keys[layer], self.values[layer] = k, v
        else:
            self.keys[layer] = torch.cat([self.keys[layer], k])
            self.values[layer] = torch.cat([self.values[layer], v])
        return self.values[layer]


sessions = collections.OrderedDict()


@torch.inference_mode()
def answer(session, tokens):
    cache = sessions.setdefault(session, Cache())
    sessions.move_to_end(session)
    x = torch.randn(tokens, 1024, device="cuda").half()
    for number, layer in enumerate(layers):
        x = torch.tanh(x + cache.update(number, layer(x), layer(x))[-tokens:])
    if "healthy" in sys.argv and len(sessions) > 32:
        sessions.popitem(last=False)


for session in range(600):
    for message in range(4):
        answer(session, 100 + 20 * (session % 5))
    time.sleep(0.002)
print("done")
