# truth: leak add 24.0M; numpy.append makes the whole array anew for each block of samples
# pauses: 0 0.003
import os
import time

import numpy as np

PAUSE = float(os.environ.get("PAUSE", 0))
samples = np.zeros(0)


def add(number):
    global samples
    samples = np.append(samples, np.full(10_000, float(number)))


for number in range(300):
    add(number)
    time.sleep(PAUSE)
