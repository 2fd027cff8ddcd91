# truth: leak fetch 30.0M; futures with what they returned stay in a list
# pauses: 0 0.002
import concurrent.futures
import os
import time

PAUSE = float(os.environ.get("PAUSE", 0))
pending = []


def fetch(number):
    body = [bytearray(40_000) for _ in range(5)]
    return bytes(50_000) if body else None


with concurrent.futures.ThreadPoolExecutor(4) as pool:
    for number in range(600):
        pending.append(pool.submit(fetch, number))
        pending[-1].result()
        time.sleep(PAUSE)
