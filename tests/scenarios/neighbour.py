"""Another program on device N: allocates BYTES through the runtime, says so, and holds them until two seconds after its
input ended: it doesn't end because another failed.

usage: neighbour.py N BYTES [STEPS SECONDS]    in so many steps, one every SECONDS
"""
import ctypes
import json
import os
import sys
import time


def main():
    getattr(ctypes.CDLL(None), "memtrace_start", lambda: None)()
    device, size = int(sys.argv[1]), int(sys.argv[2])
    steps, pause = (int(sys.argv[3]), float(sys.argv[4])) if len(sys.argv) > 4 else (1, 0)
    cuda = ctypes.CDLL("libcudart.so.13")
    assert cuda.cudaSetDevice(device) == 0
    for _ in range(steps):
        assert cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(size // steps)) == 0
        time.sleep(pause)
    print(json.dumps({"pid": os.getpid(), "bytes": size // steps * steps}), flush=True)
    sys.stdin.read()
    time.sleep(2)


main()
