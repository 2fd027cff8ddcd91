"""Half of a million small tensors are gone: their 2 MiB segments are pinned, and no large request may lie in them.

A graph sampler keeps every second of its edge lists; the next embedding table is large.
"""
# standin: DEVICES=560M CONTEXT=64M
# cause: capacity
# follow: batch
import trial
from account import MIB
from trial import take

ROUNDS = 16


def main():
    table = take(150 * MIB)
    edges = [take(120 << 10) for _ in range(2400)]
    del edges[::2]
    size = 40 if trial.follows("batch") else 130
    for i in trial.units(ROUNDS):
        embedding = take((size if i == 11 else 30) * MIB)
        del embedding
    del table


main()
