# truth(full): stopped store 36.0M; a replay buffer reaches its size after three fifths of the run, then the oldest go
# truth(list): leak store 60.0M; the same, whose list has no bound
# pauses: 0 0.002
import collections
import os
import random
import sys
import time

PAUSE = float(os.environ.get("PAUSE", 0))
random.seed(1)
memory = collections.deque(maxlen=None if sys.argv[1:] == ["list"] else 1200)


def store(number):
    memory.append((bytearray(30_000), number % 4, random.random()))


def learn():
    batch = random.sample(list(memory), min(16, len(memory)))
    return [bytes(state[:9_000]) for state, _, _ in batch]


for number in range(2000):
    store(number)
    learn()
    time.sleep(PAUSE)
