#!/usr/bin/env python3
"""The model of PyTorch's allocator against the oldest and the newest CUDA build of PyTorch that the package index has for this Python, the first
that tells what was asked for (2.2), and one that asks for a fabric first (2.11): the run itself, other settings, graphs. Each is downloaded (0.6 to 0.8 GB) into the build folder."""
# serial
# timeout: 3600
import functools
import os
import re
import shutil
import subprocess
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import gpu
import mt
import replays

NEEDS = "filelock typing-extensions setuptools sympy networkx jinja2 fsspec numpy<2.3".split()
CORE = ("libcuda.so.1", "libcudart.so.11.0", "libcudart.so.12", "libcudart.so.13", "libnvidia-ml.so.1")
OLDEST = (2, 0)  # whose blocks are seen: before it the function that reports them had other parameters
GROWS = (2, 1)   # has expandable segments
FABRIC = (2, 11) # with expandable segments asks for memory that a fabric may share first, which the stand-in refuses, as a card without one
ASKED = (2, 2)   # from here on requests are known: the function that rounds them can be seen
SEEDS = range(201, 211)
SETTINGS = (replays.ROUNDED, replays.SPLIT, "max_split_size_mb:200", "roundup_power2_divisions:[16:2,>:4]")


@functools.lru_cache(None)
def versions():
    """All that can be had, the oldest first."""
    done = mt.execute([mt.python(), "-m", "pip", "index", "versions", "torch"], timeout=120)
    found = re.search(r"Available versions: (.*)", done.out)
    if not found:
        mt.skip("pip index versions torch: %s" % done.err[-200:])
    plain = [tuple(map(int, word.split("."))) for word in found.group(1).split(", ") if re.fullmatch(r"\d+\.\d+\.\d+", word)]
    return sorted(v for v in plain if v >= OLDEST)


def version_of(which):
    return {"oldest": versions()[0], "asked": next(v for v in versions() if v >= ASKED), "fabric": next(v for v in versions() if v >= FABRIC),
            "newest": versions()[-1]}[which]


def install(version):
    """An environment with that PyTorch; nothing of NVIDIA's."""
    folder = os.path.join(mt.BUILD, "torch-" + version)
    python = os.path.join(folder, "bin/python")
    if not os.path.exists(os.path.join(folder, "complete")):
        shutil.rmtree(folder, ignore_errors=True)
        for command in ([mt.python(), "-m", "venv", folder], [python, "-m", "pip", "install", "-q", *NEEDS],
                        [python, "-m", "pip", "install", "-q", "--no-deps", "torch===" + version]):
            done = mt.execute(command, timeout=1200, env=mt.clean_env(TMPDIR=mt.scratch("pip")))
            if done.status:
                mt.skip("PyTorch %s can't be had: %s" % (version, done.err[-200:]))
        open(os.path.join(folder, "complete"), "w").close()
    return folder


@functools.lru_cache(None)
def use(which):
    """From now on tests/lib/gpu.py runs that PyTorch, on a stand-in with what that wants of NVIDIA. Returns (major, minor)."""
    version = version_of(which)
    folder = install("%d.%d.%d" % version)
    standin = os.path.join(mt.scratch("standin"), "lib")
    os.makedirs(standin)
    for name in CORE:
        shutil.copy(os.path.join(mt.BUILD, "standin", name), standin)
    wheel, = [f for f, _, names in os.walk(os.path.join(folder, "lib")) if "libtorch_cuda.so" in names]
    subprocess.run([os.path.join(mt.TOP, "tests/standin/cuda/stubs.py"), wheel, standin, os.path.join(mt.BUILD, "tests/standin/cuda/maths.o")],
                   check=True, stdout=subprocess.DEVNULL)
    gpu.VENV, gpu.STANDIN = folder, standin
    gpu.python.cache_clear()
    replays.run.cache_clear()
    return version[:2]


def settings(version):
    return (None, replays.EXPANDABLE) if version >= GROWS else (None,)


@mt.variants("oldest", "asked", "fabric", "newest")
def case_the_run_itself(which):
    version = use(which)
    for seed in SEEDS:
        for setting in settings(version):
            for mib in (replays.ROOM, replays.SHORT):
                done = replays.run(setting, mib, traced=True, seed=seed)
                pool = replays.whatif(done.trace)
                mt.equal(pool["differs"], None, "seed %d, %s, %d MiB: requests that lie elsewhere" % (seed, setting, mib))
                mt.check(pool["framework_version"].startswith("%d.%d." % version), pool["framework_version"])
                known = ("most_reserved_bytes", "most_used_bytes", "retries")
                mt.equal({f: pool["run"][f] for f in known}, {f: done.said[f] for f in known}, "seed %d, %s, %d MiB" % (seed, setting, mib))
                mt.between(pool["most_requested_low_bytes"], done.said["most_requested_bytes"], pool["most_requested_bytes"], "asked for, seed %d" % seed)
                mt.equal(pool["unknown_sizes"] > 0, version < ASKED, "requests of which only the block is known: %s" % pool["unknown_sizes"])


def answers():
    """(what is said of another setting on a card, what PyTorch counted there)"""
    return [replays.other(None, other, mib, recorded_calls=True, seed=seed) for other in (replays.EXPANDABLE, replays.SPLIT, replays.ROUNDED)
            for seed in SEEDS[:4] for mib in (replays.ROOM, replays.SHORT)]


def case_another_setting_newest():
    use("newest")
    failed = []
    for said, real in answers():
        mt.equal(said, real)
        failed.append(real["first_refused"])
    mt.check(any(failed) and not all(failed), "nothing failed, or all: %s" % failed)


def case_another_setting_asked():
    """Of free blocks of one size the one at the lowest address serves, so it matters where the driver puts segments, which nobody knows."""
    use("asked")
    pairs = answers()
    differ = [(said, real) for said, real in pairs if said != real]
    print("# %d of %d differ: %s" % (len(differ), len(pairs), differ))
    mt.check(len(differ) <= len(pairs) / 4, "%d of %d differ" % (len(differ), len(pairs)))
    for said, real in differ:
        mt.equal(said["first_refused"] is None, real["first_refused"] is None, "whether it fits: %s, %s" % (said, real))
        if "most_reserved_bytes" in real:
            mt.between(0.9 * real["most_reserved_bytes"], said["most_reserved_bytes"], 1.1 * real["most_reserved_bytes"], "reserved")


def case_sizes_that_are_not_known():
    """Of the oldest: what is in use under another setting lies between what is said, all but always; what is reserved is near."""
    if use("oldest") >= ASKED:
        mt.skip("PyTorch before 2.2 can't be had for this Python")
    within, off = [], []
    for seed in SEEDS:
        done = replays.run(None, replays.ROOM, traced=True, seed=seed)
        for setting in SETTINGS:
            real = replays.run(setting, replays.ROOM, seed=seed).said
            said, = replays.whatif(done.trace, "--alloc-conf", setting)["settings"]
            for figure, into in (("most_used_bytes", within), ("most_reserved_bytes", off)):
                low, high = sorted((said["low"][figure], said[figure]))
                into.append(max(low - real[figure], real[figure] - high, 0) / real[figure])
    print("# in use between both: %d of %d, at most %.1f %% beyond; reserved: %d, %.1f %%" %
          (within.count(0), len(within), 100 * max(within), off.count(0), 100 * max(off)))
    mt.between(0, max(within), 0.01, "in use, beyond what is said")
    mt.between(0, max(off), 0.12, "reserved, beyond what is said")


def case_graphs():
    """Of older ones (2.2.0) the screen says of some that they are not modelled."""
    use("newest")
    for setting, seed in (("expandable_segments:False", 3), ("expandable_segments:False", 4), (replays.EXPANDABLE, 5)):
        replays.check_graphs(setting, seed)


mt.main()
