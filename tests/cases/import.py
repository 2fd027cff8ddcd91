#!/usr/bin/env python3
"""memtrace import: what PyTorch says of its own snapshots, memtrace says of the trace that it makes of them."""
# timeout: 400
import functools
import gzip
import json
import os
import pickle
import subprocess
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import gpu
import imports
import mt

# Random traffic, of which PyTorch's own counters tell the peaks.
COUNTED = """
import json, random, sys, torch
seed, entries, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
rng, kept = random.Random(seed), []
torch.cuda.init()
torch.cuda.memory._record_memory_history(stacks="all" if seed % 2 else "python", max_entries=entries)
def make():
    size = rng.choice([rng.randrange(1, 4096), rng.randrange(1, 1 << 20), rng.randrange(1 << 20, 12 << 20), rng.randrange(12 << 20, 60 << 20)])
    kept.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
for step in range(700):
    if rng.random() < 0.52 or not kept:
        make()
    elif rng.random() < 0.97:
        kept.pop(rng.randrange(len(kept)))
    else:
        torch.cuda.empty_cache()
    while len(kept) > 60:
        kept.pop(0)
torch.cuda.memory._dump_snapshot(folder + "/s.pickle")
print(json.dumps(torch.cuda.memory_stats()))
"""


@functools.lru_cache(None)
def counted(seed, way, entries=100000):
    """A snapshot, and PyTorch's counters."""
    folder = mt.scratch("counted")
    done = gpu.run([gpu.python(), "-c", COUNTED, str(seed), str(entries), folder], env=imports.WAYS[way], devices="4G", traced=False)
    mt.equal(done.status, 0, "%r" % done)
    return os.path.join(folder, "s.pickle"), json.loads(done.out)


@functools.lru_cache(None)
def own(way):
    return imports.snapshots(way, 7)


@mt.variants(*[(way, moment) for way in ("", "expandable") for moment in ("end", "oom")])
def case_equals_pytorchs_own(way, moment):
    imports.compare(own(way)[moment])


@mt.variants(("expandable", 2), long=[("", 2), ("rounded", 2)])
def case_peaks_are_pytorchs(way, seed):
    """Blocks that were freed before the end have no size in the file: it is worked out."""
    file, stats = counted(seed, way)
    pool = imports.report(imports.imported(file))["devices"][0]["pool"]
    for key, counter in [("allocations", "allocation.all.allocated"), ("frees", "allocation.all.freed"), ("live_bytes", "allocated_bytes.all.current"),
                         ("peak_allocated_bytes", "allocated_bytes.all.peak"), ("reserved_bytes", "reserved_bytes.all.current")]:
        mt.equal(pool[key], stats[counter], key)


def case_a_history_that_begins_late():
    """What was there before is there from the start on."""
    file, stats = counted(2, "", 300)
    events = imports.load(file)["device_traces"][0]
    mt.equal(len(events), 300)
    trace = imports.imported(file)
    pool = imports.report(trace)["devices"][0]["pool"]
    mt.equal((pool["live_bytes"], pool["reserved_bytes"]), (stats["allocated_bytes.all.current"], stats["reserved_bytes.all.current"]))
    imports.same(imports.segments_of(imports.exported(trace)), imports.segments_of(imports.load(file)), "segment")


def case_stacks_of_both_languages():
    """Frames of C++ and of Python in the order in which they were."""
    file, _ = counted(3, "")
    event = next(e for e in imports.load(file)["device_traces"][0] if e["action"] == "alloc" and any(f["filename"] == "<string>" for f in e["frames"]))
    wanted = [f["name"] for f in event["frames"] if not f["name"].startswith(("_PyEval", "??"))]
    trace = imports.imported(file)
    stacks = [line.rsplit(" ", 1)[0].split(";") for line in imports.shown("export", "--format", "folded", "--all-frames", trace).splitlines()]
    names = [[frame.split(" ")[0].split("(")[0] for frame in reversed(stack)] for stack in stacks]
    python = [n for n in wanted if n in ("make", "<module>")]
    mt.equal(python, ["make", "<module>"])
    mt.check(any("make" in n and n.index("make") < n.index("<module>") and n.index("make") > 2 for n in names), "%s\n%s" % (wanted, names[:3]))


@mt.variants("report", "report --all", "peak", "leaks", "frag", "timeline", "whatif", "diff")
def case_says_what_it_is(command):
    trace = imports.imported(own("")["end"])
    words = [*command.split(), trace] + ([trace] if command == "diff" else [])
    text = " ".join(imports.shown(*words).split())
    mt.check("IMPORTED from" in text and "a memory snapshot of PyTorch's" in text and "unknown: the host's memory" in text, text)


def case_what_it_lacks_is_unknown():
    trace = imports.imported(own("")["end"])
    page = imports.report(trace)
    mt.equal([page[k] for k in ("host", "map", "pinned")] + [page["processes"][0][k] for k in ("host", "map", "pinned")], [None] * 6)
    mt.equal(page["devices"][0]["total_bytes"], None)
    mt.equal(page["processes"][0]["imported"]["what"], "a memory snapshot of PyTorch's")
    mt.equal(page["processes"][0]["exit"]["kind"], "unknown")
    imports.shown("reduce", trace)
    with gzip.open(os.path.join(trace, "reduced.ndjson.gz"), "rt") as lines:
        run = next(row for row in map(json.loads, lines) if row["t"] == "run")
    mt.equal([run[k + "_peak"] for k in ("heap", "map", "pinned")], [None] * 3)
    for words in (["report", "--all"], ["peak"], ["leaks"]):
        text = imports.shown(*words, trace)
        mt.check("HEAP" not in text and "HOST MEMORY" not in text and "MAPPED" not in text, text)


@mt.variants([], ["--redact", "--salt", "x"])
def case_packed(redact):
    """Unknown stays unknown; the file's name is the only word that is not our own."""
    trace = imports.imported(own("")["end"])
    packed = os.path.join(mt.scratch("packed"), "t.tar")
    imports.shown("pack", *redact, "-o", packed, trace)
    before, after = (imports.report(t)["processes"][0] for t in (trace, packed))
    mt.equal((after["host"], after["imported"]["what"], after["imported"]["unknown"]),
             (None, before["imported"]["what"], before["imported"]["unknown"]))
    mt.equal(after["imported"]["file"] == before["imported"]["file"], not redact, "file")


def case_compressed():
    file = own("")["end"]
    packed = os.path.join(mt.scratch("packed"), "s.gz")
    with open(file, "rb") as plain, gzip.open(packed, "wb") as out:
        out.write(plain.read())
    mt.equal(imports.shown("peak", imports.imported(packed)).split("\n", 2)[2], imports.shown("peak", imports.imported(file)).split("\n", 2)[2])


class Evil:
    def __reduce__(self):
        return os.system, ("touch " + EVIL,)


EVIL = os.path.join(mt.scratch("evil"), "done")
BAD = {"object": lambda: pickle.dumps({"segments": [Evil()], "device_traces": []}), "number": lambda: pickle.dumps(17), "text": lambda: b"no pickle at all",
       "empty": lambda: b"", "other": lambda: pickle.dumps({"a": [1, 2, {"b": 3}]}), "old": lambda: pickle.dumps({"segments": []}, protocol=0),
       "cut": lambda: open(own("")["end"], "rb").read()[:30000], "twice": lambda: b"\x80\x04]\x94\x94.", "pops": lambda: b"\x80\x040.",
       "marks": lambda: b"\x80\x04(((ee.", "itself": lambda: b"\x80\x04]\x94h\x00ah\x00ah\x00.", "far": lambda: b"\x80\x04]r\xff\xff\xff\x0f."}


@mt.variants(*BAD)
def case_refused(name):
    """Nothing of a file is run, and of what is refused no trace is left."""
    folder = mt.scratch("bad")
    path = os.path.join(folder, "x.pickle")
    with open(path, "wb") as file:
        file.write(BAD[name]())
    done = mt.execute([mt.MEMTRACE, "import", path])
    mt.equal((done.status, done.out, os.listdir(folder)), (3, "", ["x.pickle"]), done.err)
    mt.check(path in done.err and len(done.err.splitlines()) == 1, done.err)
    mt.check(not os.path.exists(EVIL), "it was run")


def case_any_protocol():
    """PyTorch's default, an older one and a newer one."""
    file = own("")["oom"]
    for protocol in (2, 3, 5):
        path = os.path.join(mt.scratch("protocol"), "s.pickle")
        with open(path, "wb") as out:
            pickle.dump(imports.load(file), out, protocol=protocol)
        imports.compare(path)


def case_is_there_already():
    trace = imports.imported(own("")["end"])
    before = sorted(os.listdir(trace))
    done = mt.execute([mt.MEMTRACE, "import", "-o", trace, own("")["end"]])
    mt.equal((done.status, sorted(os.listdir(trace))), (2, before), done.err)


# What a snapshot of a long run looks like: events by the million, whose stacks come again and again.
LARGE = """
import pickle, sys
frames = [[{"name": "f%d" % (i * 20 + k), "filename": "/src/model%d.py" % k, "line": i + k} for k in range(20)] for i in range(500)]
events, half = [], int(sys.argv[2])
for i in range(half):
    event = {"addr": 0x7f0000000000 + (i % 9000) * 512, "size": 512, "stream": 0, "time_us": 1700000000000000 + 3 * i}
    events.append({"action": "alloc", **event, "frames": list(frames[i % 500])})
    events.append({"action": "free_requested", **event, "frames": list(frames[i % 500])})
    events.append({"action": "free_completed", **event, "frames": frames[i % 500]})
segment = {"device": 0, "address": 0x7f0000000000, "total_size": 9000 * 512, "allocated_size": 0, "active_size": 0, "requested_size": 0, "stream": 0,
           "segment_type": "small", "segment_pool_id": (0, 0), "is_expandable": False, "frames": [], "blocks": []}
with open(sys.argv[1], "wb") as file:
    pickle.dump({"segments": [segment], "device_traces": [events], "allocator_settings": {}, "external_annotations": []}, file, protocol=4)
"""


def large(count):
    """(bytes of the file, most memory of the import in bytes)."""
    path = os.path.join(mt.scratch("large"), "s.pickle")
    subprocess.run([mt.python(), "-c", LARGE, path, str(count)], check=True)
    child = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    done = mt.execute([mt.python(), "-c", child, mt.MEMTRACE, "import", path], env=mt.clean_env(), timeout=600)
    mt.equal(done.status, 0, done.err)
    with open(os.path.join(path + ".memtrace", "session"), "rb") as file:
        mt.check(file.read(8) == b"MTSESS1\n", "no session")
    return os.path.getsize(path), int(done.out.splitlines()[-1]) * 1024


def case_memory_is_a_part_of_the_file():
    size, most = large(40000)
    mt.check(most < 40_000_000 + size // 2, "%d bytes of memory for a file of %d" % (most, size))
    print("# %.1f MB in %.1f MB" % (size / 1e6, most / 1e6))


if __name__ == "__main__":
    mt.main()
