# truth: leak upload 32.0M; one io.BytesIO takes all uploads, and is never emptied
# pauses: 0 0.002
import io
import os
import time

PAUSE = float(os.environ.get("PAUSE", 0))
spool = io.BytesIO()


def upload(number):
    parts = [bytes(8000) for _ in range(16)]
    spool.write(bytes(64_000))
    return len(parts)


for number in range(500):
    upload(number)
    time.sleep(PAUSE)
