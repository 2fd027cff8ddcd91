# truth: passes store 12.0M; entries live for 300 requests
# pauses: 0 0.0005
# short
import collections
import os
import time

PAUSE = float(os.environ.get("PAUSE", 0))
LIVES = 300
entries, order = {}, collections.deque()


def store(now):
    entries[now] = bytearray(40_000)
    order.append((now + LIVES, now))
    while order[0][0] <= now:
        del entries[order.popleft()[1]]


for now in range(5000):
    store(now)
    reply = bytearray(20_000)
    time.sleep(PAUSE)
