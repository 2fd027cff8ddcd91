"""Programs of musl, Alpine's C library: Debian has its compiler (musl-gcc) and its loader, not its other libraries."""
import os

import mt

# What the compilers of Alpine do by themselves, and musl-gcc does not; the kernel's headers come behind musl's own.
FLAGS = ["-std=c11", "-O1", "-g", "-fno-optimize-sibling-calls", "-fno-builtin", "-w", "-D_GNU_SOURCE", "-fasynchronous-unwind-tables", "-Wl,--eh-frame-hdr",
         "-idirafter", "/usr/include", "-idirafter", "/usr/include/" + os.uname().machine + "-linux-gnu", "-I" + mt.TOP, "-I" + os.path.join(mt.TOP, "tests/programs")]


def loader():
    path = "/lib/ld-musl-%s.so.1" % os.uname().machine
    return path if os.path.exists(path) else mt.skip("musl is not installed")


def build(name, folder):
    """The program or library of tests/programs, made for musl; None where it calls what musl has not."""
    library = name.startswith("lib")
    path = os.path.join(folder, name + (".so" if library else ""))
    kind = ["-fPIC", "-shared"] if library else ["-rdynamic", "-ldl", "-lm", "-lpthread"]
    done = mt.execute([mt.need("musl-gcc"), *FLAGS, "-o", path, os.path.join(mt.TOP, "tests/programs", name + ".c"), *kind], cwd=folder)
    return path if done.status == 0 else None
