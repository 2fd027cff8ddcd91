#!/usr/bin/env python3
"""memtrace import of heaptrack's files: what heaptrack says of them, memtrace says of the trace that it makes of them."""
import functools
import json
import os
import random
import subprocess
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import imports
import mt


def written(text, name="heaptrack.x", compress=None):
    path = os.path.join(mt.scratch("heaptrack"), name)
    with open(path, "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    if compress:
        subprocess.run([mt.need(compress), "-q", path], check=True)
    return path + {None: "", "zstd": ".zst", "gzip": ".gz"}[compress]


class Made:
    """A file of random traffic, and what it comes to, counted here."""

    def __init__(self, seed, version=3):
        rng = random.Random(seed)
        lines, self.live, self.peak, self.allocations, self.bytes = ["v 10400 %x" % version, "X ./made --steps 3", "I 1000 5e298f", "# a comment"], 0, 0, 0, 0
        strings = ["/opt/made", "inner", "made.c", "outer", "/opt/libx.so", "spaces in it"]
        lines += ["s %x %s" % (len(s), s) if version >= 3 else "s " + s for s in strings]
        # inner is inlined into outer; without a place; without a name
        lines += ["i 1000 1 2 3 a 4 3 b", "i 2000 1 4", "i 3000 5", "t 1 0", "t 2 0", "t 1 2", "t 3 3"]
        kinds = [(rng.randrange(1, 100000), rng.randrange(5)) for _ in range(40)]
        lines += ["a %x %x" % kind for kind in kinds]
        alive, self.by_size = [], {}
        for step in range(3000):
            if step % 50 == 0:
                lines.append("c %x" % (step // 5))
            if rng.random() < 0.52 or not alive:
                number = rng.randrange(len(kinds))
                alive.append(number)
                lines.append("+ %x" % number)
                self.allocations += 1
                self.bytes += kinds[number][0]
                self.live += kinds[number][0]
                self.peak = max(self.peak, self.live)
            else:
                number = alive.pop(rng.randrange(len(alive)))
                lines.append("- %x" % number)
                self.live -= kinds[number][0]
        self.blocks, self.text = len(alive), "\n".join(lines) + "\n"


@mt.variants((1, 3, None), (2, 3, "zstd"), (3, 2, "gzip"), (4, 1, None))
def case_figures(seed, version, compress):
    made = Made(seed, version)
    trace = imports.imported(written(made.text, compress=compress))
    page = imports.report(trace)
    host = page["host"]
    mt.equal({k: host[k] for k in ("allocations", "allocated_bytes", "peak_bytes", "live_bytes", "live_blocks")},
             {"allocations": made.allocations, "allocated_bytes": made.bytes, "peak_bytes": made.peak, "live_bytes": made.live, "live_blocks": made.blocks})
    mt.equal([page[k] for k in ("map", "pinned")] + [page["devices"]], [None, None, []], "what it lacks is unknown")
    mt.equal((page["processes"][0]["exit"]["kind"], page["processes"][0]["command"]), ("unknown", ["./made"]))
    text = " ".join(imports.shown("report", trace).split())
    mt.check("a recording of heaptrack's; unknown: mappings, devices" in text and "MAPPED" not in text, text)


@functools.lru_cache(None)
def large():
    """A file of some blocks of LZ4's, and what is said of it."""
    rng = random.Random(9)
    path = written(Made(9).text + "".join("+ %x\n- %x\n" % (n, n) for n in (rng.randrange(40) for _ in range(40000))))
    mt.check(os.path.getsize(path) > 5 * (64 << 10), "only %d bytes" % os.path.getsize(path))
    return path, imports.report(imports.imported(path))["host"]


@mt.variants("-1", "-9 -B4 -BD", "-B4", "-B7 -BX", "-B5 -BD --content-size", "-B6 --no-frame-crc")
def case_as_lz4_packs_it(options):
    """Blocks of each size, which may refer to those before, with and without sums."""
    mt.need("lz4")
    (path, want), packed = large(), os.path.join(mt.scratch("packed"), "h.lz4")
    subprocess.run(["lz4", "-q", *options.split(), path, packed], check=True)
    mt.check(os.path.getsize(packed) < os.path.getsize(path) * 0.8, "nothing was packed")
    mt.equal(imports.report(imports.imported(packed))["host"], want)


def case_stacks():
    trace = imports.imported(written(Made(5).text))
    folded = {line.rsplit(" ", 1)[0] for line in imports.shown("export", "--format", "folded", "--all-frames", "--at", "end", trace).splitlines()}
    inner = "inner (made.c:10)"
    mt.check("heap;outer;outer (made.c:11);" + inner in folded and "heap;outer (made.c:11);" + inner in folded and "heap;outer" in folded, "%s" % folded)
    mt.check(any(stack.startswith("heap;outer;outer (made.c:11);%s;" % inner) and "libx.so" in stack for stack in folded), "%s" % folded)


@mt.variants("report", "report --all", "peak", "leaks", "timeline", "diff", "check", "reduce", "html -o /dev/null")
def case_asked_of_it(command):
    trace = imports.imported(written(Made(6).text))
    imports.shown(*command.split(), *([trace] if command == "diff" else []), trace)


REAL = {
    "c": ["{program}", "20"],
    "python": [sys.executable, "-c", "import json, decimal; kept = [bytearray(10000 + i) for i in range(500)]; [json.dumps([i] * 50) for i in range(50)]"],
    "threads": [sys.executable, "-c", "import threading\nt = [threading.Thread(target=lambda: [bytearray(9000) for _ in range(300)]) for _ in range(3)]\n"
                                      "[x.start() for x in t]; [x.join() for x in t]"],
}


def counted(path, cost):
    """The sum of what heaptrack's own tool says of each stack."""
    out = os.path.join(mt.scratch("print"), "out")
    subprocess.run(["heaptrack_print", "--flamegraph-cost-type", cost, "-F", out, "--disable-embedded-suppressions", "--disable-builtin-suppressions", path],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(out, encoding="utf-8") as file:
        return sum(int(line.rsplit(" ", 1)[1]) for line in file)


@mt.variants("python", "threads")
def case_equals_heaptracks_own(name):
    mt.need("heaptrack_print")
    path = os.path.join(mt.scratch("real"), "h")
    subprocess.run([mt.need("heaptrack"), "-o", path, *REAL[name]], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=mt.clean_env())
    path = next(path + end for end in (".zst", ".gz") if os.path.exists(path + end))
    host = imports.report(imports.imported(path))["host"]
    mt.equal({"allocations": host["allocations"], "leaked": host["live_bytes"], "peak": host["peak_bytes"]},
             {cost: counted(path, cost) for cost in ("allocations", "leaked", "peak")})


HEAD = "v 10400 3\n"
BAD = {"version": "v 10400 4\n", "no version": "v x\n", "raw": HEAD + "x 1 2\n", "letter": HEAD + "? 1\n", "number": HEAD + "+ z\n", "none such": HEAD + "+ 0\n",
       "stack": HEAD + "a 10 7\n", "place": HEAD + "t 1 0\n", "parent": HEAD + "i 1 0\nt 1 1\n", "string": HEAD + "s 99 x\n", "size": HEAD + "a ffffffffffffffff 0\n",
       "cut": HEAD + "i 1", "zero": HEAD + "\0 1\n", "long": HEAD + "X " + "x" * 1100000 + "\n", "twice": HEAD + "X a\nX b\n",
       "addresses": HEAD + "a ffffffffffff 0\n+ 0\n+ 0\n"}


@mt.variants(*BAD)
def case_refused(name):
    imports.refused(written(BAD[name]))


def case_frees_of_nothing_are_told():
    path = written(HEAD + "a 10 0\n+ 0\n- 0\n- 0\n")
    done = mt.execute([mt.MEMTRACE, "import", path])
    mt.equal((done.status, "1 of 3 events do not fit the rest" in done.err), (0, True), done.err)


def case_damaged():
    """Whatever it says: it is refused in one line, or becomes a trace that is whole."""
    rng, whole = random.Random(7), Made(8).text[:6000].rpartition("\n")[0].encode() + b"\n"
    contents = []
    for _ in range(120):
        damaged = bytearray(whole)
        for _ in range(rng.randrange(1, 8)):
            at = rng.randrange(len(damaged))
            how = rng.randrange(4)
            if how == 0:
                damaged[at] = rng.randrange(256)
            elif how == 1:
                del damaged[at:at + rng.randrange(200)]
            elif how == 2:
                damaged[at:at] = damaged[rng.randrange(len(damaged)):][:rng.randrange(100)]
            else:
                damaged[at:at] = rng.choice([b"f" * 16, b"\n", b" ", b"-", b"0", b"\n+ ", b"\nt 1 1\n"])
            damaged = damaged or bytearray(b"v")
        contents.append(bytes(damaged))
    imports.check_damaged(contents, written)


if __name__ == "__main__":
    mt.main()
