#!/usr/bin/env python3
"""memtrace export --format snapshot equals PyTorch's own snapshot of the same run, block by block and event by event, and others' tools read it."""
import functools
import json
import os
import pickletools
import signal
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import consumers
import gpu
import mt
from snapshots import UNKNOWN, load, same, segments_of

WAYS = {"": {}, "expandable": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}}


@functools.lru_cache(None)
def traced(way):
    """The trace, and the folder of PyTorch's snapshots."""
    folder = mt.scratch("own")
    program = os.path.join(mt.TOP, "tests/programs/snapshot.py")
    done = gpu.shimmed([gpu.python(), program, folder, "7", "600"], env=dict(WAYS[way], MEMTRACE_PAUSED="1"), devices="4G,4G")
    mt.equal(done.status, -signal.SIGKILL, "%r" % done)
    return done.trace.settle().path, folder


@functools.lru_cache(None)
def exported(way, *words):
    out = os.path.join(mt.scratch("export"), "out.pickle")
    done = mt.execute([mt.MEMTRACE, "export", "--format", "snapshot", "-o", out, *words, traced(way)[0]])
    mt.equal((done.status, done.out, done.err), (0, "", ""))
    return out


def events_of(events, frames):
    """Frees have no stacks in a trace, and that somebody took a snapshot is not in it."""
    return [{k: v for k, v in e.items() if k not in UNKNOWN and k != "time_us" and (k != "frames" or frames and e["action"] == "alloc")}
            for e in events if e["action"] != "snapshot"]


@mt.variants(("expandable", "end"), ("", "oom"), long=[("", "end"), ("expandable", "oom")])
def case_equals_pytorchs_own(way, moment):
    own, ours = load(os.path.join(traced(way)[1], moment + ".pickle")), load(exported(way, "--no-native", "--at", moment))
    mt.check(sum(len(s["blocks"]) for s in own["segments"]) > 40, "too little to compare")
    mt.equal({s["is_expandable"] for s in own["segments"]}, {way == "expandable"})
    same(segments_of(ours), segments_of(own), "segment")
    mt.equal(len(ours["device_traces"]), len(own["device_traces"]), "devices")
    for mine, theirs in zip(ours["device_traces"], own["device_traces"]):
        mt.check(len(theirs) > 200, "too few events")
        same(events_of(mine, True), events_of(theirs, True), "event")
        late = [abs(a["time_us"] - b["time_us"]) for a, b in zip(mine, [e for e in theirs if e["action"] != "snapshot"])]
        mt.check(sorted(late)[len(late) // 2] < 1000000, "times: %s" % late)


def case_sums_are_those_of_peak():
    page = json.loads(mt.execute([mt.MEMTRACE, "peak", "--json", "--at", "end", traced("")[0]]).out)
    ours = load(exported(""))
    for d in page["devices"]:
        mine = [s for s in ours["segments"] if s["device"] == int(d["name"][5:])]
        mt.equal(sum(b["size"] for s in mine for b in s["blocks"] if b["state"] == "active_allocated"), d["pool"]["bytes"], d["name"])
        mt.equal(sum(s["allocated_size"] for s in mine), d["pool"]["bytes"], d["name"])


VIEWED = """
import json, pickle, sys
from torch.cuda import _memory_viz as viz
out = []
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        s = pickle.load(file)
    viz.segsum(s)
    viz.trace(s)
    out.append([viz.memory(s, lambda text: text), viz.segments(s, lambda text: text), len(viz.trace_plot(s)), len(viz.segment_plot(s))])
print(json.dumps(out))
"""


def case_memory_viz_reads_it():
    """PyTorch's own viewer: it adds up again what it is given, and fails where that does not fit."""
    paths = [exported(way) for way in WAYS]
    done = mt.execute([mt.python(), "-c", VIEWED, *paths], env=mt.clean_env())
    mt.equal((done.status, done.err), (0, ""))
    for path, (memory, segments, *pages) in zip(paths, json.loads(done.out)):
        for lines in (memory, segments):
            mt.equal(sum(int(line.rsplit(" ", 1)[1]) for line in lines.splitlines()), sum(s["total_size"] for s in load(path)["segments"]))
        mt.check("active_allocated;" in memory and "snapshot.py" in memory, memory[:500])
        mt.check(min(pages) > 10000, "pages of %s bytes" % pages)


UNDONE = """
import logging, pickle, sys
logging.disable(logging.CRITICAL)
from pt_snap_cli.snapshot.simulate import SimulateDeviceSnapshot
for path in sys.argv[1:]:
    for device in (0, 1):
        with open(path, "rb") as file:
            s = SimulateDeviceSnapshot(pickle.load(file), device)
        done, d = s.replay(), s.device_snapshot
        print(done, len(d.trace_entries), len(d.segments), d.total_allocated, d.total_reserved)
"""


def case_every_event_can_be_undone():
    """pt-snap-cli goes back from the segments through all events, and ends where there is nothing."""
    mt.equal(consumers.script(UNDONE, *map(exported, WAYS)).splitlines(), ["True 0 0 0 0"] * 4)


def case_simple_opcodes():
    """Those that viewers outside of Python know; each list of frames is written once."""
    with open(exported(""), "rb") as file:
        names = {op.name for op, _, _ in pickletools.genops(file.read())}
    mt.equal(names - {"PROTO", "STOP", "MARK", "EMPTY_DICT", "SETITEMS", "EMPTY_LIST", "APPEND", "BININT", "BININT1", "BININT2", "LONG1", "NEWTRUE",
                      "NEWFALSE", "TUPLE2", "SHORT_BINUNICODE", "BINUNICODE", "MEMOIZE", "BINGET", "LONG_BINGET"}, set())
    events = load(exported(""))["device_traces"][0]
    lists = {id(e["frames"]): json.dumps(e["frames"]) for e in events}
    mt.check(len(lists) < 60, "%d lists of %d events" % (len(lists), len(events)))


def case_at_the_peak():
    at_peak = load(exported("", "--at", "peak", "--device", "cuda:0"))
    page = json.loads(mt.execute([mt.MEMTRACE, "frag", "--json", "--at", "peak", "--device", "cuda:0", traced("")[0]]).out)
    mt.equal(sum(s["total_size"] for s in at_peak["segments"]), page["devices"][0]["reserved_bytes"])
    done = mt.execute([mt.MEMTRACE, "export", "--format", "snapshot", "--at", "peak", traced("")[0]])
    asked = all(word in done.err for word in ("peak of which device? --device cuda:", "--device cuda:0", "--device cuda:1"))
    mt.equal((done.status, asked), (2, True), done.err)


def case_no_pool():
    trace = mt.shimmed([mt.program("busy"), "2000", "100", "300"]).trace.settle().path
    done = mt.execute([mt.MEMTRACE, "export", "--format", "snapshot", trace])
    mt.equal((done.status, "no process here has a pool" in done.err), (2, True), done.err)


mt.main()
