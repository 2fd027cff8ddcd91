"""Beam search with four beams: finished hypotheses are stored with their state, and the results of all sentences are kept for a list of the best.

truth: leak of reorder. 8.75 MiB a sentence.
helps: tokens and scores alone are stored (healthy).
"""
# standin: DEVICES=6G CONTEXT=520M
import sys
import torch
from torch import nn

HEALTHY = "healthy" in sys.argv
LAYERS, BEAMS, WIDTH = 8, 4, 512
cell = nn.Linear(WIDTH, WIDTH).cuda().half()
head = nn.Linear(WIDTH, 32000).cuda().half()


def reorder(cache, order):
    return cache.index_select(1, order)


def step(cache, x):
    new = cell(x)[None, :, None].expand(LAYERS, BEAMS, 1, WIDTH)
    cache = new.clone() if cache is None else torch.cat([cache, new], dim=2)
    return cache, head(cache[-1, :, -1]).log_softmax(1)


@torch.no_grad()
def translate(sentence):
    cache, finished = None, []
    x = torch.randn(BEAMS, WIDTH, device="cuda").half()
    for t in range(1, 65):
        cache, scores = step(cache, x)
        best = scores.flatten().topk(BEAMS)
        order = torch.arange(BEAMS, device="cuda")
        cache = reorder(cache, order)
        if t >= 16 and t % 8 == 0:
            finished.append((best.values[0], t, None if HEALTHY else cache))
    return finished


nbest = []
for sentence in range(900):
    nbest.append(translate(sentence))
    if sentence % 50 == 0:
        print("sentence", sentence, flush=True)
print("done")
