#!/usr/bin/env python3
"""memtrace import of 20 snapshots of PyTorch's, equal to the byte, and of one of a gigabyte; of memray's and JAX's own files."""
# timeout: 1800
import importlib
import json
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cases"))
import imports
import mt
import reach

quick = importlib.import_module("import")
memray = importlib.import_module("import_memray")
GIGABYTE = 1_000_000_000


@mt.variants(*[(way, seed) for way in ("", "expandable") for seed in range(101, 106)])
def case_equal_to_the_byte(way, seed):
    for file in imports.snapshots(way, seed).values():
        imports.compare(file)


@mt.variants(*[(way, seed) for way in ("", "expandable", "rounded") for seed in (11, 12, 14, 16)])
def case_peaks(way, seed):
    quick.case_peaks_are_pytorchs(way, seed)


def case_a_gigabyte():
    size, most = quick.large(3_100_000)
    mt.check(size > GIGABYTE, "only %d bytes" % size)
    mt.check(most < 1 << 30, "%d bytes of memory" % most)
    print("# %.2f GB in %.0f MiB" % (size / 1e9, most / 2**20))


@mt.variants(*memray.WAYS)
def case_equals_memrays_own(way):
    memray.equals_memrays_own(way)


# What is alive, as its arrays say: one line makes five of them, another line one.
JAX = """
import json, sys
import jax, jax.numpy as jnp
def make(n):
    return jnp.ones((n, 1000), jnp.float32)
kept = [make(1000 + i) for i in range(5)]
@jax.jit
def square(x):
    return x @ x.T
other = square(kept[0]).block_until_ready()
jax.profiler.save_device_memory_profile(sys.argv[1])
print(json.dumps({"make": sum(k.nbytes for k in kept), "all": sum(a.nbytes for a in jax.live_arrays())}))
"""


def case_equals_jaxs_own():
    path = os.path.join(mt.scratch("jax"), "memory.prof")
    done = mt.execute([reach.python("jax"), "-c", JAX, path], env=mt.clean_env(JAX_PLATFORMS="cpu"), timeout=120)
    mt.equal(done.status, 0, done.err)
    said, trace = json.loads(done.out), imports.imported(path)
    mt.equal(imports.report(trace)["host"]["live_bytes"], said["all"])
    lines = quick.shown("export", "--format", "folded", "--all", "--at", "end", trace).splitlines()
    mt.equal(sum(int(line.rsplit(" ", 1)[1]) for line in lines if "make (<string>:5)" in line), said["make"])


mt.main()
