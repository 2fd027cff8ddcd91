# truth: leak count 12.0M; of each request half a percent of what it makes stays
# pauses: 0 0.001
import os
import time

PAUSE = float(os.environ.get("PAUSE", 0))
seen = {}


def count(request):
    seen[request] = bytearray(6_000)


for request in range(2000):
    parts = [bytearray(60_000) for _ in range(20)]
    count(request)
    time.sleep(PAUSE)
