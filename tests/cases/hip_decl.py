#!/usr/bin/env python3
"""The hook table against AMD's headers: every declaration, the structures, and the versions of symbols where the library is."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt  # noqa: E402
from declared import Headers  # noqa: E402
from fakehip import table  # noqa: E402

PATH = os.environ.get("ROCM_PATH")  # else the headers are those of ROCm 5.2, which Debian has


def headers():
    folder = os.path.join(PATH or os.path.join(mt.VENV, "hip"), "include")
    if not os.path.exists(os.path.join(folder, "hip/hip_runtime_api.h")):
        mt.skip("AMD's headers are not installed (scripts/setup check, or ROCM_PATH)")
    return Headers("hip", [folder])


def version():
    """(5, 2) of the headers."""
    done = headers().compile("decl.c", "-E", "-dM")
    number = int(re.search(r"#define HIP_VERSION (\d+)|$", done.stdout).group(1) or 0)
    if not number:
        number = sum(int(re.search(r"#define HIP_VERSION_%s (\d+)" % part, done.stdout).group(1)) * by
                     for part, by in (("MAJOR", 10000000), ("MINOR", 100000)))
    return number // 10000000, number // 100000 % 100


def case_declarations():
    have = version()
    later = {name for name, since in table().items() if tuple(map(int, since[4:].split("."))) > have}
    if have < (5, 3):
        later.add("hipDeviceGraphMemTrim")  # the library had it before
    mt.equal(set(table()) - headers().known(), later, "what the headers of %d.%d don't have" % have)


def case_a_wrong_declaration_is_noticed():
    headers().check_wrong_is_noticed("hipMalloc, (void **p, size_t n)", "hipMalloc, (void **p, unsigned n)")


def case_structures():
    """The properties of physical memory were another structure before HIP 6, which is why the hook doesn't look there then."""
    theirs, ours = headers().layout("-DMT_HIP_VENDOR").splitlines(), headers().layout().splitlines()
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
