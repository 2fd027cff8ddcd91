"""Spawned workers that are sent a table each, one behind another, and then work off one queue until they are told to end"""
# truth: none
import multiprocessing
import time


def serve(table, queue, answers):
    for number in iter(queue.get, None):
        data = bytearray(2 << 20)
        time.sleep(0.01)
        answers.put(len(data) + len(table) + number)


def main():
    context = multiprocessing.get_context("spawn")
    queue, answers = context.Queue(), context.Queue()
    table = {n: str(n) * 4 for n in range(120000)}
    workers = [context.Process(target=serve, args=(table, queue, answers)) for _ in range(6)]
    for worker in workers:
        worker.start()
        time.sleep(0.2)
    for number in range(300):
        queue.put(number)
    for number in range(300):
        answers.get()
    for worker in workers:
        queue.put(None)
    for worker in workers:
        worker.join()


if __name__ == "__main__":
    main()
