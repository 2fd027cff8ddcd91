#!/usr/bin/env python3
"""At the disk limit the oldest events are folded: totals, peaks, survivors and the failure at the end are the program's own figures."""
# timeout: 240
import json
import os
import shutil
import sys
import threading
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

MIB = 1 << 20
DECODE = os.path.join(mt.TOP, "scripts/decode.py")


class Disk(threading.Thread):
    """The most that a trace took while it was made."""

    def __init__(self, folder):
        super().__init__()
        self.folder, self.most, self.stop = folder, 0, threading.Event()

    def run(self):
        while not self.stop.wait(0.02):
            self.most = max(self.most, self.now())

    def now(self):
        total = 0
        try:
            for entry in os.scandir(self.folder):
                try:
                    total += entry.stat().st_size
                except FileNotFoundError:
                    pass
        except FileNotFoundError:
            pass
        return total


class Run:
    """The program waits for its recorder, so that nothing is lost whatever else the machine does."""

    def __init__(self, ops, limit, forks=3, env=None):
        output = os.path.join(mt.scratch("trace"), "t")
        disk = Disk(output)
        disk.start()
        chunks = limit // MIB if limit else 40  # more than a quarter of the limit: then the recorder does not wait for more
        try:
            done = mt.shimmed([mt.program("endless"), str(ops), str(forks), str(chunks)], output=output, timeout=1500,
                              env=dict(MEMTRACE_LIMIT=str(limit), MEMTRACE_RECORD="all", **(env or {})))
        finally:
            disk.stop.set()
            disk.join()
        mt.equal((done.status, done.err), (0, ""), "how it ended")
        lines = [json.loads(line) for line in done.out.splitlines()]
        self.children, self.account = {c["child"]: c for c in lines[:-1]}, lines[-1]
        self.trace, self.most_disk, self.limit = done.trace, disk.most, limit
        self.trace.intact()
        self.main = self.trace.process("endless", pid=self.pid())

    def pid(self):
        return [p["pid"] for p in self.trace.processes if p["pid"] not in self.children][0]


def without_threads(run):
    """What the C library allocated for two threads is beyond the account: figures that are to be the same in every run."""
    heap, account = run.main["host"], run.account
    sites = account["sites"].values()
    return {
        "allocations": heap["allocations"] - sum(s["count"] for s in sites),
        "allocated_bytes": heap["allocated_bytes"] - sum(s["bytes"] for s in sites),
        "live_bytes": heap["live_bytes"] - account["live_bytes"],
        "peak_bytes": heap["peak_bytes"] - account["peak_bytes"],
        "frees": heap["frees"] - account["frees"],
        "temporary": heap["temporary"] - sum(s["temporary"] for s in sites),
    }


def same_sites(run):
    """What lives at the end and what lived at the peak, function by function."""
    for at, part in (("end", "sites"), ("peak", "peak")):
        sites = run.trace.json("peak", "--at", at, "--process", str(run.main["pid"]), "-n", "100000")["sites"]
        rows = [site for site in sites if site["memory"] == "heap"]
        for name, wanted in run.account[part].items():
            got = mt.blocks_of(rows, name + "_site")
            if name == "pool":
                got = tuple(a + b for a, b in zip(got, mt.blocks_of(rows, "grow_site")))
            mt.equal(got, (wanted["live_bytes"], wanted["live_blocks"]), "%s at the %s" % (name, at))


def same_children(run):
    mt.check(run.children, "no child was forked")
    for pid, child in run.children.items():
        heap = run.trace.process(pid=pid)["host"]
        mt.equal(heap["inherited_bytes"] - run.overhead_bytes, child["bytes"] - child["freed_bytes"], "inherited bytes")


def check(run):
    # What the C library has alive for its threads, all the time that children are forked.
    extra = without_threads(run)
    mt.between(0, extra["live_bytes"], 4096, "bytes alive beyond the account")
    mt.equal({k: extra[k] for k in ("allocations", "frees", "temporary")}, {"allocations": 2, "frees": 0, "temporary": 0},
             "beyond the account")
    mt.equal(extra["peak_bytes"], extra["allocated_bytes"], "peak beyond the account")
    run.overhead_bytes = extra["allocated_bytes"]
    same_sites(run)
    same_children(run)
    mt.equal(run.main["host"]["failed"], run.account["failed"], "failed calls")


def case_folded():
    run = Run(4000000, 16 * MIB)
    check(run)
    mt.check(run.main["folded"]["blocks"] > 1000000, "too little was folded: %s" % run.main["folded"])
    mt.between(0, run.most_disk, run.limit, "bytes on disk")


def lines(command):
    done = mt.execute(command)
    mt.equal((done.status, done.err), (0, ""), "end of %s" % command)
    return done.out.splitlines()


def case_decoded():
    """The independent decoder reads folded blocks as the reader does."""
    trace = mt.fold(Run(100000, 0).trace)
    got, want = lines([mt.MEMTRACE, "dump", trace.path]), lines([sys.executable, DECODE, trace.path])
    mt.check(any(line.startswith("fold ") for line in got), "nothing was folded")
    different = [(a, b) for a, b in zip(got, want) if a != b]
    mt.check(len(got) == len(want) and not different, "%d, %d lines; different: %s" % (len(got), len(want), different[:3]))


def case_moments():
    """A moment among folded events has no more than there was, and lacks no more than it says."""
    run = Run(400000, 0)
    whole, end = mt.Trace(shutil.copytree(run.trace.path, os.path.join(mt.scratch("trace"), "whole"))), run.main["end_s"]
    trace = mt.fold(run.trace)
    # A recorder notes the clock when it ends, and the length of a tick follows from the last such note: both have the same one.
    shutil.copy(os.path.join(trace.path, "session"), whole.path)
    moments = ["%.6f" % (end * i / 20) for i in range(1, 20)]
    before = [whole.json("peak", "--at", at)["host"]["bytes"] for at in moments]
    uncertain = 0
    for at, exact in zip(moments, before):
        after = trace.json("peak", "--at", at)
        mt.between(exact - after["uncertain_bytes"], after["host"]["bytes"], exact, "bytes at " + at)
        uncertain += after["uncertain_bytes"] > 0
    mt.between(10, uncertain, 19, "moments with an uncertainty")
    mt.between(1, trace.report["folded"]["until_s"], end, "folded until")


def case_told():
    run = Run(400000, 0)
    trace = mt.fold(run.trace)
    report, text = trace.json("report"), trace.tool("report").out
    mt.check(report["complete"], "folding makes a trace incomplete")
    mt.check(" folded (disk limit): " in text, "the report does not say it: %s" % text)
    mt.check("were folded at the disk limit" in trace.tool("check").out, "check does not say it")


def case_nothing_to_fold():
    """What lives stays in the trace. When that fills the limit, what comes is lost, counted, and said everywhere."""
    command = [mt.program("keeps"), "2000000"]
    whole, limited = (mt.shimmed(command, env={"MEMTRACE_LIMIT": str(limit)}).trace for limit in (0, 2 * MIB))
    every, heap, lost = whole.host, limited.host, limited.report["losses"]["events"]
    mt.check(not limited.report["complete"] and lost > 0, "nothing is lost")
    mt.equal(heap["allocations"] + lost, every["allocations"], "allocations, seen and lost,")
    mt.equal(heap["live_blocks"], heap["allocations"], "blocks alive")
    mt.between(0, sum(os.path.getsize(os.path.join(limited.path, f)) for f in os.listdir(limited.path)), 2 * MIB, "bytes on disk")
    screen = limited.tool("report").out.splitlines()
    mt.check(screen[2].startswith("INCOMPLETE") and " s on" in screen[3], "the report says: %s" % screen[:4])
    for what in ("leaks", "peak"):
        mt.check(limited.tool(what).out.startswith("INCOMPLETE"), "%s does not say it" % what)
    mt.equal(limited.tool("check").status, 1, "status of check")


if __name__ == "__main__":
    mt.main()
