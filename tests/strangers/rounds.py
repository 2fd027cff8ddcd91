# truth: passes - 13.5M; what a round finds is kept until it is summed up, ten rounds
# pauses: 0 0.001
import os
import time

PAUSE = float(os.environ.get("PAUSE", 0))


def play(number):
    found = []
    for turn in range(270):
        board = bytearray(90_000)
        found.append(bytes(50_000) if board else None)
        time.sleep(PAUSE)
    return sum(len(one) for one in found)


for number in range(10):
    play(number)
