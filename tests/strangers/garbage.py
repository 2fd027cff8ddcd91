# truth: passes page -; pages and their links point to each other: what collects them comes now and then
# pauses: 0 0.0005
import os
import time

PAUSE = float(os.environ.get("PAUSE", 0))


class Page:
    def __init__(self, number):
        self.text = bytearray(4000)
        self.links = [[self, number] for _ in range(5)]


def page(number):
    return len(Page(number).links)


for number in range(8000):
    page(number)
    time.sleep(PAUSE)
