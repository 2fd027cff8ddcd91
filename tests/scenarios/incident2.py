"""32 MiB that did not fit (incident 2): on a GPU of 23.52 GiB a first run trains and evaluates (8, 12, 15, 9, 11.44 GiB), a second program
that is not traced holds 3.80, and a third, the same as the first, fails on its first step with 28.25 MiB free. All call the GPU cuda:0.

usage: incident2.py [--healthy]    without the second program
"""
# standin: DEVICES=23.52G,23.52G CONTEXT=0.43G
import ctypes
import json
import os
import subprocess
import sys
import time

import torch
from torch import nn

from account import GIB, MIB, bytes_of, failing, fill, history, kinds, pool, take_workspace, tell, trained, watch_pool

CONTEXT = int(0.43 * GIB)
NEIGHBOUR = round((3.80 * GIB - CONTEXT) / (2 * MIB)) * 2 * MIB
LIBRARIES = 194 * MIB
HEALTHY = "--healthy" in sys.argv
HERE = os.path.abspath(__file__)
WIDTH, LAYERS, WORDS, TOKENS = 4096, 14, 32768, 512  # 512 words' logits are 32 MiB


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH, device="cuda") for _ in range(LAYERS))
        self.lm_head = nn.Linear(WIDTH, WORDS, bias=False, dtype=torch.bfloat16, device="cuda")

    def forward(self, hidden, scores):
        """The scores are what a phase needs more or less of: SCORES() makes them."""
        for layer in self.layers:
            hidden = layer(hidden)
        last = hidden.bfloat16()
        attended = scores()
        logits = self.lm_head(last)
        return logits, attended


def batch():
    return torch.empty(TOKENS, WIDTH, device="cuda")


def up_to(peak):
    """Scores of so many bytes that the process has PEAK with its context and the logits."""
    return lambda: bytes_of(max(MIB, peak - CONTEXT - 32 * MIB - torch.cuda.memory_allocated()))


def train_step(model, optimizer, peak):
    logits, scores = model(batch(), up_to(peak))
    loss = logits.sum()
    del scores
    optimizer.zero_grad(set_to_none=False)  # new gradients would lie in the hole that scores leave, and keep it from the driver
    loss.backward()
    optimizer.step()


def train(model, optimizer, steps, peak):
    torch.cuda.reset_peak_memory_stats()
    for _ in range(steps):
        train_step(model, optimizer, peak)
    return ended()


def evaluate(model, batches, peak):
    torch.cuda.reset_peak_memory_stats()
    with torch.no_grad():
        for _ in range(batches):
            model(batch(), up_to(peak))
    return ended()


def ended():
    """What a phase needed."""
    torch.cuda.empty_cache()
    most = pool()
    return {"allocated": most["peak_allocated_bytes"], "reserved": most["peak_reserved_bytes"]}


def wait(model, optimizer, **facts):
    """In the middle of a step: says what there is, which is what the third run finds, and ends with its input."""
    def scores():
        kept = fill(int(11.44 * GIB) - CONTEXT)  # until it ends
        print(json.dumps(dict(facts, pid=os.getpid(), bytes=torch.cuda.memory_reserved() + CONTEXT, allocated_bytes=torch.cuda.memory_allocated(),
                              kinds=kinds(**trained(model, optimizer)), largest_blocks=pool()["largest_blocks"], pool=pool(),
                              history=history() if HEALTHY else None)), flush=True)
        sys.stdin.read()
        time.sleep(2)  # it doesn't end because another failed
        sys.exit()
    return scores


def first_run():
    if HEALTHY:
        watch_pool()
    take_workspace()
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters())
    train(model, optimizer, 3, 0)  # a warm-up, in which the optimizer's state is made, not in a hole that scores leave
    first = train(model, optimizer, 30, 8 * GIB)
    second = train(model, optimizer, 30, 12 * GIB)
    evaluated = evaluate(model, 15, 15 * GIB)
    third = train(model, optimizer, 30, 9 * GIB)
    model(batch(), wait(model, optimizer, peaks=[first, second, evaluated, third]))


def outside_pool(size):
    """What libraries take from the driver themselves."""
    runtime = ctypes.CDLL("libcudart.so.13")
    assert runtime.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(size)) == 0


def leave(free):
    """Scores that leave so much of the device and hardly anything of the pool."""
    def scores():
        made = []
        while pool()["largest_hole_bytes"] >= 2 * MIB:  # less is in segments for small blocks
            made.append(bytes_of(pool()["largest_hole_bytes"]))
        made.append(fill(torch.cuda.memory_reserved() + pool()["free_bytes"] - free))
        while pool()["free_bytes"] >= free + 2 * MIB:
            made.append(bytes_of(2 * MIB))
        return made
    return scores


def third_run(first):
    if HEALTHY:
        watch_pool()
    take_workspace()
    model = Model()
    outside_pool(LIBRARIES)
    tell(libraries={os.getpid(): LIBRARIES}, batch_bytes=TOKENS * WIDTH * 4)
    if HEALTHY:
        optimizer = torch.optim.AdamW(model.parameters())
        train(model, optimizer, 30, int(8.25 * GIB) - LIBRARIES)
        end = pool()
        tell(end=end, pools=[end, first["pool"]], total_bytes=end["total_bytes"], kinds=kinds(**trained(model, optimizer)),
             histories={os.getpid(): history(), first["pid"]: first.pop("history")},
             peaks={os.getpid(): max(end["peak_allocated_bytes"], first["pool"]["peak_allocated_bytes"]),
                    first["pid"]: max(p["allocated"] for p in first["peaks"])})
        return
    with failing(32 * MIB, pid=os.getpid(), kinds=lambda: kinds(**trained(model))):
        model(batch(), leave(int(28.25 * MIB)))


def start(*command, traced=True):
    environment = {k: v for k, v in os.environ.items() if traced or not k.startswith("MEMTRACE_SESSION")} | ({} if traced else {"LD_PRELOAD": ""})
    child = subprocess.Popen([sys.executable, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    return child, json.loads(child.stdout.readline())


def main():
    neighbour = os.path.join(os.path.dirname(HERE), "neighbour.py")
    others = [] if HEALTHY else [start(neighbour, "0", str(NEIGHBOUR), traced=False)]
    others.append(start(HERE, "--first", *sys.argv[1:]))
    first = others[-1][1]
    tell(verdict=None if HEALTHY else "other_process", context_bytes=CONTEXT, first=dict(first, history=None),
         neighbours=[dict(facts, history=None, bytes=facts["bytes"] + (0 if "peaks" in facts else CONTEXT)) for _, facts in others])
    third_run(first)


first_run() if "--first" in sys.argv else main()
