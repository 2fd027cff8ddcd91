#!/usr/bin/env python3
"""What report says of a phase's freed memory and of a device that was nearly full, on written traces with accounts of their own."""
import functools
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../battery"))
import json
import mt
import gpu
import trace as writer

MIB, GIB = 1 << 20, 1 << 30


class Written:
    """Phases that free all of 4 GiB: "keeps" leaves them to the pool, "returns" empties it, "both" gives the driver the half. At last a
    request of `last` bytes is made, which may fail."""

    def __init__(self, total, last, others=0):
        t = writer.Trace(os.path.join(mt.scratch("given"), "trace"))
        p = t.process(4711, ["/app/train.py"])
        pool = gpu.Pool(p, gpu.Device("GPU-1", total), context=0)
        self.stack = p.stack(("/app/train.py", "<module>", 30))
        self.kept = pool.alloc(100 * MIB, self.stack)
        self.truth = {}
        for name in ("keeps", "returns", "both"):
            p.at(p.now + 0.3)
            p.begin(name)
            blocks = [pool.alloc(1 * GIB, self.stack) for _ in range(4)]
            p.at(p.now + 0.3)
            allocated, reserved = pool.allocated, pool.reserved
            for block in blocks[:2]:
                pool.free(block)
            if name == "both":
                pool.release()
            for block in blocks[2:]:
                pool.free(block)
            if name == "returns":
                pool.release()
            p.end_phase(name)
            self.truth[name] = {"bytes": allocated - pool.allocated, "to_driver_bytes": reserved - pool.reserved,
                                "in_pool_bytes": pool.reserved - pool.allocated - (reserved - allocated)}
        p.at(p.now + 0.3)
        p.begin("last")
        try:
            pool.alloc(last, self.stack)
        except gpu.OutOfMemory:
            p.exit = (writer.EXIT_CODE, 1)
        p.at(p.now + 0.1)
        p.end_phase("last")
        self.used, self.total = pool.reserved + others, total
        if others:
            seen = t.samples.subject("DEVICE", (1, 0, 0), "GPU-1", "Stand-in")
            t.samples.say(p.now - 0.02, seen, total=total, used=self.used, free=total - self.used)
        t.save()
        self.path = t.path

    def report(self, *words):
        done = mt.execute([mt.MEMTRACE, "report", *(words or ["--all"]), self.path])
        mt.equal(done.status, 0, done.err)
        return done.out


@functools.lru_cache(None)
def written(*arguments):
    return Written(*arguments)


def fails():
    return written(24 * GIB, 30 * GIB)


@mt.variants("keeps", "returns", "both")
def case_freed_since_the_peak(name):
    phases = {p["name"]: p["freed_since_peak"] for p in json.loads(fails().report("--json"))["phases"]}
    mt.equal(phases[name].get("cuda:0 pool"), fails().truth[name], "%s of %s" % (name, phases))


def case_the_truth_tells_them_apart():
    kept = {name: fact["in_pool_bytes"] for name, fact in fails().truth.items()}
    mt.check(kept["keeps"] >= 4 * GIB and kept["returns"] <= 0 and GIB <= kept["both"] <= 3 * GIB, "kept: %s" % kept)


def case_the_screen_says_what_the_pool_kept():
    rows = {line.split()[0]: line for line in fails().report().split("\n") if line.startswith("  ") and line.split()}
    mt.check("freed 4.00 GiB, pool kept 4.00 GiB" in rows["keeps"], "row: %r" % rows["keeps"])
    mt.check("pool kept" not in rows["returns"], "row: %r" % rows["returns"])
    mt.check("freed 4.00 GiB, pool kept 2.00 GiB" in rows["both"], "row: %r" % rows["both"])


def nearly_full(run):
    return [line for line in run.report().split("\n") if line.startswith("NEARLY FULL")]


def case_nearly_full():
    run = written(24 * GIB, 22 * GIB)
    mt.check(run.used > 0.9 * run.total, "%d of %d bytes" % (run.used, run.total))
    lines = nearly_full(run)
    mt.equal(len(lines), 1, "lines")
    mt.check("GPU 0 was %.1f %% full at its peak" % (100 * run.used / run.total) in lines[0], "line: %r" % lines[0])
    summary = mt.Trace(run.path).summary()
    mt.check("NEARLY FULL  GPU 0 was" in summary and "healthy" not in summary, "summary: %s" % summary)


def case_with_what_others_have():
    """The traced process alone would leave half of it free."""
    run = written(24 * GIB, 10 * GIB, 11 * GIB)
    mt.check(run.used - 11 * GIB < 0.6 * run.total and run.used > 0.9 * run.total, "%d of %d bytes" % (run.used, run.total))
    lines = nearly_full(run)
    mt.check(lines and "%.1f %% full" % (100 * run.used / run.total) in lines[0], "lines: %r" % lines)


def case_not_nearly_full():
    mt.equal(nearly_full(written(24 * GIB, 19 * GIB)), [], "with %d of %d bytes" % (written(24 * GIB, 19 * GIB).used, 24 * GIB))


def case_filling_up():
    run = written(24 * GIB, 19 * GIB)
    part = 100 * run.used / run.total
    mt.check(85 < part < 90, "%.1f %%" % part)
    line = [line for line in run.report().split("\n") if line.startswith("FILLING UP")]
    mt.check(line and "GPU 0 was %.1f %% full at its peak" % part in line[0], "lines: %r" % line)
    full = [f for f in json.loads(run.report("--json"))["nearly_full"] if f["name"] == "cuda:0"]
    mt.equal([(f["level"], f["used_bytes"], f["total_bytes"]) for f in full], [("warning", run.used, run.total)])


def case_a_failure_says_it_itself():
    mt.equal(nearly_full(fails()), [])


mt.main()
