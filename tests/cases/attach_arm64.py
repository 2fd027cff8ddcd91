#!/usr/bin/env python3
"""What attaching writes into a thread of aarch64: built by a cross compiler against the kernel's headers, and restored by a sigreturn under qemu-user, which
has no ptrace. docs/design/attach.md says what was run with it on a whole emulated machine."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

ROOT = "/usr/aarch64-linux-gnu"


def case_frame_is_restored():
    cc, qemu = mt.need("aarch64-linux-gnu-gcc"), mt.need("qemu-aarch64")
    if not os.path.exists(os.path.join(ROOT, "lib/ld-linux-aarch64.so.1")):
        mt.skip("no libc for aarch64")
    program = os.path.join(mt.scratch(), "arm64")
    done = mt.execute([cc, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-g", "-I.", "-D_GNU_SOURCE", "-o", program, "tests/attach/arm64.c"], cwd=mt.TOP)
    mt.equal(done.status, 0, done)
    done = mt.execute([qemu, "-L", ROOT, program])
    mt.equal((done.status, done.out), (0, "as it was\n"), done)


mt.main()
