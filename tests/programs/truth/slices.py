"""A data frame a day; five rows of each are kept, as a slice that keeps all of the day"""
# truth: leak slices.py day
import sys

import numpy as np
import pandas as pd


def day(rng):
    return pd.DataFrame(rng.normal(size=(20000, 8)), columns=list("abcdefgh"))


def main():
    rng = np.random.default_rng(0)
    samples = []
    for number in range(160):
        frame = day(rng)
        top = frame[:5]
        samples.append(top.copy() if "twin" in sys.argv else top)
    print(len(samples), sum(len(sample) for sample in samples))


main()
