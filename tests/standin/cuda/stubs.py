#!/usr/bin/env python3
"""Builds what else an installed torch wheel needs of NVIDIA's libraries: stubs.py TORCH_LIB OUTPUT MATHS_OBJECT

Every library that the wheel's libraries need, that the wheel doesn't bring and that isn't in OUTPUT yet is made of functions that
return 0, one for each undefined symbol, with the wheel's symbol versions; those that MATHS_OBJECT defines are taken from there.
With MEMTRACE_STANDIN_STUBS=1 a program's first call of each is told on stderr.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

# Libraries without symbol versions: whose a name is shows in its beginning.
BARE = {"libnccl": r"nccl[A-Z]", "libcufile": r"cuFile", "libcusparseLt": r"cusparseLt"}
VERSION = {"libnvshmem_host": "NVSHMEM"}
CORE = ("libcuda", "libcudart", "libnvidia-ml")
SOURCE = """#include <stdio.h>
#include <stdlib.h>
#define STUB(name) __attribute__((visibility("default"))) long name(void) { static int told; tell(#name, &told); return 0; }
static inline void tell(const char *name, int *told)
{
	if (!*told && getenv("MEMTRACE_STANDIN_STUBS"))
		fprintf(stderr, "stand-in: %s\\n", name);
	*told = 1;
}
"""


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def read_wheel(folder):
    """(the libraries it lacks, {version or None: undefined names})"""
    needed, symbols = set(), {}
    files = sorted(glob.glob(folder + "/*.so*"))
    for file in files:
        needed.update(re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", file)))
        for line in run("nm", "-D", "--undefined-only", file).splitlines():
            name, _, version = line.split()[-1].partition("@")
            symbols.setdefault(version.lstrip("@") or None, set()).add(name)
    have = {os.path.basename(f) for f in files}
    return sorted(n for n in needed - have if re.match(r"lib(cu|nv|nccl)", n)), symbols


def build(library, symbols, output, maths, hand):
    base = library.split(".so")[0]
    version = VERSION.get(base, library)
    names = set(symbols.get(version, ()))
    if base in BARE:
        names |= {s for s in symbols.get(None, ()) if re.match(BARE[base], s)}
    with tempfile.TemporaryDirectory() as folder:
        source, script = os.path.join(folder, "stubs.c"), os.path.join(folder, "map")
        with open(source, "w", encoding="utf-8") as file:
            file.write(SOURCE + "".join("STUB(%s)\n" % n for n in sorted(names - hand)))
        with open(script, "w", encoding="utf-8") as file:
            exported = "global: %s" % " ".join(sorted(n + ";" for n in names)) if names else ""
            file.write("%s { %s local: *; };" % (version if version in symbols else "", exported))
        run(os.environ.get("CC", "cc"), "-O1", "-w", "-shared", "-fPIC", "-o", os.path.join(output, library), source,
            *([maths] if names & hand else []), "-Wl,-soname," + library, "-Wl,--version-script=" + script, "-Wl,-Bsymbolic")
    return len(names)


def main():
    wheel, output, maths = sys.argv[1:]
    lacking, symbols = read_wheel(wheel)
    hand = {line.split()[-1] for line in run("nm", "--defined-only", "--extern-only", maths).splitlines()}
    counts = [build(n, symbols, output, maths, hand) for n in lacking if n.split(".so")[0] not in CORE]
    print("stand-in: %d libraries with %d functions for %s" % (len(counts), sum(counts), wheel))


main()
