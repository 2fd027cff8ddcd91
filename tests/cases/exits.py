#!/usr/bin/env python3
"""However a program ends, everything it did before is in the trace, and the report knows how it ended."""
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

# mode, how it ends, exit handlers run, quick_exit handlers run
MODES = [("return", ("exit", 7), 1, 0), ("exit", ("exit", 8), 1, 0), ("_exit", ("exit", 9), 0, 0), ("_Exit", ("exit", 10), 0, 0),
         ("exit_group", ("exit", 11), 0, 0), ("quick_exit", ("exit", 12), 0, 1), ("abort", ("signal", signal.SIGABRT), 0, 0),
         ("segv", ("signal", signal.SIGSEGV), 0, 0), ("term", ("signal", signal.SIGTERM), 0, 0),
         ("kill", ("signal", signal.SIGKILL), 0, 0), ("execfail", ("exit", 3), 1, 0), ("thread", ("exit", 5), 1, 0),
         ("pthread_exit", ("exit", 0), 1, 0)]
# What no exit hook can see is known from a traced parent or `memtrace run`.
UNSEEN = ("exit_group", "abort", "segv", "term", "kill", "pthread_exit")


def everything_is_there(trace, mode, atexit, quick):
    sites = trace.sites()
    times = 2 if mode == "pthread_exit" else 1
    mt.equal(mt.blocks_of(sites, "before"), (50000 * times, 1000 * times), "blocks of before")
    mt.equal(mt.blocks_of(sites, "in_atexit"), (600 * atexit, 10 * atexit), "blocks of the exit handler")
    mt.equal(mt.blocks_of(sites, "in_destructor"), (800 * atexit, 10 * atexit), "blocks of the destructor")
    mt.equal(mt.blocks_of(sites, "in_quick_exit"), (700 * quick, 10 * quick), "blocks of the quick_exit handler")


@mt.variants(*MODES)
def case_alone(mode, how, atexit, quick):
    trace = mt.same([mt.program("exits"), mode])
    everything_is_there(trace, mode, atexit, quick)
    found = trace.processes[0]["exit"]
    if not (mode in UNSEEN and found["kind"] == "unknown"):
        mt.equal((found["kind"], found["code"]), how)
    else: # how it ended is not guessed
        row = [line for line in trace.tool("report").out.splitlines() if " exits " in line and not line.startswith("memtrace")]
        mt.check("  unknown  " in row[0] and "killed" not in row[0], "it is said to have ended so: %s" % row)


@mt.variants(*MODES)
def case_supervised(mode, how, atexit, quick):
    want, got = mt.plain([mt.program("exits"), mode]), mt.supervised([mt.program("exits"), mode])
    mt.equal(got.status, want.status if want.status >= 0 else 128 - want.status, "exit status of memtrace run")
    mt.equal(got.out, want.out, "output")
    mt.check(got.err.startswith(want.err) and "memtrace" in got.err, "no report on stderr: %r" % got.err)
    got.trace.intact()
    everything_is_there(got.trace, mode, atexit, quick)
    found = got.trace.processes[0]["exit"]
    mt.equal((found["kind"], found["code"]), how)


KILLED = """
import os, signal, time
time.sleep(1.2)
kept = [bytearray(100) for i in range(3000)] # a session that is a second old gets a recorder
time.sleep(0.3)
kept += [bytearray(100)]
os.kill(os.getpid(), signal.SIGKILL)
"""


@mt.variants("ended", "killed")
def case_reads_the_same_at_any_time(how):
    """To the nanosecond, though a tick's length is better known the longer ago the run was."""
    trace = (mt.same(["sleep", "2"]) if how == "ended" else mt.shimmed([sys.executable, "-c", KILLED]).trace).settle()
    first = trace.tool("report", "--json").out
    for _ in range(8):
        time.sleep(0.3)
        mt.equal(trace.tool("report", "--json").out, first, "the report, read again")


DIES = """
import os, sys, time
time.sleep(1.2)
kept = [bytearray(100) for i in range(3000)] # a session that is a second old gets a recorder
time.sleep(0.8)
os.kill(os.getpid(), int(sys.argv[1]))
"""


def kernel():
    return tuple(int(n) for n in re.findall(r"\d+", os.uname().release)[:2])


@mt.variants("waited", "zombie")
def case_killed(how):
    """The recorder asks the kernel what the process could not say: a zombie's status, or, where somebody has waited for it, what a pidfd tells."""
    trace = mt.Trace(os.path.join(mt.scratch("trace"), "t"))
    child = subprocess.Popen([mt.python(), "-c", DIES, str(int(signal.SIGSEGV))], env=mt.shim_env(trace.path), cwd=mt.scratch(),
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
    if how == "zombie":
        mt.until(trace.recorder, "a recorder")
        trace.settle()
    mt.equal(child.wait(mt.WAIT), -signal.SIGSEGV)
    trace.settle()
    found = trace.processes[0]["exit"]
    known = how == "zombie" or kernel() >= (6, 15)
    mt.equal((found["kind"], found["code"]), ("signal", signal.SIGSEGV) if known else ("unknown", None))
    mt.check((" SIGSEGV " if known else " unknown ") in trace.tool("report").out, "the report does not say it")


IDLE = """
import subprocess, sys, time
code = "import time; kept = [bytearray(600) for i in range(300_000)]; print(1, flush=True); time.sleep(60)"
child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
child.stdout.readline()
time.sleep(2)
child.kill()
time.sleep(0.5) # so that its recorder knows first
child.wait()
"""


def case_who_was_killed_lived_until_then():
    """It did nothing for two seconds before: what it held it still held."""
    trace = mt.shimmed([mt.python(), "-c", IDLE]).trace
    child = max(trace.settle().report["processes"], key=lambda p: p["start_s"])
    mt.equal((child["exit"]["kind"], child["exit"]["code"]), ("signal", signal.SIGKILL))
    mt.check(child["end_s"] - child["start_s"] >= 2, "it is said to have lived for %.3f s" % (child["end_s"] - child["start_s"]))


def case_unknown_is_unknown_everywhere():
    """Of two processes, neither of which could say how it ended, screens and JSON say the same, and nobody is said to have been killed."""
    both = [mt.shimmed([mt.program("exits"), "kill"]).trace.settle().path for _ in range(2)]
    ask = lambda *words: mt.execute([mt.MEMTRACE, *words, *both]).out
    found = json.loads(ask("report", "--json"))["processes"]
    mt.equal([(p["state"], p["exit"]["kind"], p["exit"]["code"]) for p in found], [("gone", "unknown", None)] * 2)
    for path in both:
        mt.check("exit unknown" in mt.execute([mt.MEMTRACE, "dump", path]).out.splitlines()[0], "the dump of %s" % path)
    screens = ask("report", "--all") + ask("leaks")
    mt.equal(len(re.findall(r" exits \S+ .* unknown ", screens)), 2, "rows that say unknown: %s" % screens)
    mt.check("were killed or ended unknown: in use, not leaked" in screens and "where processes were killed" not in screens, screens)


def case_exec():
    trace = mt.same([mt.program("exits"), "exec"])
    first, second = trace.processes
    mt.equal((first["pid"], first["exit"]["kind"]), (second["pid"], "exec"))
    mt.equal((second["exit"]["kind"], second["exit"]["code"]), ("exit", 7))
    mt.equal(first["host"]["live_blocks"], 0, "blocks of the image that is gone")
    mt.equal(first["host"]["allocations"], 1000)
    mt.equal(second["host"]["live_blocks"], 1020)


def case_library_that_ends_after_the_shim():
    trace = mt.same([mt.program("early")], preload=[mt.program("libearly.so")])
    host = trace.host
    mt.check(host["frees"] >= 64 + 64, "frees of the last destructor are missing: %s" % host)
    mt.equal(host["live_blocks"], 0)


mt.main()
