# truth: stopped load 24.0M; a dictionary is loaded once, then only looked up
# pauses: 0 0.0003
import os
import time

PAUSE = float(os.environ.get("PAUSE", 0))


def load():
    return {word: bytearray(2000) for word in range(12_000)}


words = load()
for i in range(10_000):
    found = bytes(words[i % 12_000]) + bytes(6000)
    time.sleep(PAUSE)
