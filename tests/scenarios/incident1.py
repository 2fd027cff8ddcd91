"""Copies at the peak (incident 1, in PyTorch, bytes / 64): after training, inference loads the model once more, and a float32 cast of the
embedding, twice its 16-bit twin, fails. Alive: params_dict (host), the training model with what training left, final_params, the
inference model, the cache, hidden states.

usage: incident1.py [--healthy]    loads once, and lets go of what is done with
"""
# standin: DEVICES=1580M CONTEXT=40M
import gc
import sys

import numpy as np
import torch
from torch import nn

from account import MIB, ended, failing, kinds, pool, take_workspace, tell, trained, watch_pool

LAYERS, HIDDEN, WORDS = 40, 640, 18992  # 151936 x 5120 / 64 words and widths
RANK, TOKENS, PAGES, PAGE = 16, 1024, 42, 2 * MIB
HEALTHY = "--healthy" in sys.argv


def shapes():
    yield "embedding", (WORDS, HIDDEN)
    yield "head", (WORDS, HIDDEN)
    for i in range(LAYERS):
        yield "layers.%d.attention" % i, (4, HIDDEN, HIDDEN)
        yield "layers.%d.mlp" % i, (8, HIDDEN, HIDDEN)


def load_checkpoint():
    return {name: np.ones(shape, dtype=np.float16) for name, shape in shapes()}


def half(*shape):
    return nn.Parameter(torch.empty(shape, dtype=torch.float16, device="cuda"), requires_grad=False)


class Adapter(nn.Module):
    """What is trained."""

    def __init__(self):
        super().__init__()
        self.down, self.up = (nn.Linear(*sides, bias=False, device="cuda") for sides in ((HIDDEN, RANK), (RANK, HIDDEN)))

    def forward(self, hidden):
        return self.up(self.down(hidden))


class Layer(nn.Module):
    def __init__(self, adapted):
        super().__init__()
        self.attention, self.mlp = half(4, HIDDEN, HIDDEN), half(8, HIDDEN, HIDDEN)
        self.adapter = Adapter() if adapted else None

    def forward(self, hidden):
        for weight in (*self.attention, *self.mlp):
            hidden = hidden @ weight
        return hidden if self.adapter is None else hidden + self.adapter(hidden.float()).half()


class Model(nn.Module):
    def __init__(self, adapted):
        super().__init__()
        self.embedding, self.head = half(WORDS, HIDDEN), half(WORDS, HIDDEN)
        self.layers = nn.ModuleList(Layer(adapted) for _ in range(LAYERS))

    def forward(self, words, answer=False):
        states = [self.embedding[words]]
        for layer in self.layers:
            states.append(layer(states[-1]))
        last = states[-1].float()
        return last @ self.embedding.float().T if answer else last


class KVCache:
    def __init__(self):
        self.pages = [torch.empty(PAGE, device="cuda", dtype=torch.uint8) for _ in range(PAGES)]


def build_model(params, adapted=False):
    model = Model(adapted)
    model.load_state_dict({name: torch.as_tensor(weight) for name, weight in params.items()}, strict=False)
    return model


def train(model):
    optimizer = torch.optim.AdamW(p for p in model.parameters() if p.requires_grad)
    for _ in range(8):
        loss = model(torch.zeros(TOKENS, dtype=torch.long, device="cuda")).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return optimizer


def collect_final_params(model):
    return {name: weight.detach().clone() for name, weight in model.named_parameters() if "adapter" not in name}


def main():
    if HEALTHY:
        watch_pool()
    take_workspace()
    params_dict = load_checkpoint()
    tell(verdict=None if HEALTHY else "copies", copy_bytes=sum(a.nbytes for a in params_dict.values()), copy_blocks=len(params_dict),
         host_bytes=sum(a.nbytes for a in params_dict.values()), request_bytes=WORDS * HIDDEN * 4)
    tell(begin=pool()["allocated_bytes"])
    model = build_model(params_dict, adapted=True)
    tell(t2=pool()["allocated_bytes"])
    if HEALTHY:
        del params_dict
        gc.collect()
    optimizer = train(model)
    if HEALTHY:
        optimizer.zero_grad()
        del optimizer
        inference = model
    else:
        after = pool()
        tell(trained=after["allocated_bytes"], trained_peak=after["peak_allocated_bytes"], trained_gave=after["peak_reserved_bytes"] - after["reserved_bytes"])
        final_params = collect_final_params(model)
        tell(t3=pool()["allocated_bytes"])
        inference = build_model(final_params)
    tell(t4=pool()["allocated_bytes"])
    cache = KVCache()
    tell(t5=pool()["allocated_bytes"], cache_bytes=sum(c.numel() for c in cache.pages), cache_blocks=len(cache.pages))
    words = torch.zeros(TOKENS, dtype=torch.long, device="cuda")
    with torch.no_grad():
        if HEALTHY:
            inference(words, answer=True)
            ended(parameters=model.parameters(), kv_cache=cache.pages)
            return
        everything = dict(trained(model, optimizer), kv_cache=cache.pages)
        everything["parameters"] += [*final_params.values(), *inference.parameters()]
        with failing(WORDS * HIDDEN * 4, kinds=lambda: kinds(**everything)):
            inference(words, answer=True)


main()
