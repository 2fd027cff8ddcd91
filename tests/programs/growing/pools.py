"""pools FORM: a training whose workers come anew in each epoch: in `piles` nobody closes the pool of the epoch before, in `closes` it is closed and waited
for, in `pooled` there is one pool for all epochs. Each worker has a table of its own."""
import json
import multiprocessing
import sys
import time

FORM, EPOCHS, WORKERS, EACH = sys.argv[1], 6, 4, 25 << 20
context = multiprocessing.get_context("fork")
pools, units = [], 0
begin = time.monotonic()


def serve(pipe):
    table = bytearray(b"x") * EACH
    for task in iter(pipe.recv, None):
        time.sleep(0.002)
        pipe.send(len(table) + task)


class Pool:
    """As multiprocessing's, but without its threads, which a fork may take by surprise."""

    def __init__(self):
        self.pipes, self.workers = [], []
        for _ in range(WORKERS):
            mine, theirs = context.Pipe()
            self.pipes.append(mine)
            self.workers.append(context.Process(target=serve, args=(theirs,)))
            self.workers[-1].start()

    def map(self, tasks):
        for number, task in enumerate(tasks):
            pipe = self.pipes[number % WORKERS]
            pipe.send(task)
            pipe.recv()

    def close(self):
        for pipe, worker in zip(self.pipes, self.workers):
            pipe.send(None)
            worker.join()


for epoch in range(EPOCHS):
    if FORM != "pooled" or not pools:
        pools.append(Pool())
    for _ in range(10):
        pools[-1].map(range(16))
        parts = [bytearray(20000 + 1000 * k) for k in range(20)]
        units += 1
        time.sleep(0.02)
    if FORM == "closes":
        pools[-1].close()
alive = len(multiprocessing.active_children())
time.sleep(0.5)
print("ACCOUNT " + json.dumps({"kept_bytes": alive * EACH, "workers": alive, "units": units, "seconds": time.monotonic() - begin}), flush=True)
for pool in pools if FORM != "closes" else []:
    pool.close()
