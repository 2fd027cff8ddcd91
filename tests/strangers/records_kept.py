# truth: leak request 20.0M; a logging handler keeps its records, and a record its arguments
# pauses: 0 0.001
import logging
import os
import time

PAUSE = float(os.environ.get("PAUSE", 0))


class Keeps(logging.Handler):
    def __init__(self):
        super().__init__()
        self.records = []

    def emit(self, record):
        self.records.append(record)


log = logging.getLogger("shop")
log.propagate = False
log.setLevel(logging.INFO)
log.addHandler(Keeps())


def request(number):
    body = bytes(20_000)
    log.info("request %d of %s", number, body)
    return [bytearray(15_000) for _ in range(6)]


for number in range(1000):
    request(number)
    time.sleep(PAUSE)
