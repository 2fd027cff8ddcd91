"""PyTorch's own snapshots, of programs on the stand-in that memtrace did not record, and what memtrace import makes of them."""
import json
import os
import signal

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


def imported(file, *words):
    """The trace's path."""
    out = os.path.join(mt.scratch("imported"), "trace")
    done = mt.execute([mt.MEMTRACE, "import", "-o", out, *words, file], env=mt.clean_env())
    mt.equal((done.status, done.out, done.err), (0, out + "\n", ""))
    checked = mt.execute([mt.MEMTRACE, "check", out], env=mt.clean_env())
    mt.equal((checked.status, checked.out.endswith("complete\n")), (0, True), checked.out)
    return out


def exported(trace):
    out = os.path.join(mt.scratch("export"), "out.pickle")
    done = mt.execute([mt.MEMTRACE, "export", "--format", "snapshot", "-o", out, trace], env=mt.clean_env())
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
    done = mt.execute([mt.MEMTRACE, "report", "--json", trace], env=mt.clean_env())
    mt.equal((done.status, done.err), (0, ""))
    return json.loads(done.out)
