# truth: passes embed 20.0M; each of five parts clears the cache, fills it in its first half, and uses it in its second
# pauses: 0 0.001
import os
import time

PAUSE = float(os.environ.get("PAUSE", 0))
cache = {}


def embed(key):
    cache[key] = bytearray(50_000)


for part in range(5):
    cache.clear()
    for request in range(800):
        if request < 400:
            embed(request)
        reply = [bytearray(20_000) for _ in range(5)]
        time.sleep(PAUSE)
