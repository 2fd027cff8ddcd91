# truth: passes - 50.0M; six days, each read, joined and written out; what a phase made lives until the day's end
# pauses: 0 0.002
import os
import time

import numpy as np

PAUSE = float(os.environ.get("PAUSE", 0))


def extract(day):
    rows = []
    for part in range(60):
        rows.append(np.full(50_000, day, dtype=np.float64))
        time.sleep(PAUSE)
    return rows


def transform(rows):
    return [np.sqrt(one)[::2].copy() for one in rows]


def load(table):
    return sum(float(np.ascontiguousarray(one).sum()) for one in table)


for day in range(6):
    rows = extract(day)
    table = transform(rows)
    load(table)
    del rows, table
