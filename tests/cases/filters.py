#!/usr/bin/env python3
"""Seccomp filters that kill for any system call that the program does not make itself (tests/programs/sealed.c)."""
import functools
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

SEALED = mt.program("sealed")
SCRIPT = r"""
import sys, threading
def seal(path):
    import ctypes, struct
    word = lambda code, jt, jf, k: struct.pack("HBBI", code, jt, jf, k)
    numbers = [int(n) for n in open(path)]
    filter = word(0x20, 0, 0, 0) + b"".join(word(0x15, 0, 1, n) + word(0x06, 0, 0, 0x7fff0000) for n in numbers) + word(0x06, 0, 0, 0x80000000)
    buffer = ctypes.create_string_buffer(filter)
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(filter) // 8, ctypes.addressof(buffer)))
    libc = ctypes.CDLL(None)
    if sys.argv[1] == "seal" and (libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program)):
        sys.exit(9)
def hoard(n):
    return [bytearray(5000) for i in range(n)]
def loop(n):
    return [len(hoard(10)) for i in range(n)]
if len(sys.argv) > 2:
    seal(sys.argv[2])
threads = [threading.Thread(target=loop, args=(100,)) for i in range(3)]
[t.start() for t in threads]
[t.join() for t in threads]
loop(100)
kept = hoard(2000)
print(len(kept))
sys.exit(4)
"""


@functools.lru_cache(None)
def learned(command):
    """A list of the system calls that a plain run makes. Of threads they differ a little from run to run."""
    path = os.path.join(mt.scratch("calls"), "list")
    open(path, "w").close()
    for _ in range(2):
        if mt.plain([SEALED, "learn", path] + command(path)).status in (77, 99):
            mt.skip("no ptrace here")
    if mt.plain([SEALED, "try", path]).status != 6:
        mt.skip("no seccomp here")
    return path


def work(path):
    return [SEALED, "work", path, "8"]


def opened(path):
    return python("open", path)


def python(*arguments):
    return [mt.python(), "-c", SCRIPT, *arguments]


def case_before_exec():
    """All is recorded, with the calls that libc makes itself, also in a forked child."""
    path = learned(work)
    free = mt.same(work(path))
    trace = mt.same([SEALED, "before", path] + work(path))
    images = [p for p in trace.processes if p["exit"]["kind"] != "exec"]
    mt.equal(sorted(p["exit"].get("code") for p in images), [5, 8], "how they ended")
    mt.between(free.host["allocations"], trace.host["allocations"], free.host["allocations"] + 10, "allocations")
    mt.equal(trace.report["losses"]["truncated_stacks"], 0, "stacks that were cut")


def case_after_start():
    """What was made before is all there is; the child has nothing, and is said to."""
    path = learned(work)
    trace = mt.same([SEALED, "after", path, "8"], intact=False).settle()
    lost = trace.report["losses"]
    mt.between(9 * 5064, trace.host["allocations"] + lost["events"], 9 * 5064 + 20, "allocations and losses")
    mt.check(trace.host["allocations"] >= 5 * 5064, "%s" % trace.host)
    mt.equal((lost["unrecorded_processes"], lost["unrecorded_why"]), (1, ["seccomp"]))
    mt.equal(lost["events_why"], ["seccomp"] if lost["events"] else [])
    mt.check("1 process was seen but could not be recorded (a system call filter)" in trace.tool("report").out, "the report doesn't say why")


@mt.variants("before", "after")
def case_python(when):
    path = learned(opened)
    free = mt.same(opened(path)).host["allocations"]
    trace = mt.same([SEALED, "before", path] + opened(path) if when == "before" else python("seal", path))
    mt.between(0.97 * free, trace.host["allocations"], 1.03 * free, "allocations")
    mt.check("hoard" in trace.summary(), "Python's frames are not seen: %s" % trace.summary())


def case_no_trace_directory():
    """Nothing can be made behind the filter, and nobody has made it before."""
    path, output = learned(work), os.path.join(mt.scratch("none"), "t")
    env = {"SEALED_PRELOAD": mt.SHIM, "MEMTRACE_OUTPUT": output}
    mt.compare(mt.plain(work(path)), mt.plain([SEALED, "before", path] + work(path), env=env))
    mt.check(not os.path.exists(output), "a trace was made")
    got = mt.plain([SEALED, "before", path] + work(path), env=dict(env, MEMTRACE_VERBOSE="1"))
    mt.equal((got.status, got.err), (5, "memtrace: not recorded: a system call filter leaves no way to make a trace directory\n"))


def case_parent_in_the_filter():
    """Whose filter is its parent's as well tries our calls in a child. That one is killed, and nobody else."""
    learned(work)
    output, command = os.path.join(mt.scratch("trace"), "t"), python()
    want = mt.plain(command)
    got = mt.plain([SEALED, "without", "-", mt.MEMTRACE, "run", "-o", output, "--", *command])
    mt.equal((got.status, got.out), (want.status, want.out), got.err)
    trace = mt.Trace(output).intact()
    mt.between(6000, trace.host["allocations"], 20000, "allocations")
    mt.check("hoard" in trace.summary(), "Python's frames are not seen: %s" % trace.summary())


mt.main()
