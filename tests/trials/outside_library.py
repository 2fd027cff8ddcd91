"""A decoding library keeps frames of its own beside the pool, more with each film, and the next batch does not fit.

The twin's library keeps two films' frames.
"""
# standin: DEVICES=600M CONTEXT=48M
# cause: outside_pool
# follow: less_outside
import ctypes

import trial
from account import MIB
from trial import take

FILMS = 12
DRIVER = ctypes.CDLL("libcudart.so.13")


def frames(kept):
    """One film's, in the driver's memory."""
    if trial.follows("less_outside") and len(kept) == 2:
        DRIVER.cudaFree(kept.pop(0))
    place = ctypes.c_void_p()
    if DRIVER.cudaMalloc(ctypes.byref(place), ctypes.c_size_t(36 * MIB)) == 0:
        kept.append(place)


def main():
    kept, weights = [], [take(size * MIB) for size in (70, 50, 30)]
    for film in trial.units(FILMS):
        if film in (1, 2, 4, 5):
            frames(kept)
        clip = take((270 if film == 8 else 120) * MIB)
        del clip
    del weights


main()
