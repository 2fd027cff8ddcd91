#!/usr/bin/env python3
"""Which object of Python keeps the memory: every way to hold it by its name, with a twin that let go, on each CPython that is found; random
graphs; and that nothing of the program changes."""
# timeout: 600
import json
import os
import random
import re
import subprocess
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import browser
import holders_graph
import mt
import python as frames

PROGRAM = os.path.join(mt.TOP, "tests/programs/holders.py")
RANDOM = os.path.join(mt.TOP, "tests/programs/holders_random.py")
UNIT = 345 * 1024
# how much it holds in units, and how: a pattern of the whole path
WAYS = [
    (1, r"__main__\.global_list\[\.\.\.\]"),
    (2, r"__main__\.global_dict\['key'\]"),
    (3, r"__main__\.instance\.attribute"),
    (4, r"__main__\.slots\.inside"),
    (5, r"__main__\.Plain\.attached"),
    (6, r"__main__\.closure closure captured"),
    (7, r"__main__\.with_default default\[\.\.\.\]"),
    (8, r"__main__\.generator(\.gi_frame)?\.suspended"),
    (9, r"in_traceback of fail \(holders\.py:\d+\), kept by __main__\.error"),
    (10, r"__main__\.handler\.records"),
    (11, r"__main__\.cached\[\.\.\.\]"),
    (14, r"__main__\.second_name"),
    (15, r"__main__\.waiting\.queue\[\.\.\.\]"),
    (16, r"in_thread of work \(holders\.py:\d+\)"),
    (17, r"__main__\.nested\['outer'\]\[\.\.\.\]\['inner'\]\[\.\.\.\]"),
    (18, r"__main__\.ring\[\.\.\.\]"),
    (19, r"__main__\.Meta\.kept"),
    (20, r"__main__\.Derived\.own"),
    (21, r"__main__\.partial\.args\[\.\.\.\]"),
    (22, r"__main__\.shared_[ab]\[\.\.\.\]"),
    (23, r"__main__\.ordered\['last'\]"),
    (24, r"__main__\.method\.__self__\.held_by_method"),
    (25, r"__main__\.suspended_coroutine(\.cr_frame)?\.awaiting"),
    (26, r"__main__\.chain"),
    (27, r"local\[\.\.\.\] of in_frame \(holders\.py:\d+\)"),
]
CYCLE = 13
FRAMES = (16, 27)  # the twin has them, too


def record(python, *arguments, **env):
    done = mt.shimmed([python, *arguments], env=dict(MEMTRACE_HOLDERS="1", HOLDERS=mt.SHIM, **env))
    mt.equal(done.status, 0, "status of %s" % done)
    return done


def heap_of(trace, *options):
    root = trace.json("holders", "--snapshot", "1", "-n", "0", *options)
    mt.check(root["complete"], "a snapshot that is not whole: %s" % root["left_out_types"])
    return root, next(m for m in root["memory"] if m["kind"] == "heap")


def pythons():
    return [("%d.%d" % version, path) for version, path in frames.interpreters()]


@mt.variants(*pythons())
def case_ways(version, python):
    trace = record(python, PROGRAM).trace.settle()
    root, heap = heap_of(trace)
    mt.equal(root["python"], int(version.split(".")[0]) << 8 | int(version.split(".")[1]), "version")
    for units, path in WAYS:
        found = [h for h in heap["holders"] if h["path"] and re.fullmatch(path, h["path"])]
        mt.equal(len(found), 1, "%s: rows of %s in %s" % (version, path, [h["path"] for h in heap["holders"]]))
        mt.between(units * UNIT, found[0]["bytes"], units * UNIT + UNIT // 4, "%s: bytes of %s" % (version, path))
    shared = next(h for h in heap["holders"] if "shared_" in h["path"])
    mt.check(re.fullmatch(r"__main__\.shared_[ab]\[\.\.\.\]", shared["also"] or "") and shared["also"] != shared["path"], "who else: %s" % shared["also"])
    mt.between(CYCLE * UNIT, heap["cycle_bytes"], CYCLE * UNIT + UNIT // 4, "%s: bytes of cycles" % version)
    mt.check([h for h in heap["holders"] if h["held_by"] == "cycle" and "Cycle" in h["path"]], "the cycle has no row")
    mt.check(not [h for h in heap["holders"] if h["path"] and "weak_target" in h["path"]], "a weak reference holds")
    mt.check(root["gc_enabled"] is False, "gc.disable() is not said")


@mt.variants(*pythons())
def case_let_go(version, python):
    _, heap = heap_of(record(python, PROGRAM, "let-go").trace.settle())
    for units, path in WAYS:
        found = [h for h in heap["holders"] if h["path"] and re.fullmatch(path, h["path"])]
        mt.equal(len(found), int(units in FRAMES), "%s: rows of %s" % (version, path))
    mt.check(heap["cycle_bytes"] < UNIT // 50, "%d bytes of cycles after gc.collect()" % heap["cycle_bytes"])
    mt.check(heap["bytes"] < (sum(FRAMES) + 8) * UNIT, "%s: %d bytes are left" % (version, heap["bytes"]))


def score(trace, seed):
    """(bytes that have the right holder, all)"""
    _, heap = heap_of(trace)
    alone, shared, lost = holders_graph.expected(seed)
    roots = holders_graph.make(seed)[1]

    def root_of(path):
        if re.search(r"_args\b", path or ""):
            return "thread0"
        # a variable that a traceback keeps is said first, and behind it who keeps that
        words = re.search(r"^(?:.*, kept by )?(?:__main__\.)?(g\d|local\d|thread0)\b", path or "")
        if words and words.group(1) in roots:
            return words.group(1)
        return "C++" if "(held by C)" in (path or "") else None
    got, got_shared, got_lost = dict.fromkeys([*roots, "C++"], 0), 0, 0
    for h in heap["holders"]:
        root, other = root_of(h["path"]), root_of(h["also"])
        if h["held_by"] == "cycle":
            got_lost += h["bytes"]
        elif root and other and other != root:
            got_shared += h["bytes"]
        elif root:
            got[root] += h["bytes"]
    right = sum(min(got[n], alone[n]) for n in got) + min(got_shared, shared) + min(got_lost, lost)
    return right, sum(alone.values()) + shared + lost


def try_seeds(seeds, python):
    """Their part of the bytes that have the right holder."""
    all_right, all_bytes = 0, 0
    for seed in seeds:
        trace = record(python, RANDOM, os.path.join(mt.TOP, "tests/lib"), str(seed), mt.SHIM, mt.program("libholds.so")).trace.settle()
        right, whole = score(trace, seed)
        mt.check(right >= 0.95 * whole, "seed %d: %.1f %% of %d bytes have the right holder" % (seed, 100 * right / max(whole, 1), whole))
        all_right, all_bytes = all_right + right, all_bytes + whole
    return all_right / all_bytes


def case_random():
    try_seeds((1, 4, 12, 23, 36), mt.python())  # whose cycles, deques and ways once had wrong answers


SAME = os.path.join(mt.TOP, "tests/programs/holders_same.py")


@mt.variants(*pythons())
def case_same(version, python):
    """Counts of references, the collector's counters and objects, weak references, descriptors, children; -X dev, too."""
    pid = os.path.join(mt.scratch(), "pid")
    for options in (["-W", "ignore"], ["-X", "dev", "-W", "ignore"]):
        want = mt.plain([python, *options, SAME])
        got = record(python, *options, SAME, pid)
        mt.equal(got.err, "", "%s: what it says on stderr" % version)
        mt.equal(got.out, want.out, "%s: what it finds changed" % version)
        mt.check("became" not in got.out and "counters True True True" in got.out, got.out)
        names = [s["name"] for s in got.trace.settle().json("holders", "--process", open(pid, encoding="ascii").read())["snapshots"]]
        mt.check("same" in names and "asyncio" in names, "%s: snapshots %s" % (version, names))


FORKS = """
import ctypes, os
snapshot = ctypes.CDLL(os.environ["HOLDERS"]).memtrace_holders
def take(n):
    for i in range(n):
        snapshot(b"%d" % i)
        for _ in range(3): pass
take(1)
pids = []
for k in range(6):
    pids.append(os.fork())
    if not pids[-1]:
        mine, many = [bytearray(1 << 20)], [[i] for i in range(20000 * k)]
        take(4)
        os._exit(0)
for pid in pids:
    assert os.waitpid(pid, 0)[1] == 0
"""


def case_forks():
    """Forked processes take theirs at the same time as others."""
    trace = record(mt.python(), "-c", FORKS).trace.settle()
    pids = {re.match(r"\d+", f).group() for f in os.listdir(trace.path) if f.endswith(".holders")}
    mt.equal(len(pids), 7, "processes with snapshots")
    for pid in pids:
        root = trace.json("holders", "--process", pid)
        names = [s["name"] for s in root["snapshots"]]
        mt.check(root["complete"] and names in (["0", "1", "2", "3", None], ["0", None]), "%s: snapshots %s" % (pid, names))


SHUTDOWN = """
import ctypes, os
snapshot = ctypes.CDLL(os.environ["HOLDERS"]).memtrace_holders
def _shutdown():
    snapshot(b"first")
    for _ in range(3): pass
_shutdown()
snapshot(b"second")
for _ in range(3): pass
"""


def case_function_shutdown():
    """A program's own function is called as the one that joins threads at the end."""
    root = record(mt.python(), "-c", SHUTDOWN).trace.settle().json("holders")
    mt.equal([s["name"] for s in root["snapshots"]], ["first", "second", None], "snapshots")


BROKEN = """
import ctypes, gc, os, sys
gc.disable()
class Broken: pass
kept = [Broken() for _ in range(5)]
good = [bytearray(1 << 20)]
at = ctypes.c_void_p.from_address(id(Broken) + 184)
old = at.value
at.value = int(sys.argv[1], 0) if sys.argv[1] != "abort" else ctypes.cast(ctypes.CDLL(None).abort, ctypes.c_void_p).value
ctypes.CDLL(os.environ["HOLDERS"]).memtrace_holders(b"broken")
for _ in range(5): pass
at.value = old
print("alive")
"""


@mt.variants("0x10", "abort")
def case_broken(where):
    """An extension's tp_traverse that faults, or gives up."""
    done = record(mt.python(), "-c", BROKEN, where)
    mt.equal((done.out, done.err), ("alive\n", ""), "output")
    root = done.trace.settle().json("holders", "--snapshot", "1")
    mt.equal(root["left_out_types"], ["Broken"], "types that were left out")
    mt.check(not root["complete"], "it is said to be complete")
    mt.check([h for h in root["memory"][0]["holders"] if h["path"] == "__main__.good[...]"], "what is good has no row")


def case_memory_error():
    """Nobody catches it: what held the memory is still there."""
    code = ("import resource\nresource.setrlimit(resource.RLIMIT_AS, (700 << 20, 700 << 20))\ndef fill():\n    kept = []\n    while True:\n"
            "        kept.append(bytearray(20 << 20))\nfill()")
    for python in [p for _, p in pythons()]:
        done = mt.shimmed([python, "-c", code], env={"MEMTRACE_HOLDERS": "1", "MEMTRACE_VERBOSE": "1"})
        mt.equal(done.status, 1, "status of %s" % done)
        root = done.trace.settle().json("holders")
        why = [s["why"] for s in root["snapshots"]]
        mt.check(root["snapshots"] and root["snapshots"][0]["why"] == "the host had no memory", "%s: snapshots %s" % (python, why))
        top = root["memory"][0]["holders"][0]
        mt.check("kept" in top["path"], "%s: held by %s" % (python, top["path"]))


@mt.variants((["-c", "x = bytearray(5 << 20)"],), (["-m", "holders_module"],), (["holders_module.py"],))
def case_end(arguments):
    """What a module still has when the program ends."""
    folder = mt.scratch("module")
    with open(os.path.join(folder, "holders_module.py"), "w", encoding="ascii") as file:
        file.write("import sys\nx = bytearray(5 << 20)\nif len(sys.argv) > 1:\n    sys.exit(3)\n")
    for python in [p for _, p in pythons()]:
        for more in ([], ["exit"]) if arguments[0] != "-c" else ([],):
            done = mt.shimmed([python, *arguments, *more], env={"MEMTRACE_HOLDERS": "1"}, cwd=folder)
            mt.equal((done.status, done.err), (3 if more else 0, ""), "%s: status" % python)
            root = done.trace.settle().json("holders")
            mt.equal([s["why"] for s in root["snapshots"]], ["at the program's end"], "%s: snapshots" % python)
            mt.equal(root["memory"][0]["holders"][0]["path"], "__main__.x", "%s: holder" % python)


KEPT_FRAMES = """
errors = []
def fail():
    kept = bytearray(5 << 20)
    raise ValueError(len(kept))
try:
    fail()
except ValueError as e:
    errors.append(e)
"""


@mt.variants("script", "text")
def case_end_with_frames_kept(how):
    """A traceback keeps the code of the main module, too."""
    folder = mt.scratch("module")
    with open(os.path.join(folder, "holders_kept.py"), "w", encoding="ascii") as file:
        file.write(KEPT_FRAMES)
    arguments = {"script": ["holders_kept.py"], "text": ["-c", KEPT_FRAMES]}[how]
    for version, python in pythons():
        done = mt.shimmed([python, *arguments], env={"MEMTRACE_HOLDERS": "1"}, cwd=folder)
        mt.equal((done.status, done.err), (0, ""), "%s: status" % version)
        root = done.trace.settle().json("holders")
        mt.equal([s["why"] for s in root["snapshots"]], ["at the program's end"], "%s: snapshots" % version)
        path = root["memory"][0]["holders"][0]["path"]
        mt.check(re.fullmatch(r"kept of fail \(\S+:\d+\), kept by __main__\.errors\[\.\.\.\]", path), "%s: holder %s" % (version, path))


WORKER = """
import multiprocessing
class Data:
    def __init__(self):
        self.cache = []
    def load(self):
        self.cache += [bytearray(1 << 20) for _ in range(3)]
if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    worker = multiprocessing.Process(target=Data().load)
    worker.start()
    worker.join()
    raise SystemExit(worker.exitcode)
"""


def case_end_of_worker():
    """One that multiprocessing forked ends by os._exit()."""
    for version, python in pythons():
        trace = record(python, "-W", "ignore", "-c", WORKER).trace.settle()
        workers = sorted({re.match(r"\d+", f).group() for f in os.listdir(trace.path) if f.endswith(".holders")})
        mt.equal(len(workers), 2, "%s: processes with snapshots" % version)
        tops = [trace.json("holders", "--process", pid)["memory"][0]["holders"][0] for pid in workers]
        mt.check([h for h in tops if h["bytes"] > 3 << 20 and "cache" in h["path"]], "%s: held by %s" % (version, tops))


LEAKING = """
history = []
for step in range(300):
    batch = bytearray(100_000)
    history.append(bytes(batch[:50_000]))
"""
GROWN = """
CACHE = {}
def get(key):
    CACHE[key] = bytearray(30_000)
def loop():
    for i in range(800):
        get("user:%d" % i)
loop()
"""


def case_report_and_leaks():
    """The container is named in the verdict's evidence and advice, and beside the line in memtrace leaks."""
    trace = record(mt.python(), "-c", LEAKING).trace.settle()
    root = trace.json("report")
    leak = next(v for v in root["verdicts"] if v["kind"] == "leak")
    mt.equal((leak["holder"]["path"], leak["holder"]["type"], leak["holder"]["items"]), ("__main__.history", "list", 300), "holder")
    mt.between(0.95 * 300 * 50_000, leak["holder"]["bytes"], 300 * 50_100, "bytes")
    mt.check("held by __main__.history (list, 300 items)" in leak["evidence"], leak["evidence"])
    mt.check(leak["advice"].startswith("let go of __main__.history (list, 300 items)"), leak["advice"])
    mt.check("NOT KNOWN which" not in trace.tool("report").out, "it says that nobody knows who holds the blocks")
    site = next(s for s in trace.json("leaks")["sites"] if s["holder"])
    mt.equal((site["holder"]["path"], site["grown_bytes"] > 10 << 20), ("__main__.history", True), "holder in leaks")
    mt.check(trace.tool("leaks").out.count("held by __main__.history (list, 300 items)") == 2, trace.tool("leaks").out)
    bare = mt.shimmed([mt.python(), "-c", LEAKING]).trace.settle()
    leak = next(v for v in bare.json("report")["verdicts"] if v["kind"] == "leak")
    mt.check(leak["holder"] is None and "let go of" not in leak["advice"], "a holder without a snapshot: %s" % leak)
    mt.check(all(s["holder"] is None for s in bare.json("leaks")["sites"]), "holders without a snapshot")


def case_report_of_what_only_grew():
    screen = record(mt.python(), "-c", GROWN).trace.settle().tool("report").out
    mt.check("held by __main__.CACHE (dict, 800 items)" in " ".join(screen.split()), screen)


PEAKED = """
import ctypes, os
snapshot = ctypes.CDLL(os.environ["HOLDERS"]).memtrace_holders
class Cache: pass
cache, history = Cache(), []
def train():
    local = bytearray(3 << 20)
    for step in range(50):
        history.append(bytearray(60_000))
    cache.big = bytearray(5 << 20)
    gone = bytearray(11 << 20)
    del gone
    snapshot(b"here")
    for _ in range(5): pass
    late = bytearray(7 << 20)
    return len(local), len(late)
train()
"""


def labels(trace, *options):
    """{holder: bytes} of the heap, which add up to what is alive then."""
    root = trace.json("peak", "--by", "holder", "-n", "0", *options)
    sites = [s for s in root["sites"] if s["memory"] == "heap"]
    mt.equal(sum(s["bytes"] for s in sites), root["host"]["bytes"], "the sum of all holders")
    mt.equal(root["host"]["bytes"], trace.json("peak", *options)["host"]["bytes"], "as much as by stack")
    return {s["label"]: s["bytes"] for s in sites}, root["seen"]


def case_peak_by_holder():
    """Of what was alive at the peak, each block has its holder, or the reason why that is not known."""
    trace = record(mt.python(), "-c", PEAKED).trace.settle()
    held, seen = labels(trace)
    local = next((h for h in held if re.fullmatch(r"local of train \(<string>:\d+\) \(bytearray\)", h)), None)
    mt.check(local, "the variable has no row: %s" % list(held))
    for label, least in (("__main__.history (list)", 3_000_000), ("__main__.cache.big (bytearray)", 5 << 20), (local, 3 << 20), ("(freed before the snapshot)", 11 << 20)):
        mt.between(least, held.get(label, 0), least + (least >> 4), label)
    mt.equal([(s["snapshot"], s["why"]) for s in seen], [(1, "on request")], "the nearest snapshot")
    at = "%.9f" % (seen[0]["at_s"] + 1e-6)
    held, _ = labels(trace, "--at", at)
    mt.check("(freed before the snapshot)" not in held or held["(freed before the snapshot)"] < 100_000, "at the snapshot itself: %s" % held)
    only = {s["label"]: s["bytes"] for s in trace.json("peak", "--by", "holder", "--filter", "train")["sites"]}
    mt.check(3_000_000 <= only.get("__main__.history (list)", 0) and not [h for h in only if h.startswith("typing")], "with a filter: %s" % only)
    screen = trace.tool("peak", "--by", "holder").out
    mt.check("held as seen at" in screen and "__main__.history (list)" in screen, screen)
    bare = mt.shimmed([mt.python(), "-c", "x = 1"]).trace.settle()
    answer = mt.execute([mt.MEMTRACE, "peak", "--by", "holder", bare.path])
    mt.check(answer.status == 2 and "has no snapshot of holders" in answer.err, answer.err)


def case_diff():
    """What holds more than before; a line that moved is no other holder."""
    before, after = (record(mt.python(), "-c", code).trace.settle() for code in (PEAKED, "# moved\n" + PEAKED.replace("range(50)", "range(150)")))
    rows = {o["name"]: o for o in after.json("diff", before.path)["holders"] if o["figure"] == "heap"}
    mt.between(100 * 60_000, rows["__main__.history (list)"]["change_bytes"], 101 * 60_100, "the list's change")
    local = [o for name, o in rows.items() if name.startswith("local of train")]
    mt.equal([(o["change_bytes"], o["change_percent"]) for o in local], [(0, 0)], "the variable's change")
    mt.check("HOLDERS" in after.tool("diff", before.path).out, "the screen has no holders")
    bare = mt.shimmed([mt.python(), "-c", "x = 1"]).trace.settle()
    mt.equal(before.json("diff", bare.path)["holders"], [], "where one has no snapshot")


SHARING = """
import ctypes, os
class Layer:
    def __init__(self):
        self.weight = bytearray(200_000)
class Model:
    def __init__(self):
        self.layers = {str(i): Layer() for i in range(30)}
class Optimizer:
    def __init__(self, parameters):
        self.groups = [{"params": parameters}]
def main():
    model, frozen = Model(), Model()
    optimizer = Optimizer([layer.weight for layer in model.layers.values()])
    ctypes.CDLL(os.environ["HOLDERS"]).memtrace_holders(b"here")
    for _ in range(5): pass
main()
"""


def case_shared_by_two():
    """What each of many parts is held by is said once, by the outermost that lead to them."""
    rows = heap_of(record(mt.python(), "-c", SHARING).trace.settle())[1]["holders"]
    shared = [h for h in rows if h["held_by"] == "shared" and "optimizer" in (h["path"] + (h["also"] or ""))]
    mt.equal([sorted(re.sub(r" of main.*", "", p) for p in (h["path"], h["also"])) for h in shared], [["model", "optimizer"]], "rows of %s" % rows[:4])
    mt.between(30 * 200_000, shared[0]["bytes"], 30 * 200_100, "the weights that both hold")
    mt.check([h for h in rows if h["path"].startswith("frozen.layers of main") and h["bytes"] >= 30 * 200_000], "what one alone holds: %s" % rows[:4])


CLICKED = """
memtrace.set({ tab: "holders" });
await new Promise(r => setTimeout(r, 100));
const text = () => document.querySelector(".left").innerText, row = name => [...document.querySelectorAll(".left tr.link")].find(r => r.innerText.includes(name));
const first = text();
row("__main__.cache.big").click();
await new Promise(r => setTimeout(r, 100));
const there = text(), crumbs = [...document.querySelectorAll(".left .way button")].map(b => b.innerText);
document.querySelectorAll(".left .way button")[2].click();
await new Promise(r => setTimeout(r, 100));
const names = text();
row(".history").click();
await new Promise(r => setTimeout(r, 100));
return [first, there, crumbs, names, text(), memtrace.command()];
"""


def case_page():
    """Its tab has the rows of memtrace holders, and the way to each step by step."""
    trace = record(mt.python(), "-c", PEAKED).trace.settle()
    heap = next(m for m in trace.json("holders", "--snapshot", "1")["memory"] if m["kind"] == "heap")
    page = browser.page(trace.path)
    rows = browser.ask(page, "return memtrace.data.raw.holders.find(p => p.memory === 'heap').rows.map(r => [r.path, r.bytes])")
    mt.equal(rows, [[h["path"], h["bytes"]] for h in heap["holders"]][:100], "the rows")
    first, there, crumbs, names, last, command = browser.ask(page, CLICKED)
    mt.check("__main__.history (list, 50 items)" in first and "__main__.cache.big (bytearray" in first, first)
    mt.equal(crumbs, ["All holders", "Heap", "__main__", ".cache", ".big"], "the way to it")
    mt.check("5.00 MiB" in there and "train < <string>" in there, there)
    mt.check(".history" in names and ".cache" in names, names)
    mt.check("__main__.history (list, 50 items)" in last, last)
    mt.equal(command, "memtrace holders %s" % trace.path, "the command")
    bare = browser.page(mt.shimmed([mt.python(), "-c", "x = 1"]).trace.settle().path)
    mt.check("Holders" not in browser.ask(bare, "return document.querySelector('nav').innerText"), "a tab without a snapshot")


WAITING = """
import asyncio, ctypes, multiprocessing, os, queue, threading
from concurrent.futures import ThreadPoolExecutor
UNIT, go = 100_000, threading.Event()
def use(x):
    go.wait()
async def handle(event):
    body = bytearray(7 * UNIT)
    await event.wait()
async def serve():
    event, requests = asyncio.Event(), asyncio.Queue()
    kept = [asyncio.create_task(handle(event)) for _ in range(10)]
    for _ in range(10):
        requests.put_nowait(bytearray(8 * UNIT))
    await asyncio.sleep(0.05)
    ctypes.CDLL(os.environ["HOLDERS"]).memtrace_holders(b"here")
    for _ in range(5): pass
    event.set()
    await asyncio.gather(*kept)
def main():
    done, busy, late = ThreadPoolExecutor(2), ThreadPoolExecutor(1), queue.Queue()
    futures = [done.submit(bytearray, 3 * UNIT) for _ in range(10)]
    done.shutdown()
    for _ in range(11):
        busy.submit(use, bytearray(4 * UNIT))
    for step in range(10):
        late.put({"step": step, "batch": bytearray(5 * UNIT)})
    sent = multiprocessing.Queue()
    for _ in range(11):  # the pipe has room for less than one
        sent.put(bytearray(6 * UNIT))
    asyncio.run(serve())
    go.set()
    sent.cancel_join_thread()
main()
"""
IN_MAIN = r" of main \(<string>:\d+\)"
# units that each of ten has, and the way: as the program writes it, not as the library's threads do
WAITS = [(3, "futures" + IN_MAIN), (4, r"busy\._work_queue" + IN_MAIN), (5, r"late\.queue" + IN_MAIN), (6, r"sent\._buffer" + IN_MAIN),
         (8, r"requests\._queue of serve \(<string>:\d+\)")]


@mt.variants(*pythons())
def case_waiting(version, python):
    """Results of futures, work and batches in queues, requests of asyncio: by the names that the program has for them."""
    rows = heap_of(record(python, "-c", WAITING).trace.settle())[1]["holders"]
    for units, path in WAITS:
        found = [h["bytes"] for h in rows if re.fullmatch(path, h["path"] or "")]
        mt.equal(len(found), 1, "%s: rows of %s in %s" % (version, path, [h["path"] for h in rows[:8]]))
        mt.between(10 * units * 100_000, found[0], 10 * units * 100_000 + 50_000, "%s: bytes of %s" % (version, path))
    tasks = [h for h in rows if h["bytes"] >= 10 * 7 * 100_000 and {re.sub(r" of serve.*", "", p or "") for p in (h["path"], h["also"])} == {"kept", "event"}]
    mt.equal(len(tasks), 1, "%s: rows of tasks in %s" % (version, [(h["path"], h["also"]) for h in rows[:8]]))


MEMORY_OF_C = """
import ctypes, os, sys
holds = ctypes.PyDLL(sys.argv[1])
for f in (holds.hold_part, holds.hold_dims):
    f.restype, f.argtypes = ctypes.py_object, [ctypes.c_void_p]
holds.hold_pool.restype, holds.hold_pool.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
pool, other = holds.hold_pool(3 << 20), holds.hold_pool(2 << 20)
def serve():
    first, second = [holds.hold_part(pool), holds.hold_part(pool + (1 << 20))], [holds.hold_part(pool + (2 << 20))]
    kept, looks_so = [holds.hold_part(other)], [holds.hold_dims(other)]
    ctypes.CDLL(os.environ["HOLDERS"]).memtrace_holders(b"here")
    for _ in range(5): pass
serve()
"""


def case_memory_of_c():
    """A pool is held by all whose objects of C++ have a part of it. What only looks like a block of malloc's holds nothing."""
    rows = heap_of(record(mt.python(), "-c", MEMORY_OF_C, mt.program("libholds.so")).trace.settle())[1]["holders"]
    named = {h["bytes"] >> 20: sorted(re.sub(r"(\[\.\.\.\])? of serve.*", "", p) for p in (h["path"], h["also"]) if p) for h in rows[:2]}
    mt.equal(named, {3: ["first", "second"], 2: ["kept"]}, "who holds the pool, and the other memory")


DECODE = [sys.executable, os.path.join(mt.TOP, "scripts/decode.py"), "--holders"]
FEW = "import ctypes, os\nkept = [bytearray(1 << 20)]\nctypes.CDLL(os.environ['HOLDERS']).memtrace_holders(b'few')\nfor _ in range(9): pass\n"


def case_decoder():
    """The independent decoder finds as many objects, and the same references."""
    trace = record(mt.python(), "-c", FEW).trace.settle()
    root, done = trace.json("holders", "--snapshot", "1"), mt.execute([*DECODE, trace.path])
    mt.equal((done.status, done.err), (0, ""), "the decoder's status")
    first = done.out.split("\nsnapshot ")[0].splitlines()
    mt.equal(re.sub(r"ticks \d+ \d+", "", first[0]), "snapshot %s why 1 python 0x%x flags 0 faults 0 tracked %d frozen %d  few" % (
        trace.files(".holders")[0], root["python"], root["tracked"], root["frozen"]), "the head")
    mt.equal(sum(re.match("object|frame|block", line) is not None for line in first), root["objects"], "items")
    module = next(line for line in first if re.search(r" module .*label __main__\b", line))
    names = next(line for line in first if line.startswith("object %s dict " % re.search(r"to \[\S*?:(0x\w+)", module)[1]))
    kept = re.search(r"\bkept:(0x\w+)", names)[1]
    held = next(line for line in first if line.startswith("object %s list " % kept))
    mt.check(re.search(r" items 1\b", held) and re.search(r"to \[\S*:?0x\w+\]", held), held)


def case_damaged():
    """Whatever is in the file: an answer or an error, at once."""
    asan = os.path.join(mt.BUILD, "asan/memtrace")
    trace = record(mt.python(), "-S", "-c", FEW).trace.settle()
    path = os.path.join(trace.path, trace.files(".holders")[0])
    with open(path, "rb") as file:
        whole = file.read()
    for seed in range(int(os.environ.get("SEEDS", "12"))):
        r = random.Random(seed)
        data = bytearray(whole)
        for _ in range(r.choice((1, 2, 8, 64))):
            at = r.randrange(256) if r.random() < 0.2 else r.randrange(len(data))
            data[at] = r.choice((0, 1, 127, 128, 255, r.randrange(256)))
        if seed % 5 == 4:
            del data[r.randrange(len(data)):]
        with open(path, "wb") as file:
            file.write(data)
        command = (["holders", "--json"], ["peak", "--by", "holder"], ["leaks"], ["holders"])[seed % 4]
        done = mt.execute([asan if os.path.exists(asan) else mt.MEMTRACE, *command, trace.path], timeout=60)
        mt.check(done.status in (0, 1, 2, 3), "seed %d: %s" % (seed, done))
        done = mt.execute([*DECODE, trace.path])
        mt.check(done.status in (0, 1, 2, 3) and "Traceback" not in done.err, "seed %d: %s" % (seed, done.err[-300:]))


def case_off():
    """Nothing is taken where nobody asked for it."""
    done = mt.shimmed([mt.python(), SAME], env={"HOLDERS": mt.SHIM})
    mt.equal(done.status, 0, "status")
    answer = mt.execute([mt.MEMTRACE, "holders", done.trace.settle().path])
    mt.check(answer.status == 2 and "has no snapshot of holders" in answer.err, answer.err)


def case_request():
    """Of a program that runs, without MEMTRACE_HOLDERS."""
    trace = mt.Trace(os.path.join(mt.scratch(), "t"))
    code = "import time\nkept = [bytearray(3 << 20)]\nprint('ready', flush=True)\nfor i in range(3000): time.sleep(0.01); bytearray(100000)"
    with subprocess.Popen([mt.python(), "-c", code], stdout=subprocess.PIPE, env=mt.shim_env(trace.path), text=True) as program:
        try:
            program.stdout.readline()
            for _ in range(2):
                done = mt.execute([mt.MEMTRACE, "holders", "--json", str(program.pid)])
                mt.equal(done.status, 0, "status of %s" % done)
                root = json.loads(done.out)
                mt.equal(root["memory"][0]["holders"][0]["path"], "__main__.kept[...]", "holder")
            mt.equal(root["snapshot"], 2, "number of the snapshot")
            done = mt.execute([mt.MEMTRACE, "stop", str(program.pid)])
            mt.equal(done.status, 0, "status of %s" % done)
        finally:
            program.kill()


def case_pypy():
    """Its objects are not known: a line says so at once, and the program is as it was."""
    pypy = mt.need("pypy3")
    trace = mt.Trace(os.path.join(mt.scratch(), "t"))
    code = "kept = [bytearray(3 << 20)]\nprint('ready', flush=True)\nprint(input(), len(kept))"
    env = dict(mt.shim_env(trace.path), MEMTRACE_HOLDERS="1")
    with subprocess.Popen([pypy, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, text=True) as program:
        mt.equal(program.stdout.readline(), "ready\n")
        done = mt.execute([mt.MEMTRACE, "holders", str(program.pid)], timeout=10)
        mt.equal((done.status, done.out), (2, ""), done)
        mt.check("runs PyPy: only objects of CPython are known" in done.err, done.err)
        out, err = program.communicate("more\n")
    mt.equal((program.returncode, out, err), (0, "more 1\n", ""))


if __name__ == "__main__":
    mt.main()
