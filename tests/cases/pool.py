#!/usr/bin/env python3
"""Blocks of PyTorch's caching allocator: each report is in the trace and reaches libc10 as without us. What the real CUDA build
reports is compared in another case; here it is fakes, and the profiler of PyTorch for the CPU."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt  # noqa: E402
from fakecuda import *  # noqa: E402,F403

REPORT, OOM = "c10_reportMemoryUsageToProfiler", "c10_reportOutOfMemoryToProfiler"


def blocks():
    folder = libraries()
    for name, flag in (("libc10.so", "-O1"), ("libc10_cuda.so", "-DCUDA")):
        cc("-shared", "-fPIC", flag, "-o", os.path.join(folder, name), os.path.join(SOURCES, "c10.c"), "-Wl,-soname," + name)
    return program("blocks", "-Wl,--no-as-needed", *(os.path.join(folder, n) for n in ("libc10.so", "libc10_cuda.so", "libcuda.so.1")),
                   source="blocks.c")


def case_blocks():
    trace = mt.same([blocks()], env={"LD_LIBRARY_PATH": libraries()}, intact=False)
    events = raw_events(trace)
    got = [(e["record"], e["hook"], e["addr"], e["size"], e["class"], e["ordinal"], e["stream"], e["other"], e["status"]) for e in events]
    compare([
        ("device-alloc", REPORT, 0x1000, 512, 10, 0, 0, 0, 0),
        ("device-alloc", REPORT, 0x2000, 1024, 10, 1, 0x700, 0, 0),
        ("device-alloc", REPORT, 0x4000, 98, 1, 0, 0, 0, 0),  # of a device that nothing else is known of
        ("device-free", REPORT, 0x1000, 0, 10, 0, 0, 0, 0),
        ("device-info", OOM, 12345678, 1 << 30, 10, 0, 0, 0, 0),
        ("device-fail", OOM, 1 << 20, 0, 10, 0, 1000, 2000, 2),
        ("device-info", OOM, 12345678, 2 << 30, 10, 1, 0, 0, 0),
        ("device-fail", OOM, 1 << 21, 0, 10, 1, 1001, 2001, 2),
        ("device-fail", OOM, 1 << 22, 0, 10, 0, 1002, 2002, 2),
        ("device-free", REPORT, 0x2000, 0, 10, 1, 0, 0, 0),
        ("device-alloc", REPORT, 0x5000, 2048, 10, 0, 0xca00, 0, 0),
        ("device-fail", OOM, 1 << 24, 0, 10, 0, 1004, 2004, 2),
        ("device-alloc", REPORT, 0x6000, 4096, 10, 0, 0xcb00, 0, 0),
    ], got)
    mt.equal([(e["addr"], e["capture"]) for e in events if "capture" in e], [(0x5000, 42), (1 << 24, 42)], "asked in a capture")


def case_failures_are_counted():
    """For the recorder, which looks at the devices when the session's number grows."""
    import struct
    trace = mt.same([blocks()], env={"LD_LIBRARY_PATH": libraries()}, intact=False)
    with open(os.path.join(trace.path, "session"), "rb") as file:
        head = file.read(4096)
    mt.equal(struct.unpack_from("<I", head, mt.session_offset("failures"))[0], 4, "failures")


def case_stacks_in_every_mode():
    """Device and pool memory always have stacks."""
    for mode in ("all", "sample", "none"):
        trace = mt.same([blocks()], env={"LD_LIBRARY_PATH": libraries(), "MEMTRACE_STACKS": mode}, intact=False)
        nodes = [e["node"] for e in raw_events(trace) if e["record"] in ("device-alloc", "device-fail")]
        mt.check(all(nodes) and len(nodes) == 9, "with --stacks=%s: %s" % (mode, nodes))


def case_profiler():
    """torch.profiler on the CPU, whose allocator reports through the same function."""
    if not mt.has_module("torch"):
        mt.skip("no torch")
    script = """
import torch
from torch.profiler import profile, ProfilerActivity
with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as p:
    x = [torch.ones(1000, 100) for _ in range(5)]
    y = torch.cat(x)
    del x
print(sorted((e.key, e.count, e.self_cpu_memory_usage) for e in p.key_averages() if e.self_cpu_memory_usage))
"""
    command = [mt.python(), "-c", script]
    want, got = mt.plain(command), mt.shimmed(command)
    mt.check("aten::" in want.out, "%s" % want)
    mt.equal(got.out, want.out)
    mt.equal(raw_events(got.trace), [])


mt.main()
