# truth: leak step 40.0M; an array of each turn is appended to `history`, all of it is freed at exit
# pauses: 0 0.002 0.02
# short
import os
import time

import numpy as np

PAUSE = float(os.environ.get("PAUSE", 0))
history = []


def step(i):
    batch = [np.full(12_000, i, dtype=np.float32) for _ in range(10)]
    out = np.concatenate(batch)[:25_000] * 2
    history.append(out)
    return float(out.sum())


for i in range(400):
    step(i)
    time.sleep(PAUSE)
