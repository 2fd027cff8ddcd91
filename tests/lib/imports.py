"""PyTorch's own snapshots, of programs on the stand-in that memtrace did not record, and what memtrace import makes of them."""
import json
import os
import pickle
import random
import signal
import sys

import gpu
import mt
from snapshots import UNKNOWN, load, same, segments_of

WAYS = {"": None, "expandable": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
        "rounded": {"PYTORCH_CUDA_ALLOC_CONF": "roundup_power2_divisions:4,max_split_size_mb:40"}}
MADE = ("alloc", "segment_alloc", "segment_map", "oom")


def snapshots(way, seed, steps=600):
    """{moment: file}: where memory ran out, and at the end."""
    folder = mt.scratch("own")
    program = os.path.join(mt.TOP, "tests/programs/snapshot.py")
    done = gpu.run([gpu.python(), program, folder, str(seed), str(steps)], env=WAYS[way], devices="4G,4G", traced=False)
    mt.equal(done.status, -signal.SIGKILL, "%r" % done)
    return {moment: os.path.join(folder, moment + ".pickle") for moment in ("oom", "end")}


def one_block(folder, name, text):
    """The path of a snapshot of one block that PyTorch noted, in a function and a file of that name."""
    frames = [{"filename": text + ".py", "line": 3, "name": text}]
    made = {"addr": 1 << 40, "size": 1 << 20, "stream": 0, "time_us": 10 ** 15, "frames": frames}
    block = {"address": 1 << 40, "size": 1 << 20, "requested_size": 1 << 20, "state": "active_allocated", "frames": frames}
    segment = {"device": 0, "address": 1 << 40, "total_size": 1 << 20, "allocated_size": 1 << 20, "active_size": 1 << 20, "requested_size": 1 << 20,
               "stream": 0, "segment_type": "small", "segment_pool_id": (0, 0), "is_expandable": False, "frames": [], "blocks": [block]}
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        pickle.dump({"segments": [segment], "device_traces": [[{"action": "segment_alloc", **made}, {"action": "alloc", **made}]]}, file, protocol=4)
    return path


def imported(file, *words):
    """The trace's path."""
    out = os.path.join(mt.scratch("imported"), "trace")
    done = mt.execute([mt.MEMTRACE, "import", "-o", out, *words, file])
    mt.equal((done.status, done.out, done.err), (0, out + "\n", ""))
    checked = mt.execute([mt.MEMTRACE, "check", out])
    mt.equal((checked.status, checked.out.endswith("complete\n")), (0, True), checked.out)
    return out


def exported(trace):
    out = os.path.join(mt.scratch("export"), "out.pickle")
    done = mt.execute([mt.MEMTRACE, "export", "--format", "snapshot", "-o", out, trace])
    mt.equal((done.status, done.out, done.err), (0, "", ""))
    return load(out)


def events_of(events):
    """A free is one event in a trace, and has no stack there; that somebody took a snapshot is not in it."""
    return [{k: v for k, v in e.items() if k not in UNKNOWN and (k != "frames" or e["action"] in MADE) and
             (k != "time_us" or e["action"] != "free_completed")} for e in events if e["action"] != "snapshot"]


def compare(file):
    """There and back: what memtrace says of its trace is PyTorch's file, to the byte and the microsecond."""
    own, ours = load(file), exported(imported(file))
    mt.check(sum(len(s["blocks"]) for s in own["segments"]) > 0, "nothing to compare")
    same(segments_of(ours), segments_of(own), "segment")
    mt.equal(len(ours["device_traces"]), len(own["device_traces"]), "devices")
    for mine, theirs in zip(ours["device_traces"], own["device_traces"]):
        mt.check(len(theirs) > 100, "too few events")
        same(events_of(mine), events_of(theirs), "event")


def report(trace):
    done = mt.execute([mt.MEMTRACE, "report", "--json", trace])
    mt.equal((done.status, done.err), (0, ""))
    return json.loads(done.out)


def shown(*words):
    done = mt.execute([mt.MEMTRACE, *words])
    mt.equal((done.status, done.err), (0, ""))
    return done.out


def refused(path):
    """Without a trace; what it says in its one line."""
    done = mt.execute([mt.MEMTRACE, "import", path])
    mt.equal((done.status, done.out, os.listdir(os.path.dirname(path))), (3, "", [os.path.basename(path)]), done.err)
    mt.check(path in done.err and len(done.err.splitlines()) == 1, done.err)
    return done.err


def check_damaged(contents, written):
    """Whatever they say: each is refused in one line, or becomes a trace that is whole."""
    tool = next(p for p in (os.path.join(mt.BUILD, "asan/memtrace"), mt.MEMTRACE) if os.path.exists(p))
    for number, content in enumerate(contents):
        path = written(content)
        done = mt.execute([tool, "import", path], env=mt.clean_env())
        mt.check(done.status in (0, 3) and len(done.err.splitlines()) <= 2, "%d: %r" % (number, done))
        if done.status == 0 and number % 10 == 0:
            mt.check(shown("check", path + ".memtrace").endswith("complete\n"), "%d: not whole" % number)


def mutant(rng, whole, words):
    """Bytes changed, taken out, doubled, and of another place; words of the format put in."""
    damaged = bytearray(whole)
    for _ in range(rng.choice((1, 1, 1, 2, 6))):
        at, how = rng.randrange(len(damaged) + 1), rng.randrange(5)
        if how == 0:
            damaged[at:at + 1] = bytes([rng.randrange(256)])
        elif how == 1:
            del damaged[at:at + rng.choice([1, 4, 200])]
        elif how == 2:
            there = rng.randrange(len(damaged) + 1)
            damaged[at:at] = damaged[there:there + rng.randrange(100)]
        elif how == 3:
            damaged[at:at + rng.randrange(4)] = bytes([rng.choice([0, 1, 2, 0x7f, 0x80, 0xff])])
        else:
            damaged[at:at + rng.randrange(2)] = rng.choice(words)
    return bytes(damaged) or b"?"


def fuzz(wholes, count, words, seed=7):
    """Whatever a file says: it is refused in one line, or becomes a trace that is whole; within what tests/fuzz allows for memory and time."""
    sys.path.insert(0, os.path.join(mt.TOP, "tests/fuzz"))
    import fuzzing
    rng, became = random.Random(seed), 0
    for number in range(count):
        path = os.path.join(mt.scratch("fuzz"), "file")
        with open(path, "wb") as file:
            file.write(mutant(rng, rng.choice(wholes), words))
        tool, kind = (fuzzing.ASAN, "asan") if number % 4 and os.path.exists(fuzzing.ASAN) else (mt.MEMTRACE, "plain")
        run = fuzzing.Run(["import", path], tool, kind)
        why = run.complaint() or (None if len(run.err.splitlines()) <= 2 else "many lines")
        mt.check(not why, "%d: %s" % (number, why))
        mt.equal(os.path.exists(path + ".memtrace"), run.status == 0, "%d: a trace" % number)
        if run.status == 0:
            became += 1
            checked = fuzzing.Run(["check", path + ".memtrace"], mt.MEMTRACE, "plain")
            mt.check(checked.out.endswith(b"complete\n"), "%d: not whole: %r" % (number, checked.out[-300:]))
    print("# %d files, of which %d became traces" % (count, became))
