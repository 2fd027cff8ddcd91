# truth: stopped compile_kernel 15.0M; kernels are compiled for shapes that are new, all of them in the first tenth
# pauses: 0 0.001
import os
import random
import time

PAUSE = float(os.environ.get("PAUSE", 0))
random.seed(5)
kernels = {}


def compile_kernel(shape):
    sources = [bytearray(30_000) for _ in range(4)]
    kernels[shape] = bytearray(300_000)
    return len(sources)


for i in range(2000):
    shape = random.randrange(50)
    if shape not in kernels:
        compile_kernel(shape)
    activations = [bytearray(40_000) for _ in range(6)]
    time.sleep(PAUSE)
