"""A service was given four tenths of the card when it was shared; now it is alone, and its longest request does not fit under the cap.

The twin has no cap.
"""
# standin: DEVICES=600M CONTEXT=48M
# cause: limit
# follow: cap batch
import torch

import trial
from account import MIB
from trial import take

REQUESTS = 30


def main():
    if not trial.follows("cap"):
        torch.cuda.set_per_process_memory_fraction(0.4)
    weights = [take(size * MIB) for size in (40, 24, 24, 12, 8)]
    for request in trial.units(REQUESTS):
        words = 40 if request == 21 and trial.FOLLOW != "batch" else 5 + request % 7
        scores = take(words * 3 * MIB)
        answer = take(words * MIB)
        del scores, answer
    del weights


main()
