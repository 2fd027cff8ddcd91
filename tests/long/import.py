#!/usr/bin/env python3
"""memtrace import of 20 snapshots of PyTorch's, equal to the byte and to what PyTorch's viewer says of them, and of one of a gigabyte; of
memray's and JAX's own files."""
# timeout: 1800
import collections
import functools
import importlib
import json
import os
import pickle
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cases"))
import imports
import mt
import reach

quick = importlib.import_module("import")
heaptrack, memray, pprof = (importlib.import_module("import_" + name) for name in ("heaptrack", "memray", "pprof"))
GIGABYTE = 1_000_000_000


SNAPSHOTS = [(way, seed) for way in ("", "expandable") for seed in range(101, 106)]
snapshots = functools.lru_cache(None)(imports.snapshots)


@mt.variants(*SNAPSHOTS)
def case_equal_to_the_byte(way, seed):
    for file in snapshots(way, seed).values():
        imports.compare(file)


# Of each device: how its segments are filled, and its memory by stream, state and stack.
VIEWER = """
import json, pickle, sys
from torch.cuda import _memory_viz as viz
with open(sys.argv[1], "rb") as file:
    s = pickle.load(file)
parts = {d: {**s, "segments": [g for g in s["segments"] if g["device"] == d]} for d in range(len(s["device_traces"]))}
print(json.dumps({"cuda:%d" % d: [viz.segsum(p), viz.memory(p, str)] for d, p in parts.items()}))
"""


def viewed(file):
    """{device: (text of the segments, {stack: bytes that the pool gave}, bytes reserved)}"""
    done, out = mt.execute([mt.python(), "-c", VIEWER, file], env=mt.clean_env()), {}
    mt.equal((done.status, done.err), (0, ""))
    for device, (segments, memory) in json.loads(done.out).items():
        stacks, reserved, held = collections.Counter(), 0, None
        for line in memory.splitlines():
            where, size = line.rsplit(" ", 1)
            _, state, stack = where.split(";", 2)
            held = held if stack == "<gaps>" else stack  # the rounding of the block of the line before
            reserved += int(size)
            stacks[held] += int(size) if state == "active_allocated" else 0
        out[device] = segments, +stacks, reserved
    return out


def folded(trace):
    """{device: {stack: bytes}} of pools, in the viewer's words."""
    out = collections.defaultdict(collections.Counter)
    for line in imports.shown("export", "--format", "folded", "--all", "--at", "end", trace).splitlines():
        (root, *frames), size = line.rsplit(" ", 1)[0].split(";"), int(line.rsplit(" ", 1)[1])
        if root.endswith(" pool"):
            words = [frame.rstrip(")").partition(" (") for frame in frames]
            out[root[:-len(" pool")]][";".join("%s:%s" % (place, name) for name, _, place in words)] += size
    return out


@mt.variants(*SNAPSHOTS)
def case_says_what_pytorchs_viewer_says(way, seed):
    for file in snapshots(way, seed).values():
        trace, theirs = imports.imported(file), viewed(file)
        ours, report = folded(trace), {d["name"]: d["pool"] for d in imports.report(trace)["devices"]}
        mt.check(len({stack for _, stacks, _ in theirs.values() for stack in stacks}) > 3, "too few stacks: %s" % theirs)
        for device, (_, stacks, reserved) in theirs.items():
            mt.equal(ours[device], stacks, "bytes by stack of " + device)
            mt.equal((report[device]["live_bytes"], report[device]["reserved_bytes"]), (sum(stacks.values()), reserved), device)
        again = os.path.join(mt.scratch("again"), "out.pickle")
        imports.shown("export", "--format", "snapshot", "-o", again, trace)
        mt.equal({d: v[0] for d, v in viewed(again).items()}, {d: v[0] for d, v in theirs.items()}, "how segments are filled")


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
    lines = imports.shown("export", "--format", "folded", "--all", "--at", "end", trace).splitlines()
    mt.equal(sum(int(line.rsplit(" ", 1)[1]) for line in lines if "make (<string>:5)" in line), said["make"])


FUZZED = int(os.environ.get("FUZZ_IMPORTS", "3000"))
SNAPSHOT = {"segments": [{"device": 0, "address": 4096, "total_size": 2097152, "stream": 0, "segment_type": "small", "segment_pool_id": (0, 0), "is_expandable": False,
                          "frames": [], "blocks": [{"address": 4096, "size": 512, "requested_size": 500, "state": "active_allocated", "frames": []}]}],
            "device_traces": [[{"action": a, "addr": 4096 + 512 * (i % 3), "size": 512, "stream": 0, "time_us": 1700000000000000 + i,
                                "frames": [{"name": "f", "filename": "x.py", "line": i}]} for i, a in enumerate(("alloc", "free_requested", "free_completed") * 8)]],
            "allocator_settings": {}, "external_annotations": []}


def wholes(kind):
    """(intact files, words of the format)"""
    if kind == "pytorch":
        return [pickle.dumps(SNAPSHOT, protocol=p) for p in (2, 4)], [b"(", b"t", b"]", b"}", b"u.", b"h\0", b"r\xff\xff\xff\x7f", b"\x8a\xff", b"0", b"2", b"a", b"\x94"]
    if kind == "heaptrack":
        return [heaptrack.Made(8).text[:6000].rpartition("\n")[0].encode() + b"\n"], [b"f" * 16, b"\n", b" ", b"-", b"\n+ ", b"\nt 1 1\n", b"\na 10 1\n"]
    if kind == "memray":
        whole = memray.memrays.Traffic(8).bytes[:4000]
        files = [whole, memray.memrays.Traffic(9, native=True).bytes[:4000], memray.memrays.summed(memray.ROWS), memray.lz4(whole, block=700), memray.lz4(whole, linked=False)]
        return files, [b"\x0c" + b"\1" * 8, b"\x10", b"\x41\1\2", b"\xff" * 10, b"\x0e\1a\0b\0\2\0", b"\x05\2\1", b"\1"]
    samples = [(pprof.STACK, (9, 900, 5, 500), {"device": "cuda:0"}), (pprof.OTHER, (2, 20, 1, 10), {}), ([("/opt/libx.so", 0x1234)], (1, 1, 1, 1), {})]
    return [pprof.Profile(pprof.GO, samples, packed=p).bytes for p in (True, False)], [b"\x12\x04\x0a\x02\1\2", b"\xff" * 10, b"\x32\1x", b"\x22\0", b"\x0a\0"]


@mt.variants("pytorch", "heaptrack", "memray", "pprof")
def case_damaged(kind):
    files, words = wholes(kind)
    imports.fuzz(files, FUZZED, words)


mt.main()
