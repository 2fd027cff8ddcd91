"""A recommender whose table of users grows each day; the new table is given to the same optimizer by add_param_group.

truth: leak|copies. The optimizer keeps every old table, with its gradient and Adam's two states.
helps: a new optimizer for the new table (healthy).
"""
# standin: DEVICES=79G CONTEXT=520M
import sys
import torch
from torch import nn

HEALTHY = "healthy" in sys.argv
items = nn.Embedding(50000, 256, device="cuda")
tower = nn.Sequential(nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 1)).cuda()
users = nn.Parameter(torch.randn(400000, 256, device="cuda"))
optimizer = torch.optim.Adam([*items.parameters(), *tower.parameters(), users])


def grow(users, more):
    global optimizer
    larger = nn.Parameter(torch.cat([users.detach(), torch.randn(more, 256, device="cuda")]))
    if HEALTHY:
        optimizer = torch.optim.Adam([*items.parameters(), *tower.parameters(), larger])
    else:
        optimizer.add_param_group({"params": [larger]})
    return larger


for day in range(16):
    for step in range(20):
        user = torch.randint(0, len(users), (8192,), device="cuda")
        item = torch.randint(0, 50000, (8192,), device="cuda")
        x = torch.cat([users[user], items(item)], dim=1)
        loss = nn.functional.binary_cross_entropy_with_logits(tower(x)[:, 0], torch.ones(8192, device="cuda"))
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()
    users = grow(users, 200000)
    print("day", day, len(users), flush=True)
print("done")
