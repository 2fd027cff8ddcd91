# truth: grows write_report 40.0M; the last that the program does is to build a large report: it is freed as the program ends, and lived until then
# pauses: 0 0.001
import os
import time

PAUSE = float(os.environ.get("PAUSE", 0))


def write_report():
    lines = [bytearray(4000) for _ in range(10_000)]
    return sum(map(len, lines))


for request in range(1500):
    reply = [bytearray(60_000) for _ in range(10)]
    time.sleep(PAUSE)
write_report()
