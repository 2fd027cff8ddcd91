# truth: passes receive 14.4M; a third more comes than is answered in the first half, and all of it is answered in the second
# pauses: 0 0.001
import collections
import os
import time

PAUSE = float(os.environ.get("PAUSE", 0))
inbox = collections.deque()


def receive(count):
    for _ in range(count):
        inbox.append(bytearray(12_000))


def answer(count):
    for _ in range(min(count, len(inbox))):
        inbox.popleft()


for turn in range(2400):
    receive(4 if turn < 1200 else 2)
    answer(3)
    draft = bytearray(40_000)
    time.sleep(PAUSE)
