#!/usr/bin/env python3
"""The hook table against NVIDIA's headers, of two majors: every declaration, the structures, and which function a version means."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt  # noqa: E402
from fakecuda import SOURCES, table  # noqa: E402

GONE = {13: {"cudaThreadExit"}, 12: set()}  # what a major's headers no longer have


def headers(major):
    """Include folders. CUDA_HOME is taken for any major. The other major lends what its package lacks (crt)."""
    if os.environ.get("CUDA_HOME"):
        return [os.path.join(os.environ["CUDA_HOME"], "include")]
    pip = {13: "cuda/13/nvidia/cu13/include", 12: "cuda/12/nvidia/cuda_runtime/include"}
    folders = [os.path.join(mt.VENV, pip[n]) for n in (major, 13)]
    if not all(os.path.exists(os.path.join(folder, "cuda.h")) for folder in folders):
        mt.skip("NVIDIA's headers are not installed (scripts/setup check, or CUDA_HOME)")
    return folders


def compiler(major, source, *options):
    include = [flag for folder in headers(major) for flag in ("-isystem" + folder,)]
    return subprocess.run(["cc", "-std=gnu11", "-I" + mt.TOP, *include, os.path.join(SOURCES, source), *options],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def version(major):
    with open(os.path.join(headers(major)[0], "cuda.h")) as file:
        return int(re.search(r"#define CUDA_VERSION (\d+)", file.read()).group(1)) // 1000


def check_declarations(major):
    done = compiler(major, "decl.c", "-fsyntax-only", "-Wredundant-decls")
    mt.equal(done.returncode, 0, "cc says %s: status" % done.stdout[-2000:])
    known = set(re.findall(r"redundant redeclaration of .(\w+).", done.stdout))
    names = {name for library in table().values() for name in library}
    mt.equal(names - known, GONE.get(version(major), set()) & names, "what the headers of %d don't have" % version(major))


def case_declarations_13():
    check_declarations(13)


def case_declarations_12():
    check_declarations(12)


def case_a_wrong_declaration_is_noticed():
    headers(13)
    with open(os.path.join(mt.TOP, "shim/hooks/hooks_cuda.def")) as file:
        text = file.read()
    wrong = text.replace("cudaMalloc, (void **p, size_t n)", "cudaMalloc, (void **p, unsigned n)")
    mt.check(wrong != text, "the row of cudaMalloc looks otherwise now")
    folder = mt.scratch("wrong")
    os.makedirs(os.path.join(folder, "shim/hooks"))
    with open(os.path.join(folder, "shim/hooks/hooks_cuda.def"), "w") as file:
        file.write(wrong)
    done = compiler(13, "decl.c", "-fsyntax-only", "-iquote", folder)
    mt.check(done.returncode != 0 and "conflicting types for" in done.stdout, "cc says %r" % done.stdout[-500:])


def layout(major, *options):
    binary = os.path.join(mt.scratch("layout"), "layout")
    done = compiler(major, "layout.c", "-o", binary, *options)
    mt.equal(done.returncode, 0, "cc says %s: status" % done.stdout[-2000:])
    return subprocess.run([binary], stdout=subprocess.PIPE, text=True, check=True).stdout


def case_structures():
    for major in (12, 13):
        mt.equal(layout(major), layout(major, "-DMT_CUDA_VENDOR"), "layout")


def case_versions():
    """cudaTypedefs.h knows which versions of a function there are: the table has a row for each."""
    with open(os.path.join(headers(13)[0], "cudaTypedefs.h")) as file:
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
