# truth: leak visit 40.0M; four threads, each with a history of its own
# pauses: 0 0.002
import os
import threading
import time

PAUSE = float(os.environ.get("PAUSE", 0))
EACH = 200


class Crawler(threading.Thread):
    def __init__(self):
        super().__init__()
        self.history = []

    def visit(self, number):
        page = [bytearray(40_000) for _ in range(6)]
        self.history.append(bytearray(50_000))
        return len(page)

    def run(self):
        for number in range(EACH):
            self.visit(number)
            time.sleep(PAUSE)


crawlers = [Crawler() for _ in range(4)]
for one in crawlers:
    one.start()
for one in crawlers:
    one.join()
