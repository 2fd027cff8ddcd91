#!/usr/bin/env python3
"""memtrace whatif against PyTorch itself: the run replayed gives each request its own block, and what is said of another setting is what
PyTorch's own counters say of a run under it. tests/long/replay.py has more programs, settings and graphs."""
# timeout: 400
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt
import replays
from replays import EXPANDABLE, ROOM, SHORT, run, whatif


@mt.variants((None, SHORT), (EXPANDABLE, SHORT))
def case_the_run_itself(setting, mib):
    replays.check_itself(setting, mib)


def case_a_failure_on_the_other_stream():
    """A failure does not say of which stream it is."""
    replays.check_itself(None, SHORT, seed=7, count=3600)


def case_what_is_unmapped_beside_the_pool():
    """It is no empty_cache()."""
    replays.check_itself(EXPANDABLE, ROOM, words=("--beside",))


def case_emptied_under_a_garbage_collection():
    replays.check_itself(replays.COLLECTED, ROOM)


def case_graphs():
    """Pools of graphs' own, shared ones, graphs that go; failures in captures and beside them."""
    replays.check_graphs("expandable_segments:False", 3)


def case_another_setting():
    replays.check_other(None, EXPANDABLE, SHORT)


@mt.variants(("--without", "keep", 0), ("--scale", "keep=2.5", 7500000))
def case_other_requests(option, words, keeping):
    """Of a run that keeps blocks of 3 MB: what is said of it without them, or with larger ones, is what a run of such a program says."""
    kept = run(None, ROOM, traced=True, words=("--keeping", "3000000"))
    real = run(None, ROOM, words=("--keeping", str(keeping))).said
    pool = whatif(kept.trace, option, words)
    outcome, = pool["settings"]
    mt.check(outcome["changed"] > 20, "changed: %s" % outcome)
    mt.equal((outcome["refused"], replays.figures(outcome)), (None, replays.figures(real)), "figures %s %s" % (option, words))
    mt.check(replays.figures(pool["run"]) != replays.figures(real), "it makes no difference")


def case_a_larger_batch():
    """Twice the batch: what a real run of it needed lies between what whatif says."""
    traced, real = replays.batches(32, traced=True), replays.batches(64).said
    least, most = whatif(traced.trace, "--scale", "batch=2")["settings"]
    for name in ("most_used_bytes", "most_reserved_bytes"):
        mt.between(least[name], real[name], most[name], name)
    mt.check(traced.said["most_used_bytes"] < least["most_used_bytes"], "it needs no more with a larger batch")


@mt.variants(("--without", "nowhere.py:1", "no request of the pool was made there"), ("--without", "(", "("), ("--scale", "main", "it is like"),
             ("--scale", "main=0", "it is like"), ("--scale", "batch=x", "it is like"))
def case_wrong_changes(option, words, said):
    done = run(None, ROOM, traced=True).trace.tool("whatif", option, words)
    mt.equal(done.status, 2, "status of %s %s" % (option, words))
    mt.check(said in done.err and len(done.err.splitlines()) == 1, done.err)


def case_another_card():
    """The least card on which the run fits, found by asking; PyTorch fits there, and not on one that is 2 MiB smaller."""
    done = run(None, ROOM, traced=True)
    asked = lambda mib: whatif(done.trace, "--device-memory", "%dM" % mib)["settings"][0]
    low, high = 0, done.said["most_reserved_bytes"] >> 20
    mt.equal((asked(high)["refused"], asked(high)["retries"]), (None, 0), "on a card of what was reserved")
    while high - low > 2:
        middle = (low + high) // 4 * 2
        low, high = (low, middle) if not asked(middle)["refused"] else (middle, high)
    fits, fails = (run(None, mib + replays.CONTEXT).said for mib in (high, low))
    mt.equal((fits["first_refused"], fits["most_reserved_bytes"]), (None, asked(high)["most_reserved_bytes"]), "on the least card")
    mt.equal(fails["first_refused"], asked(low)["refused"]["request"], "what fails first on %d MiB" % low)


@mt.variants(("expandable:True", "expandable is not known; known are expandable_segments,"), ("max_split_size_mb:x", "max_split_size_mb:x: no such number"),
             ("expandable_segments:yes", "expandable_segments:yes: True or False"), ("backend:cudaMallocAsync", "only the native allocator is modelled"),
             ("roundup_power2_divisions:[300:2]", "powers of two"))
def case_wrong_settings(text, said):
    done = run(None, ROOM, traced=True).trace.tool("whatif", "--alloc-conf", text)
    mt.equal(done.status, 2, "status of --alloc-conf %s" % text)
    mt.check(said in done.err and len(done.err.splitlines()) == 1, done.err)


def case_screen():
    text = run(None, SHORT, traced=True).trace.tool("whatif").out
    mt.check("each of" in text and "beside the pool 64.0 MiB" in text and "that failed" in text, text)


mt.main()
