"""What the shim adds to a pair of device calls, and to a block of a framework's pool: on fakes whose functions do next to nothing."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt  # noqa: E402
from fakecuda import SOURCES, cc, libraries  # noqa: E402

# What, frames above it, and the library that it is of.
PAIRS = (("driver", 0, None), ("driver", 50, None), ("pool", 0, None), ("pool", 50, None), ("bfc", 50, "libbfc.so"), ("xla", 50, "libpjrt.so"),
         ("call", 50, "libpjrt.so"), ("dlsym", 0, None), ("dlsym-cuda", 0, None))


def build():
    folder = libraries()
    for name, flag in (("libc10.so", "-O1"), ("libc10_cuda.so", "-DCUDA")):
        cc("-shared", "-fPIC", flag, "-o", os.path.join(folder, name), os.path.join(SOURCES, "c10.c"), "-Wl,-soname," + name)
    path = os.path.join(folder, "devices")
    cc("-O2", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-o", path, os.path.join(mt.TOP, "tests/bench/devices.c"),
       *(os.path.join(folder, n) for n in ("libcuda.so.1", "libcudart.so.13", "libc10.so")), "-Wl,--no-as-needed",
       os.path.join(folder, "libc10_cuda.so"), "-ldl")
    return path


def measure(path, pair, traced):
    """Nanoseconds."""
    what, depth, library = pair
    done = (mt.shimmed if traced else mt.plain)([path, what, str(depth), *([mt.program(library)] if library else [])], env={"LD_LIBRARY_PATH": libraries()})
    if done.status != 0:
        sys.exit("%s" % done)
    return float(done.out)
