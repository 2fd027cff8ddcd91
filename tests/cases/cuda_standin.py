#!/usr/bin/env python3
"""Every kind of CUDA memory on the stand-in devices: the trace's device events are what the stand-in driver's own log says, in order,
with address or handle, bytes, device and class."""
# timeout: 200
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import gpu  # noqa: E402
import mt  # noqa: E402
from fakecuda import raw_events  # noqa: E402

PROGRAM = os.path.join(mt.TOP, "tests/programs/cuda_real.py")
LIBRARIES = os.path.join(mt.BUILD, "standin")
CLASSES = {"linear": 1, "managed": 2, "async": 3, "array": 4, "mipmapped": 4, "physical": 5, "reservation": 6, "pinned": 8, "registered": 9}
ALIAS, PHYSICAL, RESERVED = 7, 5, 6


PYTORCH = """
import ctypes, torch
ctypes.PyDLL(None).memtrace_start()
s = torch.cuda.Stream(1)
x = [torch.empty(n * 100003, device="cuda:%d" % (n % 2)) for n in range(1, 12)]
with torch.cuda.stream(s):
    x += [torch.empty(n * 100019, device="cuda:1") for n in range(1, 9)]
del x[::2]
torch.cuda.empty_cache()
pinned = [torch.empty(n, pin_memory=True) for n in (1000, 100000)]
try:
    torch.empty(1 << 33, device="cuda")
except RuntimeError:
    pass
y = torch.ones(1000, device="cuda") + 1
del x
torch.cuda.empty_cache()
"""
SETTINGS = {
    "cudaMallocAsync": {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"},
    "no caching": {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"},
}


def run(shim, *arguments):
    if not os.path.exists(os.path.join(LIBRARIES, "libcuda.so.1")):
        mt.fail("the stand-in is not built (make standin)")
    folder = mt.scratch("standin")
    log = os.path.join(folder, "log")
    env = {"LD_LIBRARY_PATH": LIBRARIES, "MEMTRACE_STANDIN_DIR": folder, "MEMTRACE_STANDIN_LOG": log, "MEMTRACE_STANDIN_GRANULARITY": "1"}
    done = (mt.shimmed if shim else mt.plain)([mt.python(), PROGRAM, *arguments], env=env)
    mt.equal(done.status, 0, "status of %s" % done)
    with open(log) as file:
        return done, [json.loads(line) for line in file]


def of_the_log(log):
    """Each line as (what, address or handle, bytes, device, class). A handle's bytes come back at its last release: one line more, left
    out. What a reset frees is one event."""
    rows = []
    for line in log:
        what, kind = line["op"], line["kind"]
        where = line["handle"] if kind in ("array", "mipmapped") or kind == "physical" and what != "map" and what != "unmap" else line["address"]
        if kind not in CLASSES or what == "free" and kind == "physical":
            continue
        if what == "fail" and line["status"] != 2:
            continue  # not for want of memory: what is registered twice
        if "Reset" in line["function"]:
            if rows[-1][0] != "reset":
                rows.append(("reset", 0, 0, line["device"], 0))
        elif what in ("free", "release"):
            rows.append(("free", where, 0, None, None))
        elif what == "fail":
            rows.append(("fail", line["bytes"], line["status"], line["device"], CLASSES[kind]))
        elif what == "retain":
            rows.append(("alloc", where, 0, line["device"], ALIAS))
        elif what == "unmap":
            rows.append(("unmap", where, line["bytes"], None, None))
        else:
            rows.append((what, where, line["bytes"], line["device"], CLASSES[kind]))
    return rows


def of_the_trace(events):
    rows = []
    for e in events:
        what = e["record"].split("-")[1]
        if what == "undo":  # a free that the driver refused: not in its log
            mt.equal((rows[-1][0], rows[-1][1]), ("free", e["addr"]), "undone")
            rows.pop()
        elif what == "free":
            rows.append((what, e["addr"], 0, None, None))
        elif what == "fail":
            rows.append((what, e["addr"], e["status"], e["ordinal"], e["class"]))
        elif what == "unmap":
            rows.append((what, e["addr"], e["size"], None, None))
        elif what == "map":
            rows.append((what, e["addr"], e["size"], None, e["class"]))
        elif what != "info":
            rows.append((what, e["addr"], e["size"], e["ordinal"], e["class"]))
    return rows


def compare(want, got):
    for i, (a, b) in enumerate(zip(want, got)):
        if a[0] == "map" or a[4] == RESERVED:  # no device: a range, or that of the handle
            a, b = a[:3] + a[4:], b[:3] + b[4:]
        mt.equal(b, a, "event %d of %d" % (i, len(want)))
    mt.equal(len(got), len(want), "number of events")


def case_every_kind():
    done, log = run(True)
    want = of_the_log(log)
    compare(want, of_the_trace(raw_events(done.trace.intact())))
    mt.check(len(want) >= 49, "only %d" % len(want))


def pytorch(settings):
    """PyTorch where it leaves caching to the driver, or to nobody (gpu_pytorch.py has its own caching allocator)."""
    folder = mt.scratch("standin")
    log = os.path.join(folder, "log")
    done = mt.shimmed([gpu.python(), "-c", PYTORCH], env={**gpu.environment(folder, log), "MEMTRACE_PAUSED": "1", **settings})
    mt.equal(done.status, 0, "status of %s" % done)
    events = [e for e in raw_events(done.trace.intact()) if e["class"] != 10]
    want = of_the_log(gpu.read_log(log))
    compare(want, of_the_trace(events))
    mt.check(len(want) > 10, "only %d" % len(want))


def case_the_driver_sees_the_same_calls():
    """The shim's own questions leave no mark: the driver's log is what it is without it. (The program itself checks what the runtime
    remembers as its last error.)"""
    def calls(log):
        return [(line["op"], line["function"], line["kind"], line["device"], line["bytes"], line["status"]) for line in log]
    mt.equal(calls(run(True)[1]), calls(run(False)[1]))


for _name, _settings in SETTINGS.items():
    globals()["case_pytorch_" + _name.replace(" ", "_")] = lambda settings=_settings: pytorch(settings)
mt.main()
