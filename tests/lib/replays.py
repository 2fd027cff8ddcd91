"""Runs of tests/scenarios/requests.py, and what memtrace whatif says of them."""
import functools
import json
import os

import gpu
import mt

COLLECTED = "garbage_collection_threshold:0.5,per_process_memory_fraction:0.9"
EXPANDABLE, ROUNDED, SPLIT = "expandable_segments:True", "roundup_power2_divisions:8", "max_split_size_mb:24"
FIGURES = ("most_reserved_bytes", "most_used_bytes", "most_requested_bytes", "retries")
# MiB: enough, and not enough: retries, and failures that the program survives. A part of the card is the context's.
ROOM, SHORT, CONTEXT = 2048, 640, 64


@functools.lru_cache(None)
def run(setting, mib, traced=False, seed=1, count=3000, words=()):
    env = {"PYTORCH_CUDA_ALLOC_CONF": setting} if setting else {}
    done = gpu.run([gpu.python(), os.path.join(gpu.SCENARIOS, "requests.py"), str(seed), str(count), *words], env=env, traced=traced, devices="%dM" % mib)
    mt.equal(done.status, 0, "status of %s" % done)
    done.said = json.loads(done.out.strip().splitlines()[-1])
    if traced:
        done.trace.settle()
    return done


@functools.lru_cache(None)
def batches(rows, traced=False):
    done = gpu.run([gpu.python(), os.path.join(gpu.SCENARIOS, "batches.py"), str(rows)], traced=traced, devices="2G")
    mt.equal(done.status, 0, "status of %s" % done)
    done.said = json.loads(done.out.strip().splitlines()[-1])
    if traced:
        done.trace.settle()
    return done


def whatif(trace, *words):
    pool, = trace.json("whatif", *words)["pools"]
    return pool


def figures(said):
    return {name: said[name] for name in FIGURES}


def check_itself(setting, mib, **more):
    """Each request gets the block that it got, and PyTorch has counted what the replay counts."""
    done = run(setting, mib, traced=True, **more)
    pool = whatif(done.trace)
    mt.equal((pool["differs"], pool["unknown_sizes"]), (None, 0), "requests that lie elsewhere")
    mt.equal(figures(pool["run"]), figures(done.said), "figures of the run replayed")
    mt.equal((pool["requests"], pool["requests_refused"]), (done.said["requests"], done.said["requests_refused"]), "requests, and those that failed")


def check_other(setting, other, mib=ROOM, **more):
    """A run with room, asked for OTHER on a card of MIB: the request that fails first, or the figures, are those of a real run there."""
    real = run(other, mib, **more).said
    outcome, = whatif(run(setting, ROOM, traced=True, **more).trace, "--alloc-conf", other, "--device-memory", "%dM" % (mib - CONTEXT))["settings"]
    first = outcome["refused"] and outcome["refused"]["request"]
    mt.equal(first, real["first_refused"], "the request that fails first under %s on %d MiB" % (other, mib))
    if not first:
        mt.equal(figures(outcome), figures(real), "figures under %s on %d MiB" % (other, mib))
    return first
