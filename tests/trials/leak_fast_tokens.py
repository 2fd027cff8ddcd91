"""Thousands of tokens in a third of a second, at full speed: now and then one takes a page of a cache that is never given back.

The twin gives a sequence's pages back when it ends.
"""
# standin: DEVICES=400M CONTEXT=64M
# cause: leak
# follow: release
import torch

import trial
from account import MIB
from trial import take

trial.PAUSE = 0
TOKENS, PAGE, EVERY = 6000, 3 * MIB // 2, 17


def token(state, pages, number):
    scores = torch.empty(64, 128, device="cuda")
    state = torch.empty(64, 256, device="cuda")
    if number % EVERY == 0:
        pages.append(take(PAGE))
    del scores
    return state


def main():
    weights, pages, state = take(90 * MIB), [], None
    for number in trial.units(TOKENS):
        state = token(state, pages, number)
        if trial.follows("release") and number % (8 * EVERY) == 8 * EVERY - 1:
            pages.clear()
    del weights


main()
