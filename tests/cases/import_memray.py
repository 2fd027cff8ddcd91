#!/usr/bin/env python3
"""memtrace import of memray's files: what memray says of them, memtrace says of the trace that it makes of them."""
import json
import os
import random
import struct
import subprocess
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import consumers
import imports
import memrays
import mt


def written(data, name="memray.bin"):
    path = os.path.join(mt.scratch("memray"), name)
    with open(path, "wb") as file:
        file.write(data)
    return path


def lz4(data, linked=True, block=64 << 10, size=False):
    """A frame of blocks that are not compressed, and of some that repeat themselves. (What compresses well memray writes itself, below.)"""
    out = bytearray(struct.pack("<I", 0x184d2204) + bytes([0x40 | (0 if linked else 0x20) | (8 if size else 0) | 4, 0x40]))
    out += (struct.pack("<Q", len(data)) if size else b"") + b"\0"
    for at in range(0, len(data), block):
        part = data[at:at + block]
        if at % (2 * block):
            out += struct.pack("<I", 0x80000000 | len(part)) + part
        else:  # literals alone
            count = len(part)
            head = bytes([min(count, 15) << 4]) + (b"" if count < 15 else b"\xff" * ((count - 15) // 255) + bytes([(count - 15) % 255]))
            out += struct.pack("<I", len(head) + count) + head + part if len(head) + count <= 64 << 10 else struct.pack("<I", 0x80000000 | count) + part
    return bytes(out + struct.pack("<II", 0, 0))


def folded(trace, at="end", kind="heap"):
    lines = imports.shown("export", "--format", "folded", "--all", "--all-frames", "--at", at, trace).splitlines()
    return {line.rsplit(" ", 1)[0].partition(";")[2]: int(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(kind + ";")}


OPTIONS = {"plain": {}, "1.19": {"version": 12}, "skipped": {"skipped": 2}, "3.9": {"python": 0x03090000}, "3.10": {"python": 0x030a0000}}


@mt.variants(*((seed, name) for seed, name in enumerate(OPTIONS, 1)))
def case_figures(seed, name):
    made = memrays.Traffic(seed, **OPTIONS[name])
    trace = imports.imported(written(made.bytes if seed % 2 else lz4(made.bytes, linked=seed > 3, size=seed > 2)))
    page = imports.report(trace)
    mt.equal({k: page["host"][k] for k in made.counts}, made.counts)
    mt.equal([page["map"][k] for k in ("live_bytes", "peak_bytes")], [made.mapped, made.mapped_peak])
    mt.equal((page["pinned"], page["devices"], page["processes"][0]["pid"], page["processes"][0]["command"]), (None, [], 4711, ["app.py"]))
    mt.equal(folded(trace), {k or "(no stack)": v for k, v in made.sites.items() if v}, "stacks")
    text = " ".join(imports.shown("report", trace).split())
    mt.check("2023-11-14 22:13:20" in text and "a recording of memray's; unknown: what was allocated before it began" in text, text)


ROWS = [(1, "malloc", (0, 1), 3, 1000, 3, 1000), (1, "malloc", (0, 1, 2), 2, 900, 0, 0), (2, "calloc", (3,), 1, 50, 4, 401), (1, "malloc", (4,), 0, 0, 1, 7),
        (1, "mmap", (0,), 2, 3 << 20, 1, 1 << 20), (1, "malloc", (), 1, 5, 1, 5)]


@mt.variants(False, True)
def case_added_up(skipped):
    """The peak and the end; which of the frames are memray's own is said for the first thread."""
    trace = imports.imported(written(memrays.summed(ROWS, skipped=int(skipped))))
    page = imports.report(trace)
    mt.equal([page["host"][k] for k in ("peak_bytes", "live_bytes", "live_blocks")], [1955, 1413, 9])
    mt.equal([page["map"][k] for k in ("peak_bytes", "live_bytes")], [3 << 20, 1 << 20])
    names = ["f%d (m.py:%d)" % (i, 10 * i + 11) for i in range(5)]

    def stack(thread, numbers):
        return ";".join(names[i] for i in (numbers[1:] if skipped and thread == 1 else numbers)) or "(no stack)"

    for at, column in (("peak", 4), ("end", 6)):
        want = {}
        for row in ROWS:
            if row[1] != "mmap" and row[column]:
                want[stack(row[0], row[2])] = want.get(stack(row[0], row[2]), 0) + row[column]
        mt.equal(folded(trace, at), want, at)
    mt.check("unknown: all but the peak and the end" in " ".join(imports.shown("report", trace).split()), "not said")
    mt.check("GROWTH  not known" in imports.shown("leaks", trace), "growth of moments")


def case_native_frames():
    """Of the libraries that the file names, where they lie here, and Python's frames among them."""
    library = next(p for p in ("/lib/x86_64-linux-gnu/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6", "/lib64/libc.so.6") if os.path.exists(p))
    names = subprocess.run(["readelf", "-W", "--dyn-syms", library], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    found = {w[7].split("@")[0]: int(w[1], 16) for w in map(str.split, names) if len(w) == 8 and w[3] == "FUNC" and w[6] != "UND"}
    at = 0x7f0000000000
    w = memrays.Writer(native=True, start=int((os.stat(library).st_mtime + 10) * 1000), end=int((os.stat(library).st_mtime + 20) * 1000))
    w.libraries((library, at, [(0, 0x400000)]), ("/no/such.so", at + 0x1000000, [(0x1000, 0x1000)]))
    w.libraries((library, at, [(0, 0x400000)]), ("/other/such.so", at + 0x1001000, [(0, 0x1000)]))
    w.native_frame(at + found["qsort"] + 5, 0)
    w.native_frame(at + found["bsearch"] + 5, 1)
    w.native_frame(at + 0x1001010, 2)
    w.switch(1)
    w.event("malloc", 0x1000, 100, stack=2)
    w.event("malloc", 0x2000, 200, stack=1)
    w.event("malloc", 0x3000, 300, stack=3)
    w.event("free", 0x3000)
    w.event("malloc", 0x4000, 400, stack=3)
    stacks = folded(imports.imported(written(w.end())))
    mt.equal({";".join(f.split(" ")[0] for f in stack.split(";")): n for stack, n in stacks.items()}, {"qsort;bsearch": 100, "qsort": 200, "qsort;bsearch;such.so+0xf": 400})


def case_cut_off():
    """Of a program that was killed: what was there counts, with zeros behind it or half a record; and it is said."""
    whole = memrays.Traffic(7).bytes
    cut = whole[:len(whole) // 2]
    for number, data in enumerate((cut, cut + b"\0" * 5000, cut[:-1], whole[:-1])):
        path = written(data)
        done = mt.execute([mt.MEMTRACE, "import", path])
        mt.equal((done.status, "is cut off: what came later is not in it" in done.err), (0, True), "%d: %s" % (number, done.err))
        mt.check(imports.report(path + ".memtrace")["host"]["allocations"] > 100, "nothing is in it")


PROGRAM = """
import json, mmap, threading
kept = []
def keep(n): kept.append(bytearray(n))
def churn():
    for i in range(200): bytearray(50000 + i)
there = mmap.mmap(-1, 3 << 20)
for i in range(100): keep(5000 + i)
churn()
thread = threading.Thread(target=churn)
thread.start()
thread.join()
gone = mmap.mmap(-1, 1 << 20)
gone.close()
parsed = [json.loads(json.dumps(list(range(200)))) for _ in range(50)]
del kept[:30]
"""
# What memray's own reader says: of each kind, and of each stack. Mappings are told apart by their function.
READ = """
import json, os, sys, memray
reader = memray.FileReader(sys.argv[1])
native, FREES = reader.metadata.has_native_traces, (1, 5)
def told(records):
    sums, stacks = {}, {}
    for r in records:
        kind = "map" if r.allocator == 14 else "heap"  # of a stack with both it says one of them
        sums[kind] = sums.get(kind, 0) + r.size
        key = ";".join("%s (%s:%d)" % (f, os.path.basename(p), l) for f, p, l in reversed(r.stack_trace())) or "(no stack)"
        stacks[key] = stacks.get(key, 0) + r.size
    return {"sums": sums, "stacks": {k: v for k, v in stacks.items() if v}}
made, live, now, peak = [0, 0], {}, 0, 0
if reader.metadata.file_format.value == 0:
    for r in reader.get_allocation_records():
        if r.allocator not in (14, 15):
            now -= live.pop(r.address, 0)
        if r.allocator not in (*FREES, 14, 15):
            made = [made[0] + 1, made[1] + r.size]
            live[r.address] = r.size
            now += r.size
            peak = max(peak, now)
print(json.dumps({"end": told(reader.get_leaked_allocation_records(merge_threads=True)), "peak": told(reader.get_high_watermark_allocation_records(merge_threads=True)),
                  "made": made + [peak], "all": reader.metadata.peak_memory}))
"""
WAYS = {"plain": [], "uncompressed": ["--no-compress"], "python": ["--trace-python-allocators"], "native": ["--native"], "aggregated": ["--aggregate"],
        "native aggregated": ["--native", "--aggregate"]}


@mt.variants("plain", "native", "aggregated")
def case_equals_memrays_own(way):
    equals_memrays_own(way)


def equals_memrays_own(way):
    if not os.path.isdir(os.path.join(consumers.path("python"), "memray")):
        mt.skip("memray is not installed (make setup-check)")
    folder = mt.scratch("real")
    with open(os.path.join(folder, "app.py"), "w") as file:
        file.write(PROGRAM)
    path = os.path.join(folder, "m.bin")
    done = consumers.python("memray", "run", "-q", *WAYS[way], "-o", path, os.path.join(folder, "app.py"))
    mt.equal((done.returncode, done.stderr), (0, ""))
    said = json.loads(consumers.script(READ, path))
    trace = imports.imported(path)
    page = imports.report(trace)
    mt.equal(page["host"]["live_bytes"] + page["map"]["live_bytes"], sum(said["end"]["sums"].values()), "what is left at the end")
    if way != "python":
        mt.equal([page["host"]["live_bytes"], page["map"]["live_bytes"]], [said["end"]["sums"]["heap"], said["end"]["sums"]["map"]], "of each kind")
    if "aggregated" not in way:
        mt.equal([page["host"][k] for k in ("allocations", "allocated_bytes", "peak_bytes")], said["made"], "allocations, and the peak")
    else:
        mt.equal(page["host"]["peak_bytes"], max(said[k]["sums"]["heap"] for k in ("peak", "end")), "the heap at the peak")
    mt.check(page["host"]["peak_bytes"] + page["map"]["peak_bytes"] >= said["all"], "less than memray's peak of all")
    lines = [l for l in imports.shown("export", "--format", "folded", "--all", "--all-frames", "--at", "end", trace).splitlines()]
    stacks = {}
    for line in lines:
        stack, size = line.rsplit(" ", 1)
        stack = stack.partition(";")[2]
        if "native" in way:  # Python's frames alone
            stack = ";".join(f for f in stack.split(";") if ".py:" in f or "(<" in f) or "(no stack)"
        stacks[stack] = stacks.get(stack, 0) + int(size)
    mt.equal(stacks, said["end"]["stacks"], "stacks at the end")
    if "native" in way:
        mt.check(any(f.startswith("PyByteArray_Resize") for l in lines for f in l.split(";")) or not any("libpython" in l for l in lines), "no names: %s" % lines[0])


def head(**options):
    return memrays.head(**options)


BAD = {"version": head(version=11), "newer": head(version=14), "format": b"memray\0" + struct.pack("<iI??", 13, 0x030b07f0, False, 2)[:10] + b"\2" * 200,
       "no thread": head() + bytes([128 | 15 << 3 | 6]) + b"\x10\x10\1", "type": head() + b"\x0f", "function": head() + bytes([12]) + b"\1" * 8 + bytes([128 | 15 << 3, 2, 99, 1, 1]),
       "pop": head() + bytes([12]) + b"\1" * 8 + b"\x10\1", "code": head() + bytes([12]) + b"\1" * 8 + b"\x41\5\2\1", "native": head(native=True) + bytes([5, 2, 20, 1]),
       "varint": head() + bytes([2]) + b"\xff" * 12, "cut head": head()[:60], "cut sums": memrays.summed(ROWS)[:-1], "cut lz4": lz4(memrays.Traffic(3).bytes)[:-20000],
       "sum": memrays.summed([(1, "free", (), 1, 1, 1, 1)]), "many": memrays.summed([(1, "malloc", (), 1 << 40, 1 << 41, 0, 0)])}


@mt.variants(*BAD)
def case_refused(name):
    imports.refused(written(BAD[name]))


@mt.variants("all", "native", "sums", "lz4")
def case_damaged(kind):
    """Whatever it says: it is refused in one line, or becomes a trace that is whole."""
    rng = random.Random(kind)
    whole = {"all": memrays.Traffic(8).bytes[:4000], "native": memrays.Traffic(9, native=True).bytes[:4000], "sums": memrays.summed(ROWS),
             "lz4": lz4(memrays.Traffic(8).bytes[:4000], block=700)}[kind]
    contents = []
    for _ in range(60):
        damaged = bytearray(whole)
        for _ in range(rng.randrange(1, 6)):
            at = rng.randrange(8, len(damaged))
            damaged[at:at + rng.randrange(4)] = bytes([rng.choice([0, 1, 12, 14, 64, 128, 0xff, rng.randrange(256)]) for _ in range(rng.randrange(3))])
        contents.append(bytes(damaged))
    imports.check_damaged(contents, written)


if __name__ == "__main__":
    mt.main()
