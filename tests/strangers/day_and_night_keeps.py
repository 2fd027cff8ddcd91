# truth: leak visit 40.0M; the same three days, and of each visitor something stays
# pauses: 0 0.002
import collections
import math
import os
import time

PAUSE = float(os.environ.get("PAUSE", 0))
DAY = 400
visitors, profiles = collections.deque(), {}


def arrive(now):
    for k in range(round(6 + 5 * math.sin(2 * math.pi * now / DAY))):
        visitors.append((now + 40, bytearray(25_000)))
        visit(now, k)


def visit(now, k):
    profiles[now, k] = bytearray(5_000)


for now in range(3 * DAY + 100):
    arrive(now)
    while visitors and visitors[0][0] <= now:
        visitors.popleft()
    page = bytearray(30_000)
    time.sleep(PAUSE)
print("KEPT", sum(map(len, profiles.values())))
