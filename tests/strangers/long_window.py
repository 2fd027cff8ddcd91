# truth: passes reading 24.0M; an average over the last 800 readings of 3,000
# pauses: 0 0.001
import collections
import os
import time

PAUSE = float(os.environ.get("PAUSE", 0))
window = collections.deque(maxlen=800)


def reading(i):
    window.append(bytearray(30_000))
    return sum(one[0] for one in window)


for i in range(3000):
    reading(i)
    plot = bytearray(50_000)
    time.sleep(PAUSE)
