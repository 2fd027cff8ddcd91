# truth: backlog produce -; a thread consumes more slowly than another produces; what is left when production ends is printed
# pauses: 0 0.001
import os
import queue
import threading
import time

PAUSE = float(os.environ.get("PAUSE", 0))
jobs, ticks = queue.Queue(), queue.Queue()


def produce(i):
    for _ in range(3):
        jobs.put(bytearray(15_000))


def consume():
    while ticks.get() is not None:
        for _ in range(2):
            jobs.get()


worker = threading.Thread(target=consume)
worker.start()
for i in range(1500):
    produce(i)
    ticks.put(i)
    page = bytearray(30_000)
    time.sleep(PAUSE)
ticks.put(None)
worker.join()
print("KEPT", sum(len(jobs.get()) for _ in range(jobs.qsize())))
