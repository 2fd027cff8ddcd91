# truth: leak lines 25.0M; generators that nobody reads to their end hold their buffers
# pauses: 0 0.002
import os
import time

PAUSE = float(os.environ.get("PAUSE", 0))
parked = []


def lines(number):
    buffer = bytearray(50_000)
    for start in range(0, len(buffer), 100):
        yield buffer[start:start + 100]


for number in range(500):
    reader = lines(number)
    next(reader)
    parked.append(reader)
    for whole in lines(number):
        pass
    scratch = [bytearray(20_000) for _ in range(5)]
    time.sleep(PAUSE)
