#!/usr/bin/env python3
"""What only looks ill on a device, with PyTorch on the stand-in: no verdict, or none of what it looks like; and twins that are ill."""
# timeout: 240
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../battery"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import gpu
import mt
from trace import POOL, Trace

MIB = 1 << 20


@mt.once
def run(kind, *options):
    done = gpu.scenario("looks_gpu", kind, *options, paused=True, timeout=120)
    done.trace.settle()
    return done


def kinds(done):
    return {v["kind"] for v in done.trace.report["verdicts"]}


@mt.variants("driver_pool", "idle", "serving", long=["pinned"])
def case_no_verdict(kind):
    done = run(kind)
    mt.equal((done.status, done.trace.report["status"], kinds(done)), (0, "ok", set()), "%s: exit, status and verdicts" % kind)


@mt.variants("driver_pool", "serving", long=["pinned"])
def case_twin_leaks(kind):
    """What is kept is what the program kept, but for its first steps; a batch is at most 8 MiB and is rounded up to twice that."""
    done = run(kind, "--sick")
    # who frees nothing else may only fill memory: a fact, and no accusation
    said = "facts" if kind == "pinned" else "verdicts"
    verdict, = [v for v in done.trace.report[said] if v["device"] == ("host" if kind == "pinned" else "cuda:0")]
    mt.equal((verdict["kind"], kinds(done)), ("grows", set()) if kind == "pinned" else ("leak", {"leak"}), "what is said")
    kept = done.account["kept_bytes"]
    mt.between(0.8 * kept, verdict["bytes"], (2 if kind == "pinned" else 1.1) * kept, "bytes of %s" % verdict["evidence"])


@mt.variants("loads", "leaks")
def case_a_load_is_no_leak(kind):
    """A model is loaded evenly in most of a short run; the twin makes and frees other blocks meanwhile, as who works does."""
    made = Trace(os.path.join(mt.scratch("made"), "t"))
    p = made.process(100, ["serve.py"])
    card = p.device(0, "GPU-1", 24 << 30)
    keeps, works = p.stack(("serve.py", "<module>", 3), ("serve.py", "load", 10)), p.stack(("serve.py", "<module>", 4), ("serve.py", "infer", 20))
    for i in range(260):
        p.at(0.6 + 0.007 * i)
        if i < 240:
            p.alloc(card, POOL, 53 << 20, keeps)
        if i >= 240 or kind == "leaks":
            block = p.alloc(card, POOL, (80 if kind == "leaks" else 5) << 20, works)
            p.at(0.603 + 0.007 * i)
            p.free(card, POOL, block)
    p.at(2.7)
    made.save()
    trace = mt.Trace(made.path)
    mt.equal([s["outlook"] for s in trace.json("leaks", "--device", "cuda:0")["sites"] if s.get("outlook")], ["leaks" if kind == "leaks" else "grows"])
    mt.equal("load only grew" in trace.tool("report").out, kind == "loads", trace.tool("report").out)


def case_pinned_memory_is_on_the_screen():
    """The cache's blocks are powers of two, and as many as the program's batches need at once."""
    done = run("pinned")
    pinned = done.trace.report["pinned"]
    mt.check(pinned["live_blocks"] < 20 and pinned["peak_bytes"] == pinned["live_bytes"] > 0, "pinned: %s" % pinned)
    screen = done.trace.tool("report").out
    mt.check("\n  pinned " in screen and "MOST PINNED" in screen, "screen: %s" % screen)


def case_memory_of_the_drivers_pool():
    """Its freed memory is no context's."""
    done = run("driver_pool")
    mt.check("context+pool" in done.trace.tool("report").out, "screen: %s" % done.trace.tool("report").out)
    mt.equal([d["pool"] for d in done.trace.report["devices"]], [None], "PyTorch's pools")


def case_copies_by_design():
    """Tied weights, a replica on another device, a moving average: without the average the request would fit, and yet it is capacity."""
    done = run("by_design")
    mt.check(kinds(done) == {"capacity"}, "verdicts: %s" % done.trace.report["verdicts"])
    each = done.account["copy_bytes"]
    average = done.trace.report["categories"]["cuda:0"]["optimizer"]
    mt.between(each, average, each * 1.05, "bytes of the average")
    copied, = [v for v in run("by_design", "--sick").trace.report["verdicts"] if v["kind"] == "copies"]
    mt.between(each, copied["bytes"], each * 1.05, "bytes of the deep copy")


def case_owners_of_the_device():
    """Where nothing is wrong the screen names the lines that hold most of the device."""
    done = run("serving")
    screen = done.trace.tool("report").out
    part = screen[screen.index("LARGEST OWNERS of cuda:0"):].split("\n\n")[0]
    mt.check("account.py" in part and "< serving" in part and "looks_gpu.py" in part, "owners: %s" % part)


mt.main(at_once=2)
