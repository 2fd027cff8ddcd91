#!/usr/bin/env python3
"""memtrace whatif against PyTorch itself: the run replayed gives each request its own block, and what is said of another setting is what
PyTorch's own counters say of a run under it."""
# timeout: 600
import functools
import json
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import gpu
import mt

EXPANDABLE, ROUNDED, SPLIT = "expandable_segments:True", "roundup_power2_divisions:8", "max_split_size_mb:24"
FIGURES = ("most_reserved_bytes", "most_used_bytes", "most_requested_bytes", "retries")
# Enough, and not enough: retries, and failures that the program survives. A part of the card is the context's.
ROOM, SHORT = "2G", "640M"


@functools.lru_cache(None)
def run(setting, devices, traced=False, seed=1, count=3000):
    env = {"PYTORCH_CUDA_ALLOC_CONF": setting} if setting else {}
    done = gpu.run([gpu.python(), os.path.join(gpu.SCENARIOS, "requests.py"), str(seed), str(count)], env=env, traced=traced, devices=devices)
    mt.equal(done.status, 0, "status of %s" % done)
    done.said = json.loads(done.out.strip().splitlines()[-1])
    return done


def whatif(trace, *words):
    pool, = trace.json("whatif", *words)["pools"]
    return pool


def figures(outcome):
    return {name: outcome[name] for name in FIGURES}


@mt.variants((None, ROOM), (None, SHORT), (EXPANDABLE, ROOM), (EXPANDABLE, SHORT), (SPLIT, SHORT), (ROUNDED, ROOM))
def case_the_run_itself(setting, devices):
    done = run(setting, devices, traced=True)
    pool = whatif(done.trace.settle())
    mt.equal((pool["differs"], pool["unknown_sizes"]), (None, 0), "requests that lie elsewhere")
    mt.equal(figures(pool["run"]), {name: done.said[name] for name in FIGURES}, "figures of the run replayed")
    mt.equal(pool["requests_refused"], done.said["requests_refused"], "requests that failed")


@mt.variants((None, ROOM, EXPANDABLE), (None, ROOM, ROUNDED), (EXPANDABLE, ROOM, "expandable_segments:False"), (None, SHORT, SPLIT))
def case_another_setting(setting, devices, other):
    """Up to where a run under that setting would have failed first: from there on the program does something else."""
    trace, real = run(setting, devices, traced=True).trace.settle(), run(other, devices).said
    outcome, = whatif(trace, "--alloc-conf", other)["settings"]
    if devices == ROOM:
        mt.equal((outcome["refused"], figures(outcome)), (None, {name: real[name] for name in FIGURES}), "what %s does" % other)
    mt.equal(outcome["refused"] is not None or outcome["granted_count"] != 0 or figures(outcome) == {name: real[name] for name in FIGURES}, True,
             "%s: %s, not %s" % (other, outcome, real))


def case_another_card():
    """The least card on which the run fits, found by asking; PyTorch fits there, and on one that is 4 MiB smaller it has to retry or fail."""
    done = run(None, ROOM, traced=True)
    trace = done.trace.settle()
    asked = lambda mib: whatif(trace, "--device-memory", "%dM" % mib)["settings"][0]
    low, high = 0, done.said["most_reserved_bytes"] >> 20
    mt.equal((asked(high)["refused"], asked(high)["retries"]), (None, 0), "on a card of what was reserved")
    while high - low > 2:
        middle = (low + high) // 4 * 2
        low, high = (low, middle) if not asked(middle)["refused"] else (middle, high)
    context = 64
    fits, fails = (run(None, "%dM" % (mib + context)).said for mib in (high, low))
    mt.equal((fits["requests_refused"], fits["most_reserved_bytes"]), (0, asked(high)["most_reserved_bytes"]), "on the least card")
    mt.check(fails["requests_refused"] > 0, "it fits into %d MiB, too" % low)


@mt.variants(("expandable:True", "expandable is not known; known are expandable_segments,"), ("max_split_size_mb:x", "max_split_size_mb:x: no such number"),
             ("expandable_segments:yes", "expandable_segments:yes: True or False"), ("backend:cudaMallocAsync", "only the native allocator is modelled"),
             ("roundup_power2_divisions:[300:2]", "powers of two"))
def case_wrong_settings(text, said):
    done = run(None, ROOM, traced=True).trace.settle().tool("whatif", "--alloc-conf", text)
    mt.equal(done.status, 2, "status of --alloc-conf %s" % text)
    mt.check(said in done.err and len(done.err.splitlines()) == 1, done.err)


def case_screen():
    done = run(None, SHORT, traced=True)
    text = done.trace.settle().tool("whatif").out
    mt.check("each of" in text and "beside the pool 64.0 MiB" in text and "that failed" in text, text)


mt.main()
