# truth: passes step 12.7M; inputs get longer by plan, and a step's results live until the next has its own
# pauses: 0 0.002 0.02
import os
import time

import numpy as np

PAUSE = float(os.environ.get("PAUSE", 0))


def step(length):
    tokens = np.zeros(length, dtype=np.int64)
    hidden = [np.full(length, k, dtype=np.float64) for k in range(8)]
    return [one + tokens for one in hidden]


states = None
for i in range(150):
    states = step(20_000 + 1200 * i)
    time.sleep(PAUSE)
