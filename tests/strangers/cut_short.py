# truth: passes - 21.0M; six rounds collect what they find, and the program ends in the middle of the seventh
# pauses: 0 0.001
import os
import time

PAUSE = float(os.environ.get("PAUSE", 0))


def collect(turns):
    found = []
    for turn in range(turns):
        page = bytearray(120_000)
        found.append(bytearray(70_000))
        time.sleep(PAUSE)
    return len(found)


for number in range(6):
    collect(300)
collect(200)
