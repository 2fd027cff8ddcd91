#!/usr/bin/env python3
"""The matrix of cuda_matrix.py and dlsym's errors on aarch64: built by a cross compiler, run by qemu-user."""
# timeout: 300
import glob
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt  # noqa: E402
from fakecuda import SOURCES, compare, events, expected  # noqa: E402

ROOT = "/usr/aarch64-linux-gnu"
_built = None


def build():
    global _built
    cc = mt.need("aarch64-linux-gnu-gcc")
    if not os.path.exists(os.path.join(ROOT, "lib/ld-linux-aarch64.so.1")):
        mt.skip("no libc for aarch64")
    if _built:
        return _built
    folder = mt.scratch("arm")
    flags = ["-std=gnu11", "-w", "-I.", "-D_GNU_SOURCE"]
    shared = ["-shared", "-fPIC", "-fvisibility=hidden"]
    fake = [cc, *flags, *shared, "-O1", os.path.join(SOURCES, "fake.c"), "-Wl,-Bsymbolic"]
    with open(folder + "/map", "w") as file:
        file.write("libcudart.so.13 { global: *; };\n")
    sources = [os.path.relpath(path, mt.TOP) for path in sorted(
        glob.glob(mt.TOP + "/shim/*/*.[cS]") + glob.glob(mt.TOP + "/shim/arch/aarch64/*.[cS]"))] \
        + ["format/%s.c" % name for name in ("number", "output_name", "settings", "text")]
    for command in (
            [cc, *flags, *shared, "-O1", "-g", "-ftls-model=initial-exec", "-fno-builtin", "-Wl,-z,now", "-Wl,-z,nodelete", "-Wl,-z,defs",
             "-Wl,--version-script=shim/hooks/exports.map", "-o", folder + "/libmemtrace.so", *sources],
            [*fake, "-DDRIVER", "-o", folder + "/libcuda.so.1", "-Wl,-soname,libcuda.so.1"],
            [*fake, "-o", folder + "/libcudart.so.13", "-Wl,-soname,libcudart.so.13", "-Wl,--version-script=" + folder + "/map"],
            [cc, *flags, "-o", folder + "/matrix", os.path.join(SOURCES, "matrix.c"), "-ldl"],
            [cc, *flags, "-DLINKED", "-o", folder + "/linked", os.path.join(SOURCES, "matrix.c"), folder + "/libcuda.so.1",
             folder + "/libcudart.so.13", "-ldl"],
            [cc, *flags, "-o", folder + "/absent", os.path.join(SOURCES, "absent.c"), "-ldl"]):
        done = mt.execute(command, cwd=mt.TOP, timeout=200)
        mt.equal(done.status, 0, done)
    _built = folder
    return folder


def run(program, *arguments, shim=True):
    qemu = mt.need("qemu-aarch64")
    folder, output = build(), os.path.join(mt.scratch("trace"), "t")
    settings = ["LD_LIBRARY_PATH=" + folder] + (["MEMTRACE_OUTPUT=" + output, "LD_PRELOAD=" + folder + "/libmemtrace.so"] if shim else [])
    done = mt.execute([qemu, "-L", ROOT, *(word for s in settings for word in ("-E", s)), os.path.join(folder, program), *arguments])
    mt.equal(done.status, 0, "status of %s" % done)
    done.trace = mt.Trace(output)
    return done


def case_matrix():
    for way in ("linked", "handle", "default", "proc4", "proc5", "entry", "version"):
        done = run("linked" if way == "linked" else "matrix", way)
        want = expected(done.out)
        mt.check(len(want) > 50, "only %d calls" % len(want))
        compare(want, events(done.trace))


def case_errors():
    mt.equal(run("absent").out, run("absent", shim=False).out)


mt.main()
