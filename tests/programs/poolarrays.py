"""poolarrays.py LIBRARY [NAME]: arrays that the threads of a pool make for three lines of Python, as JAX's are."""
import ctypes
import sys

pool = ctypes.CDLL(sys.argv[1])
pool.pool_make.argtypes = [ctypes.c_long, ctypes.c_size_t]
pool.pool_start(3, sys.argv[2].encode() if len(sys.argv) > 2 else None)


def weights():
    pool.pool_make(8, len(bytes(1 << 20)))  # what the interpreter itself allocates tells where it is


def batch():
    pool.pool_make(4, len(bytes(1 << 20)))


weights()
batch()
pool.pool_make(1000, 100)
