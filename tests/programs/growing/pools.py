"""pools FORM: a training whose workers come anew in each epoch: in `piles` nobody closes the pool of the epoch before, in `closes` it is closed and waited
for, in `pooled` there is one pool for all epochs. Each worker has a table of its own."""
import json
import multiprocessing
import os
import sys
import time

FORM, EPOCHS, WORKERS, EACH = sys.argv[1], 6, 4, 25 << 20
pools, table, units = [], None, 0
begin = time.monotonic()


def prepare():
    global table
    table = bytearray(b"x") * EACH


def resize(number):
    time.sleep(0.002)
    return len(table) + number


def start_workers():
    return multiprocessing.get_context("fork").Pool(WORKERS, prepare)


for epoch in range(EPOCHS):
    if FORM != "pooled" or not pools:
        pools.append(start_workers())
    for _ in range(10):
        pools[-1].map(resize, range(16))
        parts = [bytearray(20000 + 1000 * k) for k in range(20)]
        units += 1
        time.sleep(0.02)
    if FORM == "closes":
        pools[-1].close()
        pools[-1].join()
alive = len(multiprocessing.active_children())
time.sleep(0.5)
print("ACCOUNT " + json.dumps({"kept_bytes": alive * EACH, "workers": alive, "units": units, "seconds": time.monotonic() - begin}), flush=True)
for pool in pools:
    pool.terminate()
