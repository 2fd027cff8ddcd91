"""Workers share their results by a manager's dict; who reads them never deletes them, so the manager's process grows"""
# truth: leak connection.py _ConnectionBase.recv
import multiprocessing
import sys
import time


def work(results, numbers):
    for number in numbers:
        results[number] = bytes(number % 250 for _ in range(40000))


def main():
    with multiprocessing.Manager() as manager:
        results = manager.dict()
        for start in range(0, 1600, 400):
            worker = multiprocessing.Process(target=work, args=(results, range(start, start + 400)))
            worker.start()
            for number in range(start, start + 400):
                while number not in results:
                    time.sleep(0.001)
                if "twin" in sys.argv:
                    results.pop(number)
                else:
                    results.get(number)
            worker.join()


main()
