"""A serving engine reads prompts of any length, with a workspace for each, and keeps a cache of it for the last 32 conversations.

truth: fragmentation. 43 GiB are live; the caches lie in segments that the workspaces left, and what is left of those fits nobody.
helps: expandable_segments:True, or lengths rounded up to few sizes (healthy).
"""
# standin: DEVICES=79G CONTEXT=520M
import random
import sys
import torch

HEALTHY = "healthy" in sys.argv
random.seed(11)
conversations = []


def prefill(tokens):
    workspace = torch.empty(tokens, 128 * 1024, dtype=torch.half, device="cuda")
    hidden = torch.ones(tokens, 4096, dtype=torch.half, device="cuda")
    del workspace
    return [hidden.repeat(1, 4) for _ in range(4)]


for request in range(300):
    tokens = random.randrange(2000, 20000)
    if HEALTHY:
        tokens = (tokens + 4999) // 5000 * 5000
    if len(conversations) == 32:
        conversations.pop(random.randrange(32))
    conversations.append(prefill(tokens))
    if request % 10 == 0:
        print("request", request, torch.cuda.memory_allocated() >> 20, torch.cuda.memory_reserved() >> 20, flush=True)
print("done")
