# truth: leak say 30.0M; one bytearray is only extended
# pauses: 0 0.001 0.01
import os
import time

PAUSE = float(os.environ.get("PAUSE", 0))
transcript = bytearray()


def say(number):
    words = [bytes(20_000) for _ in range(10)]
    transcript.extend(bytes(30_000))
    return len(words)


for number in range(1000):
    say(number)
    time.sleep(PAUSE)
