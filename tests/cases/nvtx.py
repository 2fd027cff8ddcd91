#!/usr/bin/env python3
"""NVTX's ranges become phases and its marks marks, without a variable in the environment; a tool that the user named is left alone."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt  # noqa: E402
from fakecuda import SOURCES, cc  # noqa: E402

POINT, BEGIN, END = 1, 3, 4
PROGRAM, NVTX = 0, 1


def program():
    include = os.path.join(mt.VENV, "cuda/13/nvidia/cu13/include")
    if os.environ.get("CUDA_HOME"):
        include = os.path.join(os.environ["CUDA_HOME"], "include")
    if not os.path.exists(os.path.join(include, "nvtx3/nvToolsExt.h")):
        mt.skip("NVTX's header is not installed (scripts/setup check, or CUDA_HOME)")
    path = os.path.join(mt.scratch("ranges"), "ranges")
    cc("-isystem", include, "-o", path, os.path.join(SOURCES, "ranges.c"), "-ldl", "-lpthread")
    return path


def marks(trace):
    names, rows = {}, []
    for line in trace.settle().tool("dump", "--json").out.splitlines():
        row = json.loads(line)
        if row["record"] == "name":
            names[row["id"]] = row["name"]
        if row["record"] == "mark":
            rows.append((row["class"], names.get(row["size"]), row["other"], row["source"]))
    return rows


def case_ranges():
    got = mt.shimmed([program()])
    mt.equal((got.status, got.out), (0, "levels 0 1 1 0, no variable\n"), "said")
    want = [(BEGIN, "outer", 0), (BEGIN, "inn\u00e9r \U0001f600", 0), (POINT, "point", 0), (END, None, 0), (END, None, 0),
            (BEGIN, "free", 1), (END, None, 1), (BEGIN, "other thread's", 2), (END, None, 2), (BEGIN, "registered", 0), (END, None, 0),
            (BEGIN, "attributes", 0), (END, None, 0), (BEGIN, "attributes", 3), (END, None, 3), (POINT, "attributes", 0)]
    mt.equal(marks(got.trace.intact()), [(*row, NVTX) for row in want], "marks")


def case_another_tool():
    """NVTX finds the user's tool as it does without us; here it can't be loaded, and so NVTX does nothing."""
    path = program()
    env = {"NVTX_INJECTION64_PATH": "/nonexistent/tool.so"}
    want, got = mt.plain([path], env=env), mt.shimmed([path], env=env)
    mt.compare(want, got)
    mt.equal(marks(got.trace.intact()), [])


def case_not_recorded():
    """In a process that is not recorded NVTX does what it does without a tool."""
    path = program()
    want, got = mt.plain([path]), mt.shimmed([path], env={"MEMTRACE_EXCLUDE": "ranges"})
    mt.compare(want, got)


def case_getenv():
    """The environment is what it is."""
    script = "import os, ctypes; g = ctypes.CDLL(None).getenv; g.restype = ctypes.c_char_p; " \
             "print([g(n) for n in (b'A', b'AB', b'EMPTY', b'', b'A=1', b'NVTX_INJECTION32_PATH')], sorted(k for k in os.environ if 'NVTX' in k))"
    mt.same([mt.python(), "-c", script], env={"A": "1", "AB": "2", "EMPTY": ""})


mt.main()
