#!/usr/bin/env python3
"""Every kind of CUDA memory on the stand-in devices: the trace's device events are what the stand-in driver's own log says, in order,
with address or handle, bytes, device and class."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt  # noqa: E402
from fakecuda import raw_events  # noqa: E402

PROGRAM = os.path.join(mt.TOP, "tests/programs/cuda_real.py")
LIBRARIES = os.path.join(mt.BUILD, "standin")
CLASSES = {"linear": 1, "managed": 2, "async": 3, "array": 4, "mipmapped": 4, "physical": 5, "reservation": 6, "pinned": 8, "registered": 9}
ALIAS, PHYSICAL, RESERVED = 7, 5, 6


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


def case_every_kind():
    done, log = run(True)
    want, got = of_the_log(log), of_the_trace(raw_events(done.trace.intact()))
    for i, (a, b) in enumerate(zip(want, got)):
        if a[0] == "map" or a[4] == RESERVED:  # no device: a range, or that of the handle
            a, b = a[:3] + a[4:], b[:3] + b[4:]
        mt.equal(b, a, "event %d of %d" % (i, len(want)))
    mt.equal(len(got), len(want), "number of events")
    mt.check(len(want) >= 50, "only %d" % len(want))


def case_the_driver_sees_the_same_calls():
    """The shim's own questions leave no mark: the driver's log is what it is without it. (The program itself checks what the runtime
    remembers as its last error.)"""
    def calls(log):
        return [(line["op"], line["function"], line["kind"], line["device"], line["bytes"], line["status"]) for line in log]
    mt.equal(calls(run(True)[1]), calls(run(False)[1]))


mt.main()
