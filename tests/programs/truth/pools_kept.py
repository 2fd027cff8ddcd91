"""Each day's reports are made by a pool of its own; nobody closes it, so that the workers of all days wait for work"""
# truth: processes pools_kept.py day
import multiprocessing
import sys
import time

CLOSE = "twin" in sys.argv or "release" in sys.argv
pools, table = [], None


def load():
    """In each worker, whether it gets work or not."""
    global table
    table = bytearray(20 << 20)


def report(number):
    return sum(table[::100]) + number


def day(number):
    pool = multiprocessing.get_context("fork").Pool(2, initializer=load)
    pool.map(report, range(4))
    if CLOSE:
        pool.close()
        pool.join()
    else:
        pools.append(pool)


def main():
    for number in range(6):
        day(number)
        time.sleep(0.2)


if __name__ == "__main__":
    main()
