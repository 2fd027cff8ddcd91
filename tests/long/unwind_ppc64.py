#!/usr/bin/env python3
"""The generic port (shim/arch/generic) on ppc64el: built by a cross compiler, run by qemu-user. It unwinds with libunwind, and each of
its stacks is compared with libgcc's."""
# timeout: 300
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

ROOT = "/usr/powerpc64le-linux-gnu"
CC = "powerpc64le-linux-gnu-gcc"
# libunwind for the target, which no cross package has: scripts/setup long puts it there.
LIBRARIES = os.environ.get("PPC64EL_LIBRARIES", os.path.join(mt.TOP, "build/ppc64el"))
# Captures at least. Left out: what takes minutes under qemu (threads, and deep stacks, which libunwind walks anew each time), and
# stacks of 8 KiB, which libgcc needs more of; and allocations in signal handlers ("signal", "anywhere"), where libunwind itself
# may fault on this machine (docs/PORTING.md).
TRAPS = (("noreturn", 14000), ("realigned", 7000), ("coroutines", 68000), ("fork", 5))
# Only run: libgcc needs more stack than there is.
CAPTURED = (("altstack", 19000),)
_built = None


def build():
    global _built
    cc = mt.need(CC)
    if not os.path.exists(os.path.join(ROOT, "lib/ld64.so.2")):
        mt.skip("no libc for ppc64el")
    if _built:
        return _built
    folder = mt.scratch("ppc64")
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "CC", "CFLAGS")}
    flags = ["-std=gnu11", "-g", "-w", "-fno-builtin", "-D_GNU_SOURCE", "-I."]
    for command in (
            ["make", "-j2", "CC=" + cc, "ARCH=generic", "CFLAGS=-O1 -g", "B=" + folder, folder + "/libmemtrace.so"],
            [cc, *flags, "-DBY_LIBGCC", "-O1", "-fPIC", "-shared", "-o", folder + "/libmemtrace-verify.so", "tests/unwind/oracle.c"],
            [cc, *flags, "-O0", "-o", folder + "/traps-O0", "tests/unwind/traps.c", "-ldl", "-lpthread"],
            [cc, *flags, "-O2", "-o", folder + "/traps-O2", "tests/unwind/traps.c", "-ldl", "-lpthread"]):
        done = mt.execute(command, cwd=mt.TOP, env=env, timeout=250)
        mt.equal(done.status, 0, done)
    _built = folder
    return folder


def run(how, name, libraries, verify=True):
    """One trap under the shim: the sums of its processes' comparisons, and the trace."""
    folder, report, output = build(), os.path.join(mt.scratch("report"), "report"), os.path.join(mt.scratch("trace"), "t")
    settings = ["MEMTRACE_OUTPUT=" + output, "MEMTRACE_VERIFY=%d" % verify, "MEMTRACE_VERIFY_REPORT=" + report,
                "LD_PRELOAD=" + folder + "/libmemtrace.so", "LD_LIBRARY_PATH=" + libraries]
    done = mt.execute([mt.need("qemu-ppc64le"), "-L", ROOT, *(word for s in settings for word in ("-E", s)),
                       os.path.join(folder, "traps-" + how), name, folder], timeout=200)
    mt.equal(done.status, 0, "%s %s: status of %s" % (how, name, done))
    totals, done.trace = {}, mt.Trace(output)
    if not verify:
        return done
    with open(report, encoding="utf-8") as file:
        for pair in file.read().split():
            key, value = pair.split("=")
            totals[key] = totals.get(key, 0) + int(value)
    done.totals = totals
    return done


def case_traps():
    mt.need("qemu-ppc64le")
    if not os.path.exists(os.path.join(LIBRARIES, "libunwind.so.8")):
        mt.skip("no libunwind for ppc64el in %s" % LIBRARIES)
    for how in ("O0", "O2"):
        for name, least in TRAPS:
            done = run(how, name, LIBRARIES)
            mt.equal(done.totals["differ"], 0, "%s %s: %s; stacks that differ: %s" % (how, name, done.totals, done.err[:3000]))
            mt.check(done.totals["captures"] >= least, "%s %s: only %s" % (how, name, done.totals))

        for name, least in CAPTURED:
            done = run(how, name, LIBRARIES, verify=False)
            allocations = done.trace.report["host"]["allocations"]
            mt.check(allocations >= least, "%s %s: only %d allocations" % (how, name, allocations))


def case_without_libunwind_stacks_are_callers():
    mt.need("qemu-ppc64le")
    done = run("O2", "realigned", "/nowhere")
    mt.equal((done.totals["differ"], done.totals["truncated"]), (0, done.totals["captures"]), "%s %s" % (done.totals, done.err[:2000]))
    mt.check(done.totals["captures"] >= 1000, done.totals)


mt.main()
