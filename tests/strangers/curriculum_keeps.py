# truth: leak step 30.0M; inputs get longer by plan, and of each step a twentieth stays in `states`
# pauses: 0 0.003
import os
import time

import numpy as np

PAUSE = float(os.environ.get("PAUSE", 0))
states = []


def step(length):
    hidden = [np.full(length, k, dtype=np.float32) for k in range(10)]
    states.append(hidden[0][:length // 2] + hidden[1][:length // 2])


for i in range(300):
    step(20_000 + 200 * i)
    time.sleep(PAUSE)
