#!/usr/bin/env python3
"""The program's descriptors, children, threads, signals and environment are what they are without the shim."""
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt


@mt.variants("numbers", "closeall", "closefrom", "close_range", "steal", "keeper")
def case_descriptors(mode):
    want = mt.plain([mt.program("fds"), mode])
    mt.check("FAILED" not in want.out, "the program fails by itself: %s" % want)
    trace = mt.same([mt.program("fds"), mode])
    mt.check(trace.host["allocations"] >= 150000, "allocations: %s" % trace.host)
    mt.equal(trace.host["live_blocks"], 1 if mode == "keeper" else 0)  # libc keeps what belongs to a thread's stack


@mt.variants("normal", "subreaper")
def case_no_stranger(mode):
    """wait(-1) says ECHILD while the recorder works, no SIGCHLD comes, there is one thread."""
    trace = mt.same([mt.program("waits"), mode])
    mt.check(trace.host["allocations"] >= 100000, "allocations: %s" % trace.host)
    if mode == "normal":
        mt.check(not trace.files(".ring"), "no recorder finished the trace: %s" % trace.files())
    else:
        mt.check(trace.files(".ring"), "a recorder was started below a subreaper: %s" % trace.files())


def case_no_stranger_is_adopted():
    """Who becomes a subreaper later does not wait for a recorder that its child started."""
    trace = mt.same([mt.program("reaper")], timeout=30)
    mt.equal(len(trace.processes), 2, "processes")
    mt.check(trace.host["allocations"] >= 100000, "allocations: %s" % trace.host)


def case_environment():
    ours = {"LD_PRELOAD", "MEMTRACE_OUTPUT", "MEMTRACE_SESSION"}
    keep = lambda text: sorted(l for l in text.splitlines() if l.split("=")[0] not in ours)
    want, got = mt.plain(["env"]), mt.shimmed(["env"])
    mt.equal(keep(got.out), keep(want.out))
    inner = mt.shimmed(["sh", "-c", "env"])
    mt.equal({l.split("=")[0] for l in inner.out.splitlines() if l.startswith("MEMTRACE")},
             {"MEMTRACE_OUTPUT", "MEMTRACE_SESSION"})


mt.main()
