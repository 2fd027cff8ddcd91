"""Copies at the peak (incident 1, in PyTorch, bytes / 64): after training, inference loads the model once more, and a float32 cast of the
embedding, twice its 16-bit twin, fails. Alive: params_dict (host), the training model, final_params, the inference model, the cache.

usage: incident1.py [--healthy]    loads once, and lets go of what is done with
"""
# standin: DEVICES=1580M CONTEXT=40M
import gc
import sys

import numpy as np
import torch

from account import MIB, failing, pool, tell

LAYERS, HIDDEN, WORDS = 40, 640, 18992  # 151936 x 5120 / 64 words and widths
HEALTHY = "--healthy" in sys.argv


def shapes():
    yield "embedding", (WORDS, HIDDEN)
    yield "head", (WORDS, HIDDEN)
    for i in range(LAYERS):
        yield "layer%d.attention" % i, (4, HIDDEN, HIDDEN)
        yield "layer%d.mlp" % i, (8, HIDDEN, HIDDEN)


def load_checkpoint():
    return {name: np.ones(shape, dtype=np.float16) for name, shape in shapes()}


def build_training_model(params):
    return {name: torch.from_numpy(array).to("cuda") for name, array in params.items()}


def train(model):
    optimizer = {name: torch.zeros(1024, device="cuda") for name in model}
    for _ in range(5):
        gradients = {name: torch.empty_like(weight) for name, weight in list(model.items())[:8]}
        del gradients
    return optimizer


def collect_final_params(model):
    return {name: weight.clone() for name, weight in model.items()}


def build_inference_model(params):
    return {name: weight.clone() for name, weight in params.items()}


def make_cache():
    return [torch.empty(2 * MIB, device="cuda", dtype=torch.uint8) for _ in range(75)]


def infer(model):
    return model["embedding"].float()


def main():
    params_dict = load_checkpoint()
    size = sum(a.nbytes for a in params_dict.values())
    tell(verdict=None if HEALTHY else "copies", copy_bytes=size, copy_blocks=len(params_dict), copies=["params_dict", "model", "final_params", "inference"],
         request_bytes=WORDS * HIDDEN * 4)
    model = build_training_model(params_dict)
    tell(t2=pool()["allocated_bytes"])
    if HEALTHY:
        del params_dict
        gc.collect()
    optimizer = train(model)
    if HEALTHY:
        del optimizer
        inference = model
    else:
        final_params = collect_final_params(model)
        tell(t3=pool()["allocated_bytes"])
        inference = build_inference_model(final_params)
    tell(t4=pool()["allocated_bytes"])
    cache = make_cache()
    tell(t5=pool()["allocated_bytes"], cache_bytes=sum(c.numel() for c in cache))
    if HEALTHY:
        infer(inference)
        tell(end=pool())
        return
    answers = []
    with failing(WORDS * HIDDEN * 4):
        while True:
            answers.append(infer(inference))


main()
