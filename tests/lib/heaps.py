"""What whatif --host says of a program's heap, and what a real run under that allocator has: tests/programs/heapload counts it itself."""
import functools
import os
import mt

KINDS = ("arenas", "spike", "large", "handed", "vectors", "mixed")
FOLDER = "/usr/lib/x86_64-linux-gnu"
MIMALLOC = next((name for name in ("libmimalloc.so.2", "libmimalloc.so.3") if os.path.exists(os.path.join(FOLDER, name))), "libmimalloc.so.2")
LIBRARIES = {"jemalloc": "libjemalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4", "mimalloc": MIMALLOC}
PAUSE_MS = 700  # twice in each run, so that a sample falls in it


def environment(setting):
    """What a setting is to a real run: (libraries, variables)."""
    if not setting:
        return [], {}
    if setting in LIBRARIES:
        return [mt.library(LIBRARIES[setting])], {}
    name, value = setting.split("=", 1)
    return [], {name: value}


def said(done):
    mt.equal((done.status, done.err), (0, ""), "status and stderr of %s" % done.command)
    words = done.out.split()
    return {"end": int(words[1]), "peak": int(words[3])}


def command(kind, times, pause_ms=PAUSE_MS):
    return [mt.program("heapload"), kind, str(times), str(pause_ms)]


@functools.lru_cache(None)
def recorded(kind, times=1, setting=None):
    """(trace, what it said of itself)"""
    preload, env = environment(setting)
    done = mt.shimmed(command(kind, times), preload=preload, env=env)
    return done.trace.settle(), said(done)


@functools.lru_cache(None)
def real(kind, times=1, setting=None):
    """Of a run without memtrace."""
    preload, env = environment(setting)
    pause_ms = PAUSE_MS if setting in LIBRARIES else 1  # some give memory back by the clock
    return said(mt.plain(command(kind, times, pause_ms), preload=preload, env=env))


def replayed(kind, times=1, setting="glibc", recorded_as=None):
    """The heap of whatif --json, and the figures of that setting."""
    heap = recorded(kind, times, recorded_as)[0].json("whatif", "--host", setting)["heap"]
    outcome, = heap["settings"]
    mt.equal(outcome["failed"], None, "failed")
    return heap, {"end": outcome["end_bytes"], "peak": outcome["peak_bytes"]}


def check_near(got, want, part, what):
    for name in want:
        mt.between((1 - part) * want[name], got[name], (1 + part) * want[name], "%s of %s" % (name, what))
