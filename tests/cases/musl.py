#!/usr/bin/env python3
"""The same library under musl, Alpine's C library: it asks for nothing that musl lacks, and records programs that were made for it.
tests/long/musl.py runs the files of cases with such programs."""
import functools
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt
import musl


@functools.lru_cache(None)
def program(name):
    musl.loader()
    return musl.build(name, mt.scratch("musl")) or mt.fail("%s is not built" % name)


def symbols(path, *kind):
    """{name: its type} of what a library defines or asks for."""
    lines = mt.execute([mt.need("nm"), "-D", *kind, path]).out.splitlines()
    return {line.split()[-1].partition("@")[0]: line.split()[-2] for line in lines}


def case_asks_for_nothing_else():
    there = symbols(musl.loader(), "--defined-only")
    wanted = symbols(mt.SHIM, "--undefined-only")
    mt.equal([name for name, kind in wanted.items() if kind == "U" and name not in there], [], "what musl has not")
    mt.check({"_r_debug", "_dl_debug_addr"} <= {name for name, kind in wanted.items() if kind == "w"}, wanted)


def case_blocks_and_stacks():
    trace = mt.same([program("busy"), "2000", "10", "100"])
    mt.equal((trace.host["allocations"], trace.host["frees"], trace.host["live_blocks"]), (2000, 1990, 10))
    mt.equal(trace.report["losses"]["truncated_stacks"], 0)
    names = {frame["function"] for site in trace.sites() for frame in site["stack"]}
    mt.check({"deep", "busy", "main"} <= names, names)


def case_a_loader_called_by_its_name():
    """Then the program headers that the kernel tells of are the loader's, which do not say where they are."""
    trace = mt.same([musl.loader(), program("busy"), "2000", "10", "100"])
    mt.equal((trace.host["allocations"], trace.report["losses"]["truncated_stacks"]), (2000, 0))


def case_threads_and_modules():
    trace = mt.same([program("threads10k"), "200"])
    mt.equal(mt.blocks_of(trace.sites(), "leave_one"), (20000, 200))
    mt.equal(trace.report["losses"]["truncated_stacks"], 0)
    trace = mt.same([program("dlloop"), "5", program("libmod_a"), program("libmod_b")])
    mt.equal([mt.blocks_of(trace.sites(), "module_%s_leaf" % name) for name in "ab"], [(5000, 5), (10000, 5)])


@mt.variants("fork", "_Fork", "clone", "spawn")
def case_children(how):
    trace = mt.same([program("forks"), how])
    (parent,) = [p for p in trace.processes if p["pid"] in [q["ppid"] for q in trace.processes]]
    (child,) = [p for p in trace.processes if p is not parent]
    mt.equal((parent["host"]["live_blocks"], parent["host"]["live_bytes"]), (1000, 100000))
    if how != "spawn":
        mt.equal((child["host"]["inherited_blocks"], child["host"]["live_blocks"], child["host"]["live_bytes"]), (750, 10, 300))
        mt.equal((child["exit"]["kind"], child["exit"]["code"]), ("exit", 5))


@mt.variants("return", "exit", "_exit", "abort", "kill")
def case_ends(mode):
    """musl tells no exit handler the status, so that of a program that returns is known from `memtrace run` or a parent."""
    want, got = mt.plain([program("exits"), mode]), mt.supervised([program("exits"), mode])
    mt.equal((got.status, got.out), (want.status if want.status >= 0 else 128 - want.status, want.out))
    ended = got.trace.processes[0]["exit"]
    mt.equal((ended["kind"], ended["code"]), ("exit", want.status) if want.status >= 0 else ("signal", -want.status))
    mt.equal(mt.blocks_of(got.trace.sites(), "before"), (50000, 1000))


mt.main()
