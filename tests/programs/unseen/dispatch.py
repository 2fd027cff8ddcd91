"""A mixture of experts with a dense mask of tokens x experts x places; the places grow with the tokens, so the mask grows with their square.

truth: capacity of route. At 65536 tokens the mask and its copy need 32 GiB each; at 8192 half a GiB.
helps: fewer tokens a batch (fixed), or indices instead of a mask (healthy).
"""
# standin: DEVICES=79G CONTEXT=520M
import sys
import torch
from torch import nn

HEALTHY, FIXED = "healthy" in sys.argv, "fixed" in sys.argv
EXPERTS, WIDTH = 16, 256
router = nn.Linear(WIDTH, EXPERTS, device="cuda")
experts = nn.Parameter(torch.randn(EXPERTS, WIDTH, WIDTH, device="cuda") / 16)
optimizer = torch.optim.SGD([*router.parameters(), experts], lr=0.01)


def route(x):
    tokens, places = len(x), len(x) * 2 // EXPERTS
    gates = router(x).softmax(-1)
    chosen = (torch.arange(tokens, device="cuda") % EXPERTS)
    place = torch.arange(tokens, device="cuda") // EXPERTS % places
    if HEALTHY:
        boxes = torch.zeros(EXPERTS * places, WIDTH, device="cuda").index_copy(0, chosen * places + place, x)
        done = torch.bmm(boxes.view(EXPERTS, places, WIDTH), experts).flatten(0, 1)
        return done[chosen * places + place] * gates.amax(1, keepdim=True)
    mask = torch.zeros(tokens, EXPERTS * places, device="cuda")
    mask.scatter_(1, (chosen * places + place)[:, None], 1.0)
    weighed = (mask.view(tokens, EXPERTS, places) * gates[:, :, None]).flatten(1)
    done = torch.bmm((mask.T @ x).view(EXPERTS, places, WIDTH), experts)
    return weighed @ done.flatten(0, 1)


for step in range(24):
    tokens = 65536 if step == 20 and not FIXED else 6144 + 256 * (step % 8)
    x = torch.randn(tokens, WIDTH, device="cuda")
    loss = (route(x) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("step", step, tokens, torch.cuda.max_memory_allocated() >> 20, flush=True)
print("done")
