# truth(keeps): leak answer 20.0M; the machine is busy: now and then nothing happens for long
# truth(cache): passes answer 4.0M; the same, with a cache of 100 answers
# pauses: 0.2
# busy: 3
import collections
import os
import random
import sys
import time

PAUSE = float(os.environ.get("PAUSE", 0))
random.seed(4)
answers = collections.deque(maxlen=None if sys.argv[1:] == ["keeps"] else 100)


def answer(number):
    answers.append(bytearray(40_000))
    return [bytearray(50_000) for _ in range(5)]


for number in range(500):
    answer(number)
    if random.random() < 0.03:
        time.sleep(random.random() * 2 * PAUSE)
