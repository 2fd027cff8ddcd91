# truth: leak attempt 20.0M; one of ten requests fails, and its exception with the frame stays in `failures`
# pauses: 0 0.001
import os
import time

PAUSE = float(os.environ.get("PAUSE", 0))
failures = []


def attempt(number):
    body = bytearray(100_000)
    if number % 10 == 0:
        raise ValueError(len(body))
    return body


for number in range(2000):
    try:
        attempt(number)
    except ValueError as error:
        failures.append(error)
    time.sleep(PAUSE)
