#!/usr/bin/env python3
"""The hook table against NVIDIA's headers, of two majors: every declaration, the structures, and which function a version means."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt  # noqa: E402
from declared import Headers  # noqa: E402
from fakecuda import table  # noqa: E402

GONE = {13: {"cudaThreadExit"}, 12: set()}  # what a major's headers no longer have


def headers(major):
    """CUDA_HOME is taken for any major. The other major lends what its package lacks (crt)."""
    if os.environ.get("CUDA_HOME"):
        return Headers("cuda", [os.path.join(os.environ["CUDA_HOME"], "include")])
    pip = {13: "cuda/13/nvidia/cu13/include", 12: "cuda/12/nvidia/cuda_runtime/include"}
    folders = [os.path.join(mt.VENV, pip[n]) for n in (major, 13)]
    if not all(os.path.exists(os.path.join(folder, "cuda.h")) for folder in folders):
        mt.skip("NVIDIA's headers are not installed (scripts/setup check, or CUDA_HOME)")
    return Headers("cuda", folders)


def version(major):
    with open(os.path.join(headers(major).folders[0], "cuda.h")) as file:
        return int(re.search(r"#define CUDA_VERSION (\d+)", file.read()).group(1)) // 1000


def check_declarations(major):
    names = {name for library in table().values() for name in library}
    mt.equal(names - headers(major).known(), GONE.get(version(major), set()) & names, "what the headers of %d don't have" % version(major))


def case_declarations_13():
    check_declarations(13)


def case_declarations_12():
    check_declarations(12)


def case_a_wrong_declaration_is_noticed():
    headers(13).check_wrong_is_noticed("cudaMalloc, (void **p, size_t n)", "cudaMalloc, (void **p, unsigned n)")


def case_structures():
    for major in (12, 13):
        mt.equal(headers(major).layout(), headers(major).layout("-DMT_CUDA_VENDOR"), "layout")


def case_versions():
    """cudaTypedefs.h knows which versions of a function there are: the table has a row for each."""
    with open(os.path.join(headers(13).folders[0], "cudaTypedefs.h")) as file:
        typedefs = file.read()
    with open(os.path.join(mt.TOP, "shim/hooks/hooks_cuda.def")) as file:
        since = {(base, int(number)): name for base, number, name in re.findall(r"^SINCE\((\w+), (\d+), (\w+)\)", file.read(), re.M)}
    names, wrong = set(table()["CUDA"]), []
    for name in names:
        if name.endswith("_v2"):
            continue
        base, twin = (name[:-5], "_ptsz") if name.endswith("_ptsz") else (name, "")
        versions = sorted(int(v) for v in re.findall(r"\*\s*PFN_%s_v(\d+)%s\)" % (base, twin), typedefs))
        if not versions:
            wrong.append("%s has no type" % name)
        wrong += ["%s from version %d on is no row" % (name, v) for v in versions[1:] if (base, v) not in since]
    for (base, number), name in since.items():
        if name not in names or not re.search(r"\*\s*PFN_%s_v%d\)" % (base, number), typedefs):
            wrong.append("%s is not %s from version %d on" % (base, name, number))
    mt.check(not wrong, "; ".join(wrong))


mt.main()
