# truth: passes collate 12.0M; two workers fill a queue of eight batches, which the loop empties
# pauses: 0 0.002
import os
import queue
import threading
import time

PAUSE = float(os.environ.get("PAUSE", 0))
BATCHES = 500
ready = queue.Queue(maxsize=8)


def collate(number):
    samples = [bytearray(50_000) for _ in range(16)]
    return b"".join(samples)


def work(first):
    for number in range(first, BATCHES, 2):
        ready.put(collate(number))


workers = [threading.Thread(target=work, args=(k,)) for k in range(2)]
for one in workers:
    one.start()
for _ in range(BATCHES):
    batch = ready.get()
    time.sleep(PAUSE)
for one in workers:
    one.join()
