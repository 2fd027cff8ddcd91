#!/usr/bin/env python3
"""A wheel of what is built here, with the layout of those that are published: pip installs it in a fresh environment of every Python that is
found, and it records and reports there. tests/long/wheel_install.py does so with those of `make wheel`, and the one for aarch64 runs under
qemu-user."""
import glob
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt
import wheels

ROOT = "/usr/aarch64-linux-gnu"


def case_installs_and_records():
    done = mt.execute(["make", "--no-print-directory", "wheel-local", "-o", "all", "B=" + mt.BUILD], cwd=mt.TOP)
    mt.equal(done.status, 0, "status of make: %s" % done)
    (path,) = glob.glob(os.path.join(mt.BUILD, "wheel/local/*.whl"))
    wheels.every_python(path, libraries="the system's library")


@mt.long
def case_aarch64_under_qemu():
    """A program of aarch64 is recorded by its library; its program and ours read the same from that."""
    folder = wheels.unpacked("aarch64")
    qemu, cc = mt.need("qemu-aarch64"), mt.need("aarch64-linux-gnu-gcc")
    work = mt.scratch("arm")
    built = mt.execute([cc, "-O1", "-I" + mt.TOP, "-w", "-D_GNU_SOURCE", "-o", work + "/busy", os.path.join(mt.TOP, "tests/programs/busy.c"), "-lpthread", "-ldl", "-lm"])
    mt.equal(built.status, 0, built)
    tool = [qemu, "-L", ROOT, os.path.join(folder, "bin/memtrace")]
    mt.check("aarch64" in mt.execute([*tool, "--version"]).out, "--version")
    plain = mt.execute([qemu, "-L", ROOT, work + "/busy", "200", "10", "10"])
    done = mt.execute([qemu, "-L", ROOT, "-E", "LD_PRELOAD=" + os.path.join(folder, "lib/libmemtrace.so"), "-E", "MEMTRACE_OUTPUT=" + work + "/t", work + "/busy", "200", "10", "10"])
    mt.equal((done.status, done.out, done.err), (plain.status, plain.out, plain.err), "status and output under the library")
    said = [json.loads(mt.execute([*command, "leaks", "--json", "--no-debug-files", work + "/t"]).out) for command in (tool, [mt.MEMTRACE])]
    mt.equal(said[0], said[1], "what the program of aarch64 reads")
    mt.check(said[0]["sites"], "nothing was recorded: %s" % json.dumps(said[0])[:500])


mt.main()
