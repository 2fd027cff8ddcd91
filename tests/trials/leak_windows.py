"""Recordings are encoded window by window, then written down word by word, and no other line makes blocks: what was heard in each one's first window is kept for
its speaker

There are as many windows and words as a recording is long. The twin forgets the speaker.
"""
# standin: DEVICES=360M CONTEXT=64M
# cause: leak
# follow: release
import random

import torch

import trial
from account import MIB
from trial import take

trial.PAUSE = 0.004
REQUESTS, WINDOW, HEARD, WORD = 200, MIB, 3 * MIB // 2, MIB // 4


def encode(recording, count, speakers):
    heard = []
    for _ in range(count):
        sound = take(WINDOW)
        spectrum = take(WINDOW // 2)
        del sound
        heard.append(take(HEARD))
        del spectrum
    if not trial.follows("release"):
        speakers[recording] = heard[0]
    return heard


def write_down(heard, count):
    words = []
    for _ in range(count):
        scores = take(WORD)
        scaled = take(WORD)
        del scores
        words.append(take(WORD // 8))
        del scaled
    return len(words) + len(heard)


def main():
    chance, weights, speakers = random.Random(5), take(80 * MIB), {}
    for recording in trial.units(REQUESTS):
        heard = encode(recording, chance.randrange(1, 30), speakers)
        write_down(heard, chance.randrange(1, 40))
        del heard
    del weights


main()
