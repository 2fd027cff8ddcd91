#!/usr/bin/env python3
"""The unwinder on aarch64: built by a cross compiler, run by qemu-user, its stacks compared with libgcc's."""
# timeout: 400
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

ROOT = "/usr/aarch64-linux-gnu"
# Mode and captures at least, as in unwind.py. libgcc needs more than 8 KiB of stack; qemu places a module that is
# loaded again elsewhere.
TRAPS = (
    ("alloca", "verify", 30000), ("stale", "verify", 9000), ("noreturn", "verify", 14000), ("realigned", "verify", 7000),
    ("around-depth", "verify", 6000), ("signal", "verify", 13000), ("altstack", "capture", 19000),
    ("altstack-inside", "verify", 19000), ("anywhere", "verify", 5000), ("coroutines", "verify", 68000),
    ("longjmp", "verify", 33000), ("threads", "verify", 300000), ("fork", "verify", 5), ("lazy", "verify", 900),
)


def build(folder):
    cc = mt.need("aarch64-linux-gnu-gcc")
    if not os.path.exists(os.path.join(ROOT, "lib/ld-linux-aarch64.so.1")):
        mt.skip("no libc for aarch64")
    sources = ["tests/unwind/verify.c", "tests/unwind/tree.c"] + [
        "shim/%s.c" % name for name in ("stack/unwind", "stack/unwind_step", "stack/rules", "stack/range", "stack/ehframe", "stack/cfi",
                                        "base/elfsearch", "base/elfsym", "base/libc")]
    flags = ["-std=gnu11", "-g", "-w", "-fno-builtin", "-D_GNU_SOURCE", "-I."]
    for command in (
            [cc, *flags, "-O2", "-fPIC", "-fvisibility=hidden", "-ftls-model=initial-exec", "-shared", "-Wl,-z,now",
             "-o", os.path.join(folder, "libverify.so"), *sources],
            [cc, *flags, "-O2", "-fPIC", "-shared", "-Wl,-z,lazy", "-o", os.path.join(folder, "liblazy.so"), "tests/unwind/lazy.c"],
            [cc, *flags, "-O0", "-o", os.path.join(folder, "traps-O0"), "tests/unwind/traps.c", "-ldl", "-lpthread", "-Wl,-z,lazy"],
            [cc, *flags, "-O2", "-o", os.path.join(folder, "traps-O2"), "tests/unwind/traps.c", "-ldl", "-lpthread", "-Wl,-z,lazy"]):
        done = mt.execute(command, cwd=mt.TOP)
        mt.equal(done.status, 0, done)


def verify(folder, how, name, mode, least):
    report = os.path.join(mt.scratch(), "report")
    done = mt.execute([mt.need("qemu-aarch64"), "-L", ROOT, "-E", "UNWIND_MODE=" + mode, "-E", "UNWIND_REPORT=" + report,
                       "-E", "LD_PRELOAD=" + os.path.join(folder, "libverify.so"), os.path.join(folder, "traps-" + how), name, folder],
                      timeout=200)
    mt.equal(done.status, 0, "%s %s: status of %s" % (how, name, done))
    with open(report) as file:
        totals = dict(pair.split("=") for pair in file.read().splitlines()[-1].split())
    mt.equal(int(totals["differ"]), 0, "%s %s: stacks that differ: %s" % (how, name, done.err[:3000]))
    mt.check(int(totals["captures"]) >= least, "%s %s: only %s" % (how, name, totals))
    mt.equal(int(totals["truncated"]) > 0, name == "around-depth", "%s %s: cut" % (how, name))


@mt.variants("O2", long=("O0",))
def case_traps(how):
    mt.need("qemu-aarch64")
    folder = mt.scratch()
    build(folder)
    for trap in TRAPS:
        verify(folder, how, *trap)


mt.main()
