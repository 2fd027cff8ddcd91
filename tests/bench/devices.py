#!/usr/bin/env python3
"""What the shim adds to a pair of device calls, on the fake libraries of tests/cuda whose functions do next to nothing."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt  # noqa: E402
from fakecuda import SOURCES, cc, libraries  # noqa: E402


def build():
    folder = libraries()
    for name, flag in (("libc10.so", "-O1"), ("libc10_cuda.so", "-DCUDA")):
        cc("-shared", "-fPIC", flag, "-o", os.path.join(folder, name), os.path.join(SOURCES, "c10.c"), "-Wl,-soname," + name)
    path = os.path.join(folder, "devices")
    cc("-O2", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-o", path, os.path.join(mt.TOP, "tests/bench/devices.c"),
       *(os.path.join(folder, n) for n in ("libcuda.so.1", "libcudart.so.13", "libc10.so")), "-Wl,--no-as-needed",
       os.path.join(folder, "libc10_cuda.so"), "-ldl")
    return path


def measure(path, what, depth, traced):
    env = {"LD_LIBRARY_PATH": libraries()}
    run = mt.shimmed if traced else mt.plain
    done = run([path, what, str(depth)], env=env)
    if done.status != 0:
        sys.exit("%s" % done)
    return float(done.out)


def main():
    path = build()
    print("%-12s %6s %8s %8s %8s" % ("pair", "frames", "plain", "traced", "added"))
    for what, depth in (("driver", 0), ("driver", 50), ("pool", 0), ("pool", 50), ("dlsym", 0), ("dlsym-cuda", 0)):
        plain, traced = (measure(path, what, depth, t) for t in (False, True))
        print("%-12s %6d %6.0f ns %6.0f ns %6.0f ns" % (what, depth, plain, traced, traced - plain))


main()
