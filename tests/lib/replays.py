"""Runs of tests/scenarios/requests.py, and what memtrace whatif says of them."""
import functools
import inspect
import json
import os

import fakecuda
import gpu
import mt

COLLECTED = "garbage_collection_threshold:0.5,per_process_memory_fraction:0.9"
EXPANDABLE, ROUNDED, SPLIT = "expandable_segments:True", "roundup_power2_divisions:8", "max_split_size_mb:24"
FIGURES = ("most_reserved_bytes", "most_used_bytes", "most_requested_bytes", "retries")
# MiB: enough, and not enough: retries, and failures that the program survives. A part of the card is the context's.
ROOM, SHORT, CONTEXT = 2048, 640, 64


@functools.lru_cache(None)
def unasking():
    """What to preload for a shim that never sees how a request is rounded: the function is answered ahead of it."""
    path, name = os.path.join(mt.scratch("unasking"), "ahead.so"), "_ZN3c1016CachingAllocator26AcceleratorAllocatorConfig24roundup_power2_divisionsEm"
    with open(path + ".c", "w", encoding="utf-8") as file:
        file.write("""#include <dlfcn.h>
unsigned long NAME(unsigned long bytes)
{
	static unsigned long (*real)(unsigned long);
	if (!real)
		real = (unsigned long (*)(unsigned long))dlsym(dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD), "NAME");
	return real(bytes);
}
""".replace("NAME", name))
    fakecuda.cc("-shared", "-fPIC", "-o", path, path + ".c")
    return path + " " + mt.SHIM


def once(function):
    """Of the same arguments one call, whether they are named or left out."""
    kept, signature = functools.lru_cache(None)(function), inspect.signature(function)

    @functools.wraps(function)
    def ask(*arguments, **named):
        bound = signature.bind(*arguments, **named)
        bound.apply_defaults()
        return kept(*bound.args)
    ask.cache_clear = kept.cache_clear
    return ask


@once
def run(setting, mib, traced=False, seed=1, count=3000, words=(), env=(), folder=None, unasked=False, imports=False):
    """UNASKED: the shim is not told what requests ask for, as PyTorch before 2.2 does not. IMPORTS: those of PyTorch are
    recorded, too: most of what a trace has then, and of what its reports take."""
    env = dict(env, **({"PYTORCH_CUDA_ALLOC_CONF": setting} if setting else {}), **({} if imports else {"MEMTRACE_PAUSED": "1"}))
    done = gpu.run([gpu.python(), os.path.join(gpu.SCENARIOS, "requests.py"), str(seed), str(count), *words], env=env, traced=traced, devices="%dM" % mib,
                   folder=folder, shim=unasking() if unasked else None)
    mt.equal(done.status, 0, "status of %s" % done)
    done.said = json.loads(done.out.strip().splitlines()[-1])
    if traced:
        done.trace.settle()
    return done


@once
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


def itself(setting, mib, **more):
    """(what whatif says of the run replayed, what PyTorch counted)."""
    done = run(setting, mib, traced=True, **more)
    pool = whatif(done.trace)
    mt.equal((pool["differs"], pool["unknown_sizes"]), (None, 0), "requests that lie elsewhere")
    said = dict(figures(pool["run"]), requests=pool["requests"], requests_refused=pool["requests_refused"])
    return said, {name: done.said[name] for name in said}


def other(setting, changed, mib=ROOM, recorded_calls=False, **more):
    """(what whatif says of a run with room, asked for CHANGED on a card of MIB; what PyTorch counted in a run there). A call of empty_cache() that
    had nothing to give back is in no trace: with RECORDED_CALLS the run there goes without those, too."""
    recorded = run(setting, ROOM, traced=True, **more)
    in_vain = recorded.said["emptied_in_vain"] if recorded_calls else []
    words = (*more.pop("words", ()), *(("--not-empty", ",".join(map(str, in_vain))) if in_vain else ()))
    real = run(changed, mib, words=words, **more).said
    outcome, = whatif(recorded.trace, "--alloc-conf", changed, "--device-memory", "%dM" % (mib - CONTEXT))["settings"]
    first = outcome["refused"] and outcome["refused"]["request"]
    return (dict({} if first else figures(outcome), first_refused=first),
            dict({} if real["first_refused"] else figures(real), first_refused=real["first_refused"]))


def without(mib=ROOM, words="keep", **more):
    """(what whatif says of a run that keeps blocks, without them; what PyTorch counted in a run that keeps none)."""
    kept = run(None, ROOM, traced=True, words=("--keeping", "3000000"), **more)
    real = run(None, mib, **more).said
    outcome, = whatif(kept.trace, "--without", words, "--device-memory", "%dM" % (mib - CONTEXT))["settings"]
    fits = not outcome["refused"]
    return (dict(figures(outcome) if fits else {}, fits=fits), dict({} if real["first_refused"] else figures(real), fits=not real["first_refused"]))


def check_itself(setting, mib, **more):
    """Each request gets the block that it got, and PyTorch has counted what the replay counts."""
    said, real = itself(setting, mib, **more)
    mt.equal(said, real, "the run replayed")


def check_graphs(setting, seed):
    """The same of a run with CUDA graphs."""
    done = gpu.run([gpu.python(), os.path.join(mt.TOP, "tests/programs/graph_random.py"), str(seed)],
                   env={"MEMTRACE_PAUSED": "1", "PYTORCH_CUDA_ALLOC_CONF": setting}, devices="420M", context="64M")
    mt.equal(done.status, 0, done.err[-300:])
    done.trace.settle()
    pool = whatif(done.trace)
    mt.equal(pool["differs"], None, "requests that lie elsewhere")
    mt.equal([pool["requests_refused"], pool["run"]["retries"]], done.account["ooms_and_retries"], "failures and retries")
    mt.equal([pool["run"]["most_reserved_bytes"], pool["run"]["most_used_bytes"]], [done.account["most_reserved"], done.account["most_used"]])


@once
def mixed(setting, mib, seed, traced=False, count=1500, words=()):
    """A run of tests/scenarios/mixed.py: .said has what PyTorch counted of each device."""
    env = {"MEMTRACE_PAUSED": "1", **({"PYTORCH_CUDA_ALLOC_CONF": setting} if setting else {})}
    done = gpu.run([gpu.python(), os.path.join(gpu.SCENARIOS, "mixed.py"), str(seed), str(count), *words], env=env, traced=traced,
                   devices="%dM,%dM" % (mib, mib))
    mt.equal(done.status, 0, "status of %s" % done)
    done.said = json.loads(done.out.strip().splitlines()[-1])
    if traced:
        done.trace.settle()
    return done


def check_mixed(setting, mib, seed, words=()):
    """On each device each request gets the block that it got, and PyTorch has counted what the replay counts. Returns the pools."""
    done = mixed(setting, mib, seed, traced=True, words=words)
    pools = {pool["device"].split()[0].split(":")[1]: pool for pool in done.trace.json("whatif")["pools"]}
    mt.equal(sorted(pools), sorted(done.said["devices"]), "devices")
    for number, pool in pools.items():
        real, what = done.said["devices"][number], "program %d with %s, on cuda:%s" % (seed, " ".join(done.said["has"]), number)
        mt.equal(pool["differs"], None, "requests that lie elsewhere: " + what)
        said = dict(figures(pool["run"]), requests=pool["requests"], requests_refused=pool["requests_refused"])
        # a request of less than 512 bytes, as graphs make them themselves, counts as 512
        mt.between(real["most_requested_bytes"], said.pop("most_requested_bytes"), real["most_requested_bytes"] + 512 * pool["requests"], "asked for: " + what)
        mt.equal(said, {name: real[name] for name in said}, what)
    return pools


def check_mixed_other(setting, changed, mib, seed, words=()):
    """What is said of a run with room under another setting, on a card of MIB, is what PyTorch counts in a run there."""
    recorded = mixed(setting, ROOM, seed, traced=True, words=words)
    in_vain = recorded.said["emptied_in_vain"]
    real = mixed(changed, mib, seed, words=(*words, *(("--not-empty", ",".join(map(str, in_vain))) if in_vain else ()))).said["devices"]
    failed = []
    for pool in recorded.trace.json("whatif", "--alloc-conf", changed, "--device-memory", "%dM" % (mib - CONTEXT))["pools"]:
        number, (outcome,) = pool["device"].split()[0].split(":")[1], pool["settings"]
        first = outcome["refused"] and outcome["refused"]["request"]
        what = "program %d with %s, under %s on cuda:%s of %d MiB" % (seed, " ".join(recorded.said["has"]), changed, number, mib)
        failed.append(real[number]["first_refused"])
        if any(d["first_refused"] for d in real.values()):  # what comes behind it is another program
            firsts = {n: d["first_refused"] for n, d in real.items()}
            mt.check(first == firsts[number] or len(firsts) > 1, "%s: fails first at %s, really at %s" % (what, first, firsts))
            continue
        said = {name: outcome[name] for name in FIGURES if name != "most_requested_bytes"}
        if "graphs" in recorded.said["has"]:  # which captures share a pool is known where they met in a segment of the recorded run
            mt.between(0.95 * real[number]["most_reserved_bytes"], said.pop("most_reserved_bytes"), 1.05 * real[number]["most_reserved_bytes"], what)
        mt.equal(dict(said, first_refused=first), dict({name: real[number][name] for name in said}, first_refused=None), what)
    return any(failed)


def check_other(setting, changed, mib=ROOM, **more):
    """The request that fails first, or the figures, are those of a real run. Returns that request."""
    said, real = other(setting, changed, mib, recorded_calls=True, **more)
    mt.equal(said, real, "under %s on %d MiB" % (changed, mib))
    return real["first_refused"]
