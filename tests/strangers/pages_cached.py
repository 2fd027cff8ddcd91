# truth: passes page 10.0M; an lru_cache of 400 pages is full after a twentieth of the run, and then replaces
# pauses: 0 0.0002
import functools
import os
import random
import time

PAUSE = float(os.environ.get("PAUSE", 0))
random.seed(7)


@functools.lru_cache(maxsize=400)
def page(number):
    return bytearray(25_000)


for request in range(12_000):
    page(random.randrange(2500))
    reply = bytearray(40_000)
    time.sleep(PAUSE)
