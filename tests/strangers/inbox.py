# truth: backlog receive 30.0M; five mails come for each four that are answered
# pauses: 0 0.0005 0.005
# short
import collections
import os
import time

PAUSE = float(os.environ.get("PAUSE", 0))
inbox = collections.deque()


def receive():
    for _ in range(5):
        inbox.append(bytearray(20_000))


def answer():
    for _ in range(4):
        inbox.popleft()


for i in range(1500):
    receive()
    answer()
    draft = bytearray(60_000)
    time.sleep(PAUSE)
