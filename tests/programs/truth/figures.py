"""A notebook's loop draws a figure for each experiment, and the drawing library keeps all that were not closed"""
# truth: leak figures.py figure
import sys

import numpy as np

open_figures = {}


def figure():
    canvas = {"number": len(open_figures), "pixels": np.zeros((300, 400, 4), dtype=np.uint8), "artists": []}
    open_figures[id(canvas)] = canvas
    return canvas


def plot(canvas, values):
    canvas["artists"].append(np.stack([np.arange(len(values)), values]))
    canvas["pixels"][100, :, 0] = 255


def close(canvas):
    del open_figures[id(canvas)]


def main():
    rng = np.random.default_rng(0)
    for experiment in range(300):
        values = rng.normal(size=20000).cumsum()
        canvas = figure()
        plot(canvas, np.convolve(values, np.ones(50) / 50, "valid"))
        if "twin" in sys.argv:
            close(canvas)
    print(len(open_figures))


main()
