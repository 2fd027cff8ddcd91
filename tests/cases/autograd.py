#!/usr/bin/env python3
"""What threads of PyTorch's autograd allocate shows the thread and the line of Python that called backward()."""
# timeout: 200
import functools
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import gpu
import mt

PROGRAM = os.path.join(mt.TOP, "tests/programs/backward.py")


@functools.lru_cache(None)
def run(mode, **env):
    if not mt.has_module("torch"):
        mt.skip("no torch")
    done = mt.shimmed([mt.python(), PROGRAM, mode], env=env)
    mt.equal(done.status, 0, "status; %s" % done.err[-500:])
    return done.trace, json.loads(done.out)


def stacks(trace):
    """bytes of one block -> stacks, of those that pass through a thread without Python of its own."""
    found = {}
    for site in trace.json("peak", "--at", "end", "--by", "stack", "--all-frames", "--filter", "^thread ", "-n", "100000", "--device", "heap")["sites"]:
        found.setdefault(site["bytes"] // max(site["blocks"], 1), []).append(site["stack"])
    return found


def check_line(stack, line, thread):
    """Outwards: what ran in the thread, the thread, and then the caller's Python alone. Returns the frames of the thread."""
    languages = [f["language"] for f in stack]
    at = languages.index("thread")
    mt.equal(stack[at]["function"], "thread " + thread)
    outer = stack[at + 1:]
    mt.check(outer and all(f["language"] == "python" for f in outer), "outside of the thread: %s" % outer)
    mt.equal((os.path.basename(outer[-2]["file"]), outer[-2]["line"]), ("backward.py", line), "who called backward()")
    mt.equal(outer[-1]["function"], "<module>")
    return stack[:at]


def check_all(trace, facts, least):
    """The frames of the thread, of each block that was made in one."""
    found, inner = stacks(trace), []
    for size, line, thread in facts:
        inner += [check_line(stack, line, thread) for stack in found.get(size, [])]
    mt.check(len(inner) >= least, "%d blocks of %s were made in threads: %s" % (len(inner), facts, sorted(found)[-12:]))
    return inner


def python_of(inner):
    return [f["function"] for f in inner if f["language"] == "python"]


def case_device_thread():
    for env in ({}, {"MEMTRACE_STACKS": "sample"}):
        trace, facts = run("device", **env)
        mt.equal([f[2] for f in facts], ["pt_autograd_0"] * 2, "threads")
        for inner in check_all(trace, facts, 2):
            mt.equal(python_of(inner), ["Allocates.backward", "BackwardCFunction.apply"], "its own Python")


def case_thread_without_python():
    trace, facts = run("pool")
    mt.equal(len({line for _, line, _ in facts}), 2, "lines")
    mt.check(any(not python_of(inner) for inner in check_all(trace, facts, 2)), "nothing was made by C++ alone")


def case_site_is_the_line():
    """What a reader sees first."""
    trace, facts = run("pool")
    for site in trace.json("peak", "--at", "end", "--by", "site", "--filter", "^thread ", "--device", "heap")["sites"]:
        if site["bytes"] >= facts[0][0]:
            mt.check(any((f["file"] or "").endswith("backward.py") for f in site["stack"]), "%s" % site["stack"])
            return
    mt.fail("no site has the gradients")


def case_cuda():
    """PyTorch's CUDA build on the stand-in: gradients are blocks of its pool, made in the device's thread."""
    for env in ({}, {"MEMTRACE_STACKS": "sample"}):
        done = gpu.shimmed([gpu.python(), os.path.join(mt.TOP, "tests/programs/backward_cuda.py")], env=env)
        mt.equal(done.status, 0, "status; %s" % done.err[-500:])
        sites = done.trace.json("peak", "--at", "end", "--by", "stack", "--all-frames", "--device", "cuda:0")["sites"]
        for size, line in json.loads(done.out):
            found = [s["stack"] for s in sites if s["memory"] == "pool" and s["bytes"] == size and s["blocks"] == 1]
            mt.equal(len(found), 1, "stacks of the gradient of %d bytes" % size)
            at = [f["language"] for f in found[0]].index("thread")
            mt.equal(found[0][at]["function"], "thread pt_autograd_0")
            mt.equal((os.path.basename(found[0][-1]["file"]), found[0][-1]["line"]), ("backward_cuda.py", line), "who called backward()")


mt.main()
