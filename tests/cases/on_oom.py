#!/usr/bin/env python3
"""MEMTRACE_ON_OOM: the recorder runs a command when a process of the trace ran out of memory, and the program notices nothing of it."""
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import gpu
import mt

SAY = 'echo "$MEMTRACE_OOM_WHAT $MEMTRACE_OOM_PID $MEMTRACE_OOM_RANK $MEMTRACE_OOM_DIR $LD_PRELOAD$MEMTRACE_SESSION" >> %s; echo out; echo err >&2'
HOST = """
import sys, time
for turn in range(int(sys.argv[1])):
    try:
        bytearray(1 << 55)
    except MemoryError:
        pass
    time.sleep(0.05)
print("goes on")
"""
DEVICE = """
import ctypes
cuda, p = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
context = ctypes.c_void_p()
assert not cuda.cuInit(0) and not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) and not cuda.cuCtxSetCurrent(context)
assert cuda.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(1 << 40)) == 2
print("goes on")
"""


class Told:
    def __init__(self, command=None):
        self.path = os.path.join(mt.scratch("told"), "told")
        self.env = {"MEMTRACE_ON_OOM": (command or SAY) % self.path}

    def lines(self):
        if not os.path.exists(self.path):
            return []
        with open(self.path, encoding="utf-8") as file:
            return [line.split() for line in file.read().splitlines()]

    def wait(self):
        return mt.until(self.lines, "the command")


def goes_on(done):
    mt.equal((done.status, done.out, done.err), (0, "goes on\n", ""), "of the program")


def case_host():
    """Many refusals within seconds: one command."""
    told = Told()
    done = mt.shimmed([mt.python(), "-c", HOST, "40"], env={**told.env, "RANK": "3"})
    goes_on(done)
    told.wait()
    done.trace.settle()
    pid = [p["pid"] for p in done.trace.processes if p["host"]["failed"]]
    mt.equal(told.lines(), [["host", str(pid[0]), "3", done.trace.path]])


def case_device():
    told = Told()
    done = mt.shimmed([mt.python(), "-c", DEVICE], env={**told.env, **gpu.environment(devices="1G")})
    goes_on(done)
    told.wait()
    done.trace.settle()
    mt.equal([line[0] for line in told.lines()], ["device"])


def case_under_run():
    told = Told()
    done = mt.supervised([mt.python(), "-c", HOST, "1"], "--no-report", env=told.env)
    mt.equal((done.status, done.out), (0, "goes on\n"))
    mt.equal([line[0] for line in told.wait()], ["host"])


def vmstat(root, kills):
    os.makedirs(os.path.join(root, "proc"), exist_ok=True)
    path = os.path.join(root, "proc/vmstat")
    with open(path + ".new", "w") as file:
        file.write("nr_free_pages 1\noom_kill %d\nnr_dirty 0\n" % kills)
    os.rename(path + ".new", path)


@mt.variants((True,), (False,))
def case_killed(by_kernel):
    """By SIGKILL: the kernel's, if its count of kills rose at that time; else somebody else's."""
    told, root, output = Told(), mt.scratch("root"), os.path.join(mt.scratch("trace"), "t")
    vmstat(root, 7)
    child = subprocess.Popen(["sleep", "60"], env=mt.shim_env(output, MEMTRACE_PROC_ROOT=root, **told.env))
    trace = mt.Trace(output)
    # it has no event that would start one
    recorder = subprocess.Popen([mt.MEMTRACE, "record", mt.until(lambda: trace.exists() and any(f.endswith(".info") for f in trace.files()) and output, "the trace")],
                                env=mt.clean_env(MEMTRACE_PROC_ROOT=root, **told.env))
    mt.until(trace.recorder, "the recorder")
    time.sleep(1.5)
    if by_kernel:
        vmstat(root, 8)
    child.kill()
    child.wait()
    trace.settle()
    mt.equal(recorder.wait(60), 0)
    if by_kernel:
        told.wait()
    mt.equal([line[:2] for line in told.lines()], [["killed", str(child.pid)]] if by_kernel else [])


def case_a_command_that_fails_or_hangs():
    """The recorder goes on and ends."""
    for command in ("exit 3; %s", "/nonexistent %s", "touch %s; sleep 30", "kill -9 $PPID; %s"):
        told = Told(command)
        done = mt.shimmed([mt.python(), "-c", HOST, "1"], env=told.env)
        goes_on(done)
        if "kill" not in command:
            done.trace.settle().intact()


def case_nothing_happened():
    told = Told()
    done = mt.shimmed([mt.python(), "-c", "x = [bytearray(100000000)]; import time; time.sleep(0.5)"], env=told.env)
    done.trace.settle()
    mt.equal((done.status, told.lines()), (0, []))


mt.main()
