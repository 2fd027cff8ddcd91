#!/usr/bin/env python3
"""What memtrace whatif takes for a request under one setting, and whatif --host for a call: CPU time and memory.

usage: replay.py [--one] [REQUESTS...] | --host [CALLS...]    --one: of one setting alone
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import gpu  # noqa: E402
import mt  # noqa: E402
from fakecuda import SOURCES, cc  # noqa: E402

SOURCE = os.path.join(mt.TOP, "tests/bench/requests.c")


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


def one_and_more(trace, part, one, many):
    """Seconds of CPU for one setting, those that each more takes, MiB at most, and what is said of one."""
    took, memory, text = read(trace, "whatif", "-q", "--json", *one)
    more, _, all_of_them = read(trace, "whatif", "-q", "--json", *many) if many is not None else (took, 0, None)
    count = len(part(json.loads(all_of_them))["settings"]) - 1 if all_of_them else 1
    return took, (more - took) / count, memory, part(json.loads(text))


def measure(count, many=()):
    """Of COUNT requests to a pool."""
    trace, reserved = trace_of(build(), count)
    took, each, memory, pool = one_and_more(trace, lambda said: said["pools"][0], ("--alloc-conf", "expandable_segments:True"), many)
    mt.equal((pool["requests"], pool["differs"], pool["run"]["most_reserved_bytes"]), (count, None, reserved), "the run")
    return took, each, memory


def measure_heap(count):
    """Of about COUNT calls of a heap; CPU is that of memtrace and of the children that make them, memory that of the larger."""
    output = os.path.join(mt.scratch("churn"), "t")
    done = mt.execute([os.path.join(mt.BUILD, "tests/bench/churn"), "1", str(count // 2), "12"], env=mt.shim_env(output, MEMTRACE_LIMIT="0"), timeout=3600)
    mt.equal(done.status, 0, "status of %s" % done)
    took, each, memory, heap = one_and_more(mt.Trace(output).settle(3600), lambda said: said["heap"], ("--host", "glibc"), ("--host", "all"))
    mt.between(0.99 * count, heap["calls"], 1.01 * count + 10000, "calls")
    return took, each, memory


def main():
    options = [word for word in sys.argv[1:] if word.startswith("--")]
    print("%12s %12s %24s %10s" % ("calls" if "--host" in options else "requests", "one setting", "each more", "memory"))
    for word in sys.argv[1 + len(options):] or ["1e6"]:
        count = int(float(word))
        took, each, memory = measure_heap(count) if "--host" in options else measure(count, None if "--one" in options else ())
        print("%12d %10.2f s %10.2f s, %6.2f us %6.0f MiB" % (count, took, each, each / count * 1e6, memory), flush=True)


if __name__ == "__main__":
    main()
