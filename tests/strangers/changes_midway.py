# truth(starts): leak remember 24.0M; in the first three fifths nothing is kept, then each request is remembered
# truth(ends): stopped remember 24.0M; in the first two fifths each request is remembered, then none
# pauses: 0 0.001
import os
import sys
import time

PAUSE = float(os.environ.get("PAUSE", 0))
STARTS = sys.argv[1:] == ["starts"]
memory = []


def remember(request):
    memory.append(bytearray(20_000))


for request in range(3000):
    reply = [bytearray(25_000) for _ in range(4)]
    if request >= 1800 if STARTS else request < 1200:
        remember(request)
    time.sleep(PAUSE)
