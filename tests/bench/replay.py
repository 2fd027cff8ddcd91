#!/usr/bin/env python3
"""What memtrace whatif takes for a request under one setting: CPU time and memory.

usage: replay.py [REQUESTS...]
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import gpu  # noqa: E402
import mt  # noqa: E402
from fakecuda import SOURCES, cc  # noqa: E402

SOURCE = os.path.join(mt.TOP, "tests/bench/requests.c")
ONE, MANY = ("--alloc-conf", "expandable_segments:True"), ()


def build():
    folder = mt.scratch("requests")
    cc("-shared", "-fPIC", "-DLIBRARY", "-o", folder + "/libc10.so", SOURCE, "-Wl,-soname,libc10.so")
    cc("-shared", "-fPIC", "-DCUDA", "-o", folder + "/libc10_cuda.so", os.path.join(SOURCES, "c10.c"), "-Wl,-soname,libc10_cuda.so")
    cc("-O2", "-o", folder + "/requests", SOURCE, os.path.join(mt.BUILD, "libanalyzer.a"), folder + "/libc10.so", gpu.STANDIN + "/libcudart.so.13",
       "-Wl,--no-as-needed", folder + "/libc10_cuda.so", "-Wl,-rpath," + folder, "-Wl,-rpath-link," + gpu.STANDIN)
    return folder + "/requests"


def trace_of(program, count):
    done = gpu.run([program, str(count)], env={"MEMTRACE_LIMIT": "0"}, devices="80G", timeout=3600)
    mt.equal(done.status, 0, "status of %s" % done)
    done.trace.settle(3600)
    return done.trace, int(done.out)


def read(trace, *words):
    """(seconds of CPU, MiB at most, what it says) of a command on the trace."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if not pid:
        os.dup2(write_end, 1)
        os.execv(mt.MEMTRACE, [mt.MEMTRACE, *words, trace.path])
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        text = pipe.read()
    _, status, usage = os.wait4(pid, 0)
    mt.equal(status, 0, "status of %s" % (words,))
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, text


def measure(count):
    """Seconds of CPU for one setting, those that each more takes, and MiB at most."""
    trace, reserved = trace_of(build(), count)
    took, memory, text = read(trace, "whatif", "-q", "--json", *ONE)
    pool, = json.loads(text)["pools"]
    mt.equal((pool["requests"], pool["differs"], pool["run"]["most_reserved_bytes"]), (count, None, reserved), "the run")
    more, _, text = read(trace, "whatif", "-q", "--json", *MANY)
    return took, (more - took) / (len(json.loads(text)["pools"][0]["settings"]) - 1), memory


def main():
    print("%12s %12s %24s %10s" % ("requests", "one setting", "each more, a request", "memory"))
    for count in [int(float(word)) for word in sys.argv[1:] or ("1e6",)]:
        took, each, memory = measure(count)
        print("%12d %10.2f s %10.2f s, %6.2f us %6.0f MiB" % (count, took, each, each / count * 1e6, memory), flush=True)


if __name__ == "__main__":
    main()
