"""A loader hands its batches over in shared memory, and closes each; nobody unlinks them while it runs"""
# truth: leak shm_batches.py hand_over
import sys
import time
from multiprocessing import shared_memory

UNLINK = "twin" in sys.argv or "release" in sys.argv or "ahead" in sys.argv
RING = 16 if "ring" in sys.argv else None  # of buffers, which are written again and again
AHEAD = 16 if "ahead" in sys.argv else 0  # of batches, as a loader prefetches
names = []


def hand_over(number):
    again = RING and number >= RING
    batch = shared_memory.SharedMemory(names[number % RING]) if again else shared_memory.SharedMemory(create=True, size=2 << 20)
    batch.buf[:] = bytes([number % 256]) * batch.size
    names.append(batch.name)
    batch.close()


def train(number):
    batch = shared_memory.SharedMemory(names[number])
    total = sum(bytes(batch.buf)[::4096])
    batch.close()
    if UNLINK:
        batch.unlink()
    return total


def main():
    for number in range(AHEAD):
        hand_over(number)
    for number in range(160):
        hand_over(number + AHEAD)
        train(number)
        time.sleep(0.02)
    time.sleep(1.5)  # so that a sample sees all of them


main()
