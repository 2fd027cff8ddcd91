#!/usr/bin/env python3
"""memtrace import of profiles in pprof's format, as JAX and others write them: what was alive at one moment."""
import gzip
import os
import random
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import imports
import mt
from pprofs import Profile

JAX = [("allocations", "count"), ("space", "bytes")]
GO = [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")]
STACK = [("__call__", "/x/jax/pxla.py", 395), ("make", "/home/me/jp.py", 2), ("<module>", "/home/me/jp.py", 3)]
OTHER = [("run", "/x/jax/pxla.py", 12), ("<module>", "/home/me/jp.py", 9)]


def written(profile, name="memory.prof"):
    path = os.path.join(mt.scratch("pprof"), name)
    if isinstance(profile, Profile):
        return profile.write(path)
    with open(path, "wb") as file:
        file.write(profile)
    return path


@mt.variants(True, False)
def case_of_jax_on_the_host(packed):
    buffer = {"kind": "buffer", "device": "cpu:0"}
    trace = imports.imported(written(Profile(JAX, [(STACK, (5, 20020003), buffer), (OTHER, (1, 4000000), buffer)], packed=packed)))
    page = imports.report(trace)
    host = page["host"]
    mt.equal([host[k] for k in ("live_blocks", "live_bytes", "peak_bytes")], [6, 24020003, 24020003])
    mt.equal(([page[k] for k in ("map", "pinned")], page["devices"], page["processes"][0]["exit"]["kind"]), ([None, None], [], "unknown"))
    folded = imports.shown("export", "--format", "folded", "--all-frames", "--at", "end", trace).splitlines()
    mt.equal(sorted(folded), ["heap;<module> (jp.py:3);make (jp.py:2);__call__ (pxla.py:395) 20020003", "heap;<module> (jp.py:9);run (pxla.py:12) 4000000"])


def case_of_devices():
    """Those of GPUs and of others; of compiled programs it is not said where they lie."""
    samples = [(STACK, (2, 3 << 20), {"kind": "buffer", "device": "cuda:0"}), (OTHER, (1, 5 << 20), {"kind": "buffer", "device": "cuda:1"}),
               (OTHER, (1, 7 << 20), {"kind": "buffer", "device": "TPU_2(process=0,(0,1,0,0))"}), (OTHER, (1, 999), {"kind": "executable"})]
    path = written(Profile(JAX, samples))
    done = mt.execute([mt.MEMTRACE, "import", path])
    mt.equal((done.status, "999 bytes of compiled programs are left out" in done.err), (0, True), done.err)
    page = imports.report(path + ".memtrace")
    mt.equal({d["name"]: d["live_bytes"] for d in page["devices"]}, {"cuda:0": 3 << 20, "cuda:1": 5 << 20, "device:2": 7 << 20})
    mt.equal(page["host"], None, "what it lacks is unknown")


def case_of_go():
    """The value that is alive counts; addresses without a name, inlined functions, no number of blocks."""
    samples = [([("inner", "/src/a.go", 5), ("/opt/libx.so", 0x1234), ("main", "/src/a.go", 9)], (100, 99999, 3, 1000), {}), ([("f", "b.go", 1)], (7, 7777, 0, 0), {})]
    trace = imports.imported(written(Profile(GO, samples, when_ns=1700000000 * 10 ** 9)))
    mt.equal([imports.report(trace)["host"][k] for k in ("live_blocks", "live_bytes")], [3, 1000])
    mt.equal(imports.shown("export", "--format", "folded", "--all-frames", "--at", "end", trace), "heap;main (a.go:9);0x1234;inner (a.go:5) 1000\n")
    mt.check("2023-11-14 22:13:20" in imports.shown("report", trace), "when it was")
    trace = imports.imported(written(Profile([("space", "bytes")], [(STACK, (1000,), {})])))
    mt.equal([imports.report(trace)["host"][k] for k in ("live_blocks", "live_bytes")], [1, 1000])


@mt.variants("report", "report --all", "peak", "leaks", "diff", "check", "reduce", "html -o /dev/null", "timeline")
def case_asked_of_it(command):
    """A moment has no growth: that is not known, and not that there is none."""
    trace = imports.imported(written(Profile(JAX, [(STACK, (50, 200 << 20), {})])))
    text = " ".join(imports.shown(*command.split(), *([trace] if command == "diff" else []), trace).split())
    if command in ("report", "peak", "leaks"):
        mt.check("a profile in pprof's format; unknown: all but this moment" in text, text)
        mt.check("goes on growing" not in text and "only grew" not in text and "no site leaks" not in text, text)


def case_of_our_own():
    """What memtrace exports comes back."""
    trace = imports.imported(written(Profile(JAX, [(STACK, (5, 20020003), {}), (OTHER, (1, 4000000), {})])))
    path = os.path.join(mt.scratch("own"), "own.pb.gz")
    imports.shown("export", "--format", "pprof", "-o", path, trace)
    again = imports.imported(path)
    mt.equal([imports.report(again)["host"][k] for k in ("live_blocks", "live_bytes")], [6, 24020003])


BAD = {"difference": Profile(JAX, [(STACK, (-1, -5), {})]).bytes, "nothing alive": Profile([("cpu", "nanoseconds")], [(STACK, (5,), {})]).bytes,
       "cut": Profile(JAX, [(STACK, (5, 50), {})]).bytes[:-3], "much": Profile(JAX, [(STACK, (1 << 40, 1 << 41), {})]).bytes,
       "large": Profile(JAX, [(STACK, (1, 1 << 60), {})]).bytes, "empty": b"\n", "group": b"\x0a\x00\x0b"}


@mt.variants(*BAD)
def case_refused(name):
    imports.refused(written(BAD[name]))


def case_damaged():
    """Whatever it says: it is refused in one line, or becomes a trace that is whole."""
    rng = random.Random(7)
    whole = Profile(GO, [(STACK, (9, 900, 5, 500), {"device": "cuda:0"}), (OTHER, (2, 20, 1, 10), {}), ([("/opt/libx.so", 0x1234)], (1, 1, 1, 1), {})]).bytes
    contents = []
    for number in range(150):
        damaged = bytearray(whole)
        for _ in range(rng.randrange(1, 6)):
            at = rng.randrange(1, len(damaged))
            damaged[at:at + rng.randrange(3)] = bytes([rng.choice([0, 1, 2, 0x7f, 0x80, 0xff, rng.randrange(256)])])
        contents.append(gzip.compress(damaged) if number % 3 else bytes(damaged))
    imports.check_damaged(contents, written)


if __name__ == "__main__":
    mt.main()
