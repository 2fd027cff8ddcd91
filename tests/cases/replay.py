#!/usr/bin/env python3
"""memtrace whatif against PyTorch itself: the run replayed gives each request its own block, and what is said of another setting is what
PyTorch's own counters say of a run under it. tests/long/replay.py has more programs, settings and graphs."""
# timeout: 400
import json
import os
import re
import shutil
import subprocess
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import gpu
import mt
import replays
from replays import EXPANDABLE, ROOM, SHORT, run, whatif

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../battery"))  # now, as it has a gpu.py of its own
import trace as writer


@mt.variants((None, SHORT), long=[(EXPANDABLE, SHORT)])
def case_the_run_itself(setting, mib):
    replays.check_itself(setting, mib)


@mt.variants("per_process_memory_fraction:0.28", long=["expandable_segments:True,per_process_memory_fraction:0.28"])
def case_the_pools_own_limit(setting):
    """The pool gives back what is cached by itself, and no call of the driver failed before. (Where the program empties the cache right before
    such a request, the trace does not tell it from a retry: not with this seed.)"""
    replays.check_itself(setting, ROOM, seed=4)


@mt.variants((EXPANDABLE, SHORT), long=[(EXPANDABLE, ROOM), (None, SHORT)])
def case_the_default_stream_alone(setting, mib):
    """No context is current in a thread that has not made a stream: who reserves a range names no device."""
    replays.check_itself(setting, mib, words=("--plain",))


def case_another_setting_on_the_default_stream():
    replays.check_other(EXPANDABLE, "expandable_segments:False", SHORT, words=("--plain",))


@mt.long
def case_a_failure_on_the_other_stream():
    """A failure does not say of which stream it is."""
    replays.check_itself(None, SHORT, seed=7, count=3600)


@mt.long
def case_what_is_unmapped_beside_the_pool():
    """It is no empty_cache()."""
    replays.check_itself(EXPANDABLE, ROOM, words=("--beside",))


@mt.long
def case_emptied_under_a_garbage_collection():
    replays.check_itself(replays.COLLECTED, ROOM)


def case_graphs():
    """Pools of graphs' own, shared ones, graphs that go; failures in captures and beside them."""
    replays.check_graphs("expandable_segments:False", 3)


@mt.variants((EXPANDABLE, 300, 47), (None, 400, 44), long=[(EXPANDABLE, 300, 31), (None, 300, 38)])
def case_what_real_programs_do(setting, mib, seed):
    """Several devices, threads, streams, pinned memory, graphs, expandable segments by turns, failures."""
    replays.check_mixed(setting, mib, seed)


def case_expandable_segments_by_turns():
    """No event says that a program switches them, and the screen does."""
    pools = replays.check_mixed(None, 400, 2)
    mt.check(all(pool["switches"] for pool in pools.values()), "switches: %s" % pools)
    done = replays.mixed(None, 400, 2, traced=True)
    mt.check("the program changes the allocator's settings itself" in done.trace.tool("whatif").out, "the screen")
    mt.equal([pool["switches"] for pool in replays.check_mixed(None, 400, 6).values()], [0], "of a program that does not")


def case_blocks_that_other_streams_hold():
    """A block that another stream uses and that is freed in a capture stays until the capture ends."""
    pools = replays.check_mixed(EXPANDABLE, ROOM, 3)
    mt.check(pools["0"]["held_count"] and pools["0"]["most_held_bytes"] and not pools["1"]["held_count"], "held: %s" % pools)
    mt.check("another stream still used" in replays.mixed(EXPANDABLE, ROOM, 3, traced=True).trace.tool("whatif").out, "the screen")


@mt.variants((EXPANDABLE,), (None,))
def case_blocks_that_kernels_still_use(setting):
    """A prefetcher, whose events are ready only when they were asked for the fourth time, as if kernels ran before them."""
    done = gpu.run([gpu.python(), os.path.join(gpu.SCENARIOS, "prefetcher.py"), "3", "300"], devices="4G", late=3,
                   env={"MEMTRACE_PAUSED": "1", **({"PYTORCH_CUDA_ALLOC_CONF": setting} if setting else {})})
    said, pool = json.loads(done.out.strip().splitlines()[-1]), whatif(done.trace)
    mt.equal(pool["differs"], None, "requests that lie elsewhere")
    mt.equal({name: pool["run"].get(name, pool.get(name)) for name in said}, said, "the run replayed")
    mt.check(pool["held_count"] > 20, "held: %s" % pool["held_count"])


@mt.long
def case_another_setting():
    replays.check_other(None, EXPANDABLE, SHORT)


@mt.long
def case_sizes_that_are_not_known():
    """Of a run whose requests nobody told us, only whose blocks: what was asked for lies between what is said."""
    done = run(None, ROOM, traced=True, unasked=True)
    pool = whatif(done.trace)
    mt.equal((pool["differs"], replays.figures(pool["run"])["most_used_bytes"]), (None, done.said["most_used_bytes"]), "the run itself")
    mt.check(100 < pool["unknown_sizes"] < pool["requests"] / 4, "requests of which only the block is known: %s" % pool["unknown_sizes"])
    mt.between(pool["most_requested_low_bytes"], done.said["most_requested_bytes"], pool["most_requested_bytes"], "asked for")
    for setting in (EXPANDABLE, replays.ROUNDED):
        outcome, = whatif(done.trace, "--alloc-conf", setting)["settings"]
        mt.between(outcome["low"]["most_used_bytes"], run(setting, ROOM).said["most_used_bytes"], outcome["most_used_bytes"], "in use under " + setting)
    text = done.trace.tool("whatif").out
    mt.check("had they asked for less" in text and "may have asked for up to 1.0 MiB less" in text, text)
    mt.equal(whatif(run(None, ROOM, traced=True).trace)["settings"][0]["low"], None, "of a run whose sizes are known")


@mt.variants(("--without", "keep", 0), long=[("--scale", "keep=2.5", 7500000)])
def case_other_requests(option, words, keeping):
    """Of a run that keeps blocks of 3 MB: what is said of it without them, or with larger ones, is what a run of such a program says."""
    kept = run(None, ROOM, traced=True, words=("--keeping", "3000000"), imports=True)
    real = run(None, ROOM, words=("--keeping", str(keeping))).said
    pool = whatif(kept.trace, option, words)
    outcome, = pool["settings"]
    mt.check(outcome["changed"] > 20, "changed: %s" % outcome)
    mt.equal((outcome["refused"], replays.figures(outcome)), (None, replays.figures(real)), "figures %s %s" % (option, words))
    mt.check(replays.figures(pool["run"]) != replays.figures(real), "it makes no difference")


def case_a_change_takes_little_memory():
    """Stacks with frames of Python have numbers above 2^31."""
    trace = run(None, ROOM, traced=True, words=("--keeping", "3000000"), imports=True).trace
    done = mt.execute(["sh", "-c", 'ulimit -v 1500000; exec "$0" whatif --without keep "$1"', mt.MEMTRACE, trace.path])
    mt.equal((done.status, done.err), (0, ""), "within 1.5 GB of addresses")


@mt.long
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


@mt.variants(EXPANDABLE, long=[None])
def case_the_least_card(setting):
    """That whatif names: PyTorch fits there, and not on one that is 2 MiB smaller; it fails at the request that whatif names."""
    done = run(None, ROOM, traced=True)
    pool = whatif(done.trace, *(("--alloc-conf", setting) if setting else ()))
    least = (pool["settings"][0] if setting else pool["run"])["least_device_bytes"]
    mt.equal(least % (2 << 20), 0, "whole steps")
    fits, fails = (run(setting, (size >> 20) + replays.CONTEXT).said for size in (least, least - (2 << 20)))
    asked = [whatif(done.trace, "--alloc-conf", setting or "expandable_segments:False", "--device-memory", str(size))["settings"][0]
             for size in (least, least - (2 << 20))]
    mt.equal((fits["first_refused"], replays.figures(fits)), (None, replays.figures(asked[0])), "on the least card")
    mt.equal(fails["first_refused"], asked[1]["refused"]["request"], "what fails first on a smaller one")


@mt.long
def case_the_least_card_of_a_run_with_failures():
    """On it nothing fails: what failed would have been served, and what was beside the pool is in it."""
    pool = whatif(run(None, SHORT, traced=True).trace)
    least = pool["run"]["least_device_bytes"]
    mt.check(pool["requests_refused"] > 0 and least > SHORT << 20, "least: %s" % least)
    for size, all_of_them in ((least, True), (least - (2 << 20), False)):
        outcome, = whatif(run(None, SHORT, traced=True).trace, "--alloc-conf", "expandable_segments:False", "--device-memory", str(size))["settings"]
        mt.equal(outcome["granted_count"] == pool["requests_refused"] and not outcome["refused"], all_of_them, "served on %d" % size)


@mt.variants(SHORT, long=[ROOM])
def case_without_a_leak(mib):
    """The first that memtrace leaks names: it is the line that keeps, and a run of the repaired program comes to the same."""
    said, real = replays.without(mib, words="leak:1")
    mt.equal(said, real, "without the first leak, on %d MiB" % mib)


@mt.long
def case_which_leaks_there_are():
    trace = run(None, ROOM, traced=True, words=("--keeping", "3000000")).trace
    mt.check(re.search(r"GROWTH  .*requests.py:\d+", re.sub(r"\n", " ", trace.tool("leaks").out)), "what leaks says: %s" % trace.tool("leaks").out)
    for text, said in (("leak:9", "leak:9: 1 leak is in pools"), ("leak:x", "leak:x: it is like leak:1"), ("leak:0", "leak:0: 1 leak is in pools")):
        done = trace.tool("whatif", "--without", text)
        mt.equal((done.status, said in done.err), (2, True), "%s: %s" % (text, done.err))


@mt.long
def case_a_neighbour_on_the_card():
    """Its memory stays what it was."""
    folder = mt.scratch("standin")
    env = gpu.environment(folder, devices="%dM" % 1024)
    with subprocess.Popen([gpu.python(), os.path.join(gpu.SCENARIOS, "neighbour.py"), "0", str(300 << 20)], env=dict(os.environ, **env),
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as neighbour:
        mt.check(json.loads(neighbour.stdout.readline())["bytes"], "the neighbour's memory")
        done = run(None, 1024, traced=True, folder=folder)
        neighbour.kill()
    pool = whatif(done.trace)
    mt.equal((pool["differs"], pool["requests_refused"] > 0), (None, True), "a run beside a neighbour")
    mt.equal(pool["outside_bytes"], (300 + 2 * replays.CONTEXT) << 20, "beside the pool")


def cut_off(trace):
    """A copy that ends in the middle of its events, and what whatif --json says of it."""
    path = os.path.join(mt.scratch("cut"), "trace")
    shutil.copytree(trace.path, path)
    file = max((os.path.join(path, name) for name in os.listdir(path) if name.endswith(".trace")), key=os.path.getsize)
    size, whole = os.path.getsize(file), whatif(trace)["requests"]
    for percent in range(70, 20, -2):  # its end is the call tree and what goes when the program ends
        os.truncate(file, size * percent // 100)
        done = mt.execute([mt.MEMTRACE, "whatif", "--json", "--force", "--alloc-conf", EXPANDABLE, path])
        mt.equal(done.status, 0, "status: %s" % done.err)
        said = json.loads(done.out)
        if said["pools"] and said["pools"][0]["requests"] < whole:
            return path, said
    mt.fail("nothing of it can be cut off")


def case_a_trace_that_was_cut_off():
    """What is left is replayed, and all answers are those of a run that ended there; the screen says that there was more."""
    path, said = cut_off(run(None, ROOM, traced=True, imports=True).trace)
    pool, = said["pools"]
    mt.equal((said["complete"], pool["differs"]), (False, None))
    real = run(EXPANDABLE, ROOM, words=("--requests", str(pool["requests"]))).said
    mt.equal(real["requests"], pool["requests"], "requests of a run that ends there")
    mt.equal(replays.figures(pool["settings"][0]), replays.figures(real), "under another setting")
    mt.equal(mt.execute([mt.MEMTRACE, "whatif", path]).status, 3, "status without --force")
    text = mt.execute([mt.MEMTRACE, "whatif", "--force", path]).out
    mt.check(text.startswith("INCOMPLETE: what is left is replayed"), text)
    whole = run(None, ROOM, traced=True, imports=True).trace
    mt.equal((whole.json("whatif")["complete"], "INCOMPLETE" in whole.tool("whatif").out), (True, False), "of the whole trace")


def case_a_folded_trace():
    """Pairs are missing, so nothing is said of other settings; what was asked for at once is known even so, as PyTorch counted it."""
    whole = run(None, ROOM, traced=True)
    path = os.path.join(mt.scratch("folded"), "trace")
    shutil.copytree(whole.trace.path, path)
    trace = mt.fold(mt.Trace(path))
    said = trace.json("whatif")
    pool, = said["pools"]
    mt.equal((said["folded"], said["complete"]), (True, True))
    mt.check(pool["requests"] < whole.said["requests"], "nothing was folded: %s" % pool)
    mt.equal((pool["settings"], pool["run"], pool["differs"] is None), ([], None, False), "what a replay would have said")
    mt.equal([pool[name] for name in ("most_used_bytes", "most_requested_bytes")],
             [whole.said[name] for name in ("most_used_bytes", "most_requested_bytes")], "at any one time")
    text = " ".join(trace.tool("whatif").out.split())
    mt.check("the disk limit left events out of the trace, so of other settings nothing can be said" in text and "no setting can need less" in text, text)


@mt.long
def case_sampled_stacks():
    """Of pools all requests have stacks even so, and all answers are as of any trace."""
    done = run(None, ROOM, traced=True, words=("--keeping", "3000000"), env=(("MEMTRACE_STACKS", "sample"),))
    real = {words: replays.figures(run(*words).said) for words in ((None, ROOM), (EXPANDABLE, ROOM))}
    outcome, = whatif(done.trace, "--without", "keep")["settings"]
    mt.equal(replays.figures(outcome), real[None, ROOM], "without what it keeps")
    outcome, = whatif(done.trace, "--without", "keep", "--alloc-conf", EXPANDABLE)["settings"]
    mt.equal(replays.figures(outcome), real[EXPANDABLE, ROOM], "and under another setting")


# ---- on written traces -------------------------------------------------------------------------------------------

OLD_LIST = "PYTORCH_CUDA_ALLOC_CONF=roundup_power2_divisions:[16:2,>:4]"


def written(library, version=None, env=None, backend=1, size=20 << 20):
    """A pool's one block of SIZE, of which 17 MiB were asked for, in a process with that library."""
    folder = mt.scratch("written")
    path = os.path.join(folder, "lib", library)
    if version:
        with open(os.path.join(folder, "version.py"), "w", encoding="ascii") as file:
            file.write("__version__ = '%s+cu999'\n" % version)
        os.utime(file.name, (1.6e9, 1.6e9))
    t = writer.Trace(os.path.join(folder, "trace"))
    p = t.process(4711, ["/app/train.py"])
    if env:
        p.record(writer.REC_ENV, env.encode() + b"\0")
    device = p.device(0, "GPU-1", 1 << 30, backend=backend)
    p.at(0.1)
    stack = p.stack(("/app/train.py", "<module>", 3), library=path)
    base = p.alloc(device, writer.DEVICE, size, stack)
    p.slot(writer.DEVICE_ALLOC, base, size, 6, stack, p.ext(writer.POOL, device, other=size - (17 << 20) + 1))
    t.save()
    done = mt.execute([mt.MEMTRACE, "whatif", t.path])
    mt.equal(done.status, 0, "status: %s" % done.err)
    return done.out


@mt.variants(("2.8.0", 20, True), ("2.9.1", 20, False), (None, 24, True), long=[("2.8.0", 24, False), ("2.9.1", 24, True)])
def case_versions(version, mib, same):
    """Before PyTorch 2.9 the last size that a list names was rounded as all beyond it: 17 MiB to 20, since then to 24."""
    text = written("libc10_cuda.so", version, OLD_LIST, size=mib << 20)
    mt.check(("the allocator of PyTorch %s\n" % version if version else "of a version that is not known") in text, "which version: %s" % text)
    mt.equal("not modelled" not in text, same, "it is the same block: %s" % text)


def case_what_is_not_modelled():
    text = written("libmindspore_ascend.so.2", backend=2)
    mt.check("not modelled: MindSpore's allocator" in text and "does it fit" not in text, text)
    text = written("libc10_cuda.so", env="PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync")
    mt.check("not modelled: backend:cudaMallocAsync" in text and "does it fit" not in text, text)


@mt.variants(("expandable:True", "'expandable' is not known; known are expandable_segments,"), ("max_split_size_mb:x", "max_split_size_mb:x: a number from 21 to"),
             ("garbage_collection_threshold:7", "a number from 0 to 1"), ("", "'' is not known; known are"), ("expandable_segments", "a setting is like expandable_segments:True"),
             ("expandable_segments:yes", "expandable_segments:yes: True or False"), ("backend:cudaMallocAsync", "only the native allocator is modelled"),
             ("roundup_power2_divisions:[300:2]", "powers of two"))
def case_wrong_settings(text, said):
    done = run(None, ROOM, traced=True).trace.tool("whatif", "--alloc-conf", text)
    mt.equal(done.status, 2, "status of --alloc-conf %s" % text)
    mt.check(said in done.err and len(done.err.splitlines()) == 1, done.err)


SETS = """
import ctypes, os, sys
def says(when): sys.argv[1] != when or os.environ.update(PYTORCH_CUDA_ALLOC_CONF="max_split_size_mb:21")
says("before")
import torch
ctypes.PyDLL(None).memtrace_start()
says("between")
torch.cuda.init()
says("late")
big = torch.empty(60 << 20, dtype=torch.uint8, device="cuda")
del big
kept = [torch.empty(10 << 20, dtype=torch.uint8, device="cuda") for _ in range(4)]
print(torch.cuda.memory_reserved())
torch.empty(4 << 30, dtype=torch.uint8, device="cuda")
"""


def case_settings_that_the_program_makes():
    """They hold if the allocator has not begun, and then the run is replayed with them. Made later they are in vain, and the advice says so."""
    for when, mib in (("before", 100), ("between", 100), ("late", 60)):
        env = {} if when == "before" else {"MEMTRACE_PAUSED": "1"}  # it is made while the imports are recorded
        done = gpu.run([gpu.python(), "-c", SETS, when], env=env, devices="2G", context="64M")
        mt.equal((done.status, int(done.out) >> 20), (1, mib), when)
        pool = whatif(done.trace)
        mt.equal((pool["differs"], pool["run"]["most_reserved_bytes"] >> 20), (None, mib), when)
        facts = done.trace.tool("dump").out
        mt.equal(("\nlate 0" in facts, "PYTORCH_CUDA_ALLOC_CONF" in re.search("^env.*", facts, re.M)[0]), (when == "late", when != "late"), when)


def case_settings_that_are_made_too_late():
    done = gpu.run([gpu.python(), os.path.join(mt.TOP, "tests/programs/unseen/late_setting.py")], devices="79G", context="520M")
    advice = done.trace.report["verdicts"][0]["advice"]
    mt.check(advice.startswith("start it with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: "), advice)
    mt.check("; the program sets PYTORCH_ALLOC_CONF=expandable_segments:True too late, when the allocator has begun" in advice, advice)


def case_a_setting_that_moves_no_block():
    """As it may stand in a variable that is copied from a run."""
    trace = run(None, ROOM, traced=True).trace
    outcomes = [whatif(trace, "--alloc-conf", text + EXPANDABLE)["settings"][0] for text in ("", "pinned_use_background_threads:True,")]
    mt.equal(*[replays.figures(outcome) for outcome in outcomes])


def case_screen():
    """The table and the sentence below it say the same of each setting, and so does the JSON."""
    trace = run(None, SHORT, traced=True).trace
    text, said = trace.tool("whatif").out, whatif(trace)
    mt.check("each of" in text and "beside the pool 64.0 MiB" in text, text)
    mt.check(re.search(r"^  the run .*  no, \d+ failed$", text, re.M), "what the run's row says: %s" % text)
    rows = re.findall(r"^  (\S+:\S+) .*  (yes|no), ", text, re.M)
    outcomes = {s["setting"]: s for s in said["settings"]}
    mt.check(len(rows) > 1, "rows of settings: %s" % text)
    for name, fits in rows:
        s = outcomes[name]
        mt.equal(fits == "yes", not s["refused"] and s["granted_count"] == said["requests_refused"], "whether it fits: %s" % s)
        mt.check(fits == "yes" or s["goes_on"] is None, "how it goes on behind a failure: %s" % s)
        mt.check(fits == "yes" or "%s: fits" % name not in text, "the sentence says what the table does: %s" % text)


mt.main()
