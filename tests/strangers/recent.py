# truth: passes frame 20.0M; a deque of the last 200 frames
# pauses: 0 0.001
import collections
import os
import time

PAUSE = float(os.environ.get("PAUSE", 0))
recent = collections.deque(maxlen=200)


def frame(i):
    recent.append(bytearray(100_000))
    return sum(len(one) for one in recent)


for i in range(3000):
    frame(i)
    time.sleep(PAUSE)
