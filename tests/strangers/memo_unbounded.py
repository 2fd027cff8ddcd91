# truth: leak score 27.0M; functools.cache of a function that is asked for a new key in three of ten requests
# pauses: 0 0.001
import functools
import os
import time

PAUSE = float(os.environ.get("PAUSE", 0))


@functools.cache
def score(key):
    return bytes(30_000 + key % 7)


for request in range(3000):
    score(request if request % 10 < 3 else 0)
    reply = [bytearray(20_000) for _ in range(3)]
    time.sleep(PAUSE)
