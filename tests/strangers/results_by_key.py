# truth: leak lookup 32.0M; a dict without a bound, asked for new keys in one of four requests
# pauses: 0 0.0004 0.004
import os
import time

PAUSE = float(os.environ.get("PAUSE", 0))
results = {}


def lookup(key):
    if key not in results:
        results[key] = bytes(40_000) + key.to_bytes(4, "big")
    return len(results[key])


for request in range(3200):
    lookup(request // 4)
    reply = [bytearray(8000) for _ in range(5)]
    time.sleep(PAUSE)
