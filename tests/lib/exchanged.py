"""A program whose library's file becomes another one, behind its back, and its trace."""
import os

import bombs
import mt

ID = bytes(range(1, 21))
LIBRARY = """
#include <stdlib.h>
__attribute__((noinline)) void *from_library(size_t n) { void *volatile p = malloc(n); return p; }
"""
PROGRAM = """
#include <stdlib.h>
void *from_library(size_t);
int main(void) { static void *p[20000]; for (int i = 0; i < 20000; i++) p[i] = from_library(1000);
	for (int i = 0; i < 20000; i++) if (i % 10) free(p[i]);
	return 0; }
"""


def build(path, source, *flags):
    with open(path + ".c", "w") as file:
        file.write(source)
    done = mt.execute(["cc", "-O1", "-g", path + ".c", "-o", path, *flags])
    mt.equal(done.status, 0, "status of cc: %s" % done.err)
    return path


class Recorded:
    """A program with a library, and its trace; the library's file can be anything then, as long as its build id is the same."""

    def __init__(self):
        self.home = mt.scratch("foreign")
        self.library = build(os.path.join(self.home, "libown.so"), LIBRARY, "-shared", "-fPIC", "-Wl,--build-id=0x" + ID.hex())
        self.program = build(os.path.join(self.home, "own"), PROGRAM, self.library)
        self.trace = mt.shimmed([self.program]).trace.settle()

    def replace(self, *sections, **more):
        with open(self.library, "wb") as file:
            file.write(bombs.module(ID, *sections, **more))

    def fifo(self, name):
        path = os.path.join(self.home, name)
        os.mkfifo(path)
        return path
