"""Workers of a loader hand their batches over in shared memory, and nobody unlinks them"""
# truth: leak shm_workers.py work
import multiprocessing
import time
from multiprocessing import resource_tracker, shared_memory


def work(tasks, done):
    for number in iter(tasks.get, None):
        batch = shared_memory.SharedMemory(create=True, size=1 << 20)
        batch.buf[:] = bytes([number % 256]) * batch.size
        done.put(batch.name)
        batch.close()


def main():
    tasks, done = multiprocessing.Queue(), multiprocessing.Queue()
    workers = [multiprocessing.Process(target=work, args=(tasks, done)) for _ in range(3)]
    resource_tracker.ensure_running()
    for worker in workers:
        worker.start()
    for number in range(120):
        tasks.put(number)
        batch = shared_memory.SharedMemory(done.get())
        sum(bytes(batch.buf)[::4096])
        batch.close()
        time.sleep(0.01)
    for worker in workers:
        tasks.put(None)
    for worker in workers:
        worker.join()


main()
