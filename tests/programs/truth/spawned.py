"""A pool of spawned workers, each of which is sent its table: pickling it takes a while, so that they start one behind another"""
# truth: none
import multiprocessing
import sys
import time

ROWS = 1000 if "twin" in sys.argv else 400000


def serve(table, number):
    time.sleep(1.5)
    return len(table) + number


def main():
    context = multiprocessing.get_context("spawn")
    table = {n: str(n) * 4 for n in range(ROWS)}
    workers = [context.Process(target=serve, args=(table, n)) for n in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


if __name__ == "__main__":
    main()
