#!/usr/bin/env python3
"""The hook table against AMD's headers: every declaration, the structures, and the versions of symbols where the library is."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt  # noqa: E402
from fakehip import SOURCES, table  # noqa: E402

PATH = os.environ.get("ROCM_PATH")  # else the headers are those of ROCm 5.2, which Debian has


def version():
    """(5, 2) of the headers."""
    done = compiler("decl.c", "-E", "-dM")
    number = int(re.search(r"#define HIP_VERSION (\d+)|$", done.stdout).group(1) or 0)
    if not number:
        number = sum(int(re.search(r"#define HIP_VERSION_%s (\d+)" % part, done.stdout).group(1)) * by
                     for part, by in (("MAJOR", 10000000), ("MINOR", 100000)))
    return number // 10000000, number // 100000 % 100


def compiler(source, *options):
    folder = os.path.join(PATH or os.path.join(mt.VENV, "hip"), "include")
    if not os.path.exists(os.path.join(folder, "hip/hip_runtime_api.h")):
        mt.skip("AMD's headers are not installed (scripts/setup check, or ROCM_PATH)")
    return subprocess.run(["cc", "-std=gnu11", "-I" + mt.TOP, "-isystem", folder, os.path.join(SOURCES, source), *options],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def case_declarations():
    done = compiler("decl.c", "-fsyntax-only", "-Wredundant-decls")
    mt.equal(done.returncode, 0, "cc says %s: status" % done.stdout[-2000:])
    known = set(re.findall(r"redundant redeclaration of .(\w+).", done.stdout))
    have = version()
    later = {name for name, since in table().items() if tuple(map(int, since[4:].split("."))) > have}
    if have < (5, 3):
        later.add("hipDeviceGraphMemTrim")  # the library had it before
    mt.equal(set(table()) - known, later, "what the headers of %d.%d don't have" % have)


def case_a_wrong_declaration_is_noticed():
    with open(os.path.join(mt.TOP, "shim/hooks/hooks_hip.def")) as file:
        text = file.read()
    wrong = text.replace("hipMalloc, (void **p, size_t n)", "hipMalloc, (void **p, unsigned n)")
    mt.check(wrong != text, "the row of hipMalloc looks otherwise now")
    folder = mt.scratch("wrong")
    os.makedirs(os.path.join(folder, "shim/hooks"))
    with open(os.path.join(folder, "shim/hooks/hooks_hip.def"), "w") as file:
        file.write(wrong)
    done = compiler("decl.c", "-fsyntax-only", "-iquote", folder)
    mt.check(done.returncode != 0 and "conflicting types for" in done.stdout, "cc says %r" % done.stdout[-500:])


def layout(*options):
    binary = os.path.join(mt.scratch("layout"), "layout")
    done = compiler("layout.c", "-o", binary, *options)
    mt.equal(done.returncode, 0, "cc says %s: status" % done.stdout[-2000:])
    return subprocess.run([binary], stdout=subprocess.PIPE, text=True, check=True).stdout


def case_structures():
    """The properties of physical memory were another structure before HIP 6, which is why the hook doesn't look there then."""
    theirs, ours = layout("-DMT_HIP_VENDOR").splitlines(), layout().splitlines()
    lines = {line.split(":")[0] for line in theirs}  # what both have
    if version() < (6, 0):
        lines -= {"hipMemAllocationProp.location.type", "hipMemAllocationProp.location.id"}
    mt.check(len(lines) > 20, "only %d lines" % len(lines))
    mt.equal([line for line in theirs if line.split(":")[0] in lines], [line for line in ours if line.split(":")[0] in lines], "layout")


def case_versions():
    """A reference of a program names the symbol's version: the library's is the table's."""
    library = PATH and os.path.join(PATH, "lib/libamdhip64.so")
    if not library or not os.path.exists(library):
        mt.skip("no libamdhip64.so (ROCM_PATH)")
    text = subprocess.run(["readelf", "-W", "--dyn-syms", library], stdout=subprocess.PIPE, text=True, check=True).stdout
    versions = dict(re.findall(r" (hip\w+)@@(hip_[\d.]+)", text))
    mt.equal({n: versions.get(n) for n in table() if n in versions}, {n: v for n, v in table().items() if n in versions}, "versions")


mt.main()
