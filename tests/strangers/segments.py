# truth: leak publish 40.1M; a segment of shared memory for each result, all of them closed and unlinked at the end
# pauses: 0 0.004
import os
import time
from multiprocessing import shared_memory

PAUSE = float(os.environ.get("PAUSE", 0))
segments = []


def publish(number):
    segment = shared_memory.SharedMemory(create=True, size=200_704)
    segment.buf[:] = bytes([number % 250]) * segment.size
    segments.append(segment)


for number in range(200):
    publish(number)
    drafts = [bytearray(150_000) for _ in range(6)]
    time.sleep(PAUSE)
for one in segments:
    one.close()
    one.unlink()
