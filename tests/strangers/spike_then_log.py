# truth: leak handle 36.0M; the index takes 160 MB while it is built, then each request leaves 60,000 bytes in `log`
# pauses: 0 0.001 0.01
# short
import os
import time

PAUSE = float(os.environ.get("PAUSE", 0))
log = []


def build_index():
    parts = [bytearray(2_000_000) for _ in range(80)]
    return sum(len(part) for part in parts)


def handle(request):
    rows = [bytearray(25_000) for _ in range(12)]
    log.append(bytearray(60_000))
    return len(rows)


build_index()
for request in range(600):
    handle(request)
    time.sleep(PAUSE)
