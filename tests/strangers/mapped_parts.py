# truth: leak attach 50.0M; private copies of a file's parts are mapped, written and kept
# pauses: 0 0.004
import mmap
import os
import tempfile
import time

PAUSE = float(os.environ.get("PAUSE", 0))
PART = 204_800
attached = []
with tempfile.TemporaryFile() as file:
    file.write(bytes(PART))
    file.flush()

    def attach(number):
        part = mmap.mmap(file.fileno(), PART, access=mmap.ACCESS_COPY)
        part[:] = bytes([number % 255]) * PART
        attached.append(part)

    for number in range(244):
        attach(number)
        for _ in range(6):
            with mmap.mmap(-1, PART) as scratch:
                scratch[:] = bytes(PART)
        time.sleep(PAUSE)
