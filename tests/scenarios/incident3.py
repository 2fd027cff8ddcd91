"""Step 1000 (incident 3): a hook that keeps its output is registered again every fourth step and never removed, so a step keeps ever
more blocks of 42 KiB, and a card of 24 GiB is full about step 1000.

usage: incident3.py [--healthy] [STEPS]    removes the hooks and lets their outputs go
"""
# standin: DEVICES=24G CONTEXT=0.29G
import sys
import time
import traceback

import torch
from torch import nn

from account import FLOAT, GIB, MIB, asked, bytes_of, ended, kinds, pool, take_workspace, tell, trained, watch_pool

WIDTH, KEPT, HOOKS_AT_START = 3584, 10752, 44
FROZEN, REQUEST = int(11.19 * GIB), 48 * MIB


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.frozen = [bytes_of(FROZEN // 100) for _ in range(100)]
        self.attention = nn.Linear(WIDTH, WIDTH, device="cuda")
        self.mlp = nn.ModuleList(nn.Linear(n, m, device="cuda") for n, m in [(WIDTH, 10000), (10000, WIDTH)] * 2)
        self.probe = nn.Linear(WIDTH, KEPT, device="cuda", dtype=torch.bfloat16)

    def forward(self, text):
        hidden = self.attention(text)
        scores = bytes_of(REQUEST)
        self.outputs = []  # bytes of each
        for layer in self.mlp:
            hidden = layer(hidden)
            self.outputs.append(hidden.nbytes)
        with torch.no_grad():
            self.probe(hidden[:1].bfloat16())
        return hidden.sum(), scores


def all_of(model, optimizer):
    """For kinds()."""
    everything = trained(model, optimizer)
    everything["parameters"] += model.frozen
    return everything


def main():
    healthy = "--healthy" in sys.argv
    steps = int(sys.argv[-1]) if sys.argv[-1].isdigit() else 1200
    take_workspace()
    if healthy:
        watch_pool()
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters())
    captured, handles, highs, lows, kept, lasted_ns = [], [], {}, {}, {}, []

    def save_activation(module, inputs, out):
        captured.append(out.float())

    def train_step(number):
        while len(handles) < HOOKS_AT_START + (0 if healthy else number // 4):
            handles.append(model.probe.register_forward_hook(save_activation))
        loss, scores = model(torch.empty(20000, WIDTH, device="cuda"))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if healthy:
            captured.clear()

    tell(verdict=None if healthy else "leak", parameters=FROZEN // 100 * 100 + sum(p.numel() * p.element_size() for p in model.parameters()),
         gradients=sum(p.numel() * p.element_size() for p in model.parameters() if p.dtype == torch.float32), block_bytes=KEPT * FLOAT,
         batch_bytes=20000 * WIDTH * FLOAT)
    number = 0
    try:
        for number in range(1, steps + 1):
            torch.cuda.reset_peak_memory_stats()
            lows[number] = torch.cuda.memory_allocated()
            begin_ns = time.monotonic_ns()
            train_step(number)
            lasted_ns.append(time.monotonic_ns() - begin_ns)
            highs[number], kept[number] = torch.cuda.max_memory_allocated(), len(captured)
    except torch.OutOfMemoryError as error:
        in_hook = any(f.name == "save_activation" for f in traceback.extract_tb(error.__traceback__))
        tell(failed_step=number, highs=highs, lows=lows, kept=kept, kept_blocks=len(captured), kept_bytes=len(captured) * KEPT * FLOAT,
             frozen_bytes=FROZEN // 100 * 100, scores_bytes=REQUEST, outputs=model.outputs,
             peak_bytes=max(pool()["peak_allocated_bytes"], *highs.values()), total_bytes=pool()["total_bytes"], lasted_ns=lasted_ns,
             kinds=kinds(**all_of(model, optimizer)),
             oom=dict(pool(), at_ns=time.monotonic_ns(), device=0, outcome="fatal", requested_bytes=KEPT * FLOAT if in_hook else None,
                      tried_bytes=asked(error)))
        raise
    tell(steps=number, highs=highs, lows=lows, kept_blocks=len(captured))
    ended(**all_of(model, optimizer))


main()
