# truth(dead): leak buffer 30.0M; a thread for each job, whose buffer a list keeps by its thread object after it has ended
# truth(local): passes buffer 0; the buffer is in threading.local
# pauses: 0 0.002
import os
import sys
import threading
import time

PAUSE = float(os.environ.get("PAUSE", 0))
own = threading.local()
jobs = []


def buffer():
    if sys.argv[1:] == ["local"]:
        own.buffer = bytearray(60_000)
    else:
        threading.current_thread().buffer = bytearray(60_000)


def job():
    buffer()
    parts = [bytearray(20_000) for _ in range(5)]
    return len(parts)


for number in range(500):
    thread = threading.Thread(target=job)
    thread.start()
    thread.join()
    if sys.argv[1:] == ["dead"]:
        jobs.append(thread)
    time.sleep(PAUSE)
