# truth: passes visit 9.0M; three days, visitors rise and fall, each stays for 40 turns
# pauses: 0 0.002
import collections
import math
import os
import time

PAUSE = float(os.environ.get("PAUSE", 0))
DAY = 400
visitors = collections.deque()


def visit(now):
    for _ in range(round(6 + 5 * math.sin(2 * math.pi * now / DAY))):
        visitors.append((now + 40, bytearray(25_000)))


for now in range(3 * DAY + 100):
    visit(now)
    while visitors and visitors[0][0] <= now:
        visitors.popleft()
    page = bytearray(30_000)
    time.sleep(PAUSE)
