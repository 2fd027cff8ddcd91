#!/usr/bin/env python3
"""Every hook of shim/hooks/hooks_cuda.def, in every way a program can get the function, is seen exactly once and with the right size, device
and class. The libraries are fakes made from the table (tests/cuda/fake.c); what was called is what the program printed."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt  # noqa: E402
from fakecuda import *  # noqa: E402,F403

def all_called(out, *wanted):
    called = {name for _, _, name, _, _, _, _ in calls(out)}
    missing = [name for library in wanted for name in table()[library] if name not in called and not ENTRY_POINTS.search(name)]
    mt.check(not missing, "the program doesn't call %s" % missing)


def matrix(command, wanted, **env):
    out, trace = run(command, **env)
    all_called(out, *wanted)
    compare(expected(out), events(trace))


def case_linked():
    for major in MAJORS:
        matrix([linked(major), "linked"], ("CUDA", "CUDART"), RUNTIME="libcudart.so." + major)


def case_handle():
    for major in MAJORS:
        matrix([program("matrix"), "handle"], ("CUDA", "CUDART"), RUNTIME="libcudart.so." + major)


def case_default():
    matrix([program("matrix"), "default"], ("CUDA", "CUDART"))


def case_proc_address():
    matrix([program("matrix"), "proc4"], ("CUDA",))
    matrix([program("matrix"), "proc5"], ("CUDA",))


def case_entry_point_by_version():
    matrix([program("matrix"), "version"], ("CUDA",))


def case_entry_point():
    """Without a version: the newest of each, so those that have a successor can't be had."""
    out, trace = run([program("matrix"), "entry"])
    names = set(table()["CUDA"])
    missing = names - {c[2] for c in calls(out)}
    mt.equal({n for n in missing if n + "_v2" not in names and not ENTRY_POINTS.search(n)}, set(), "not called")
    compare(expected(out), events(trace))


def case_failures():
    """Each failed allocation: what was free then, and what was asked for. A free that failed is undone."""
    asked = {"cudaMallocPitch": 1000, "cudaMalloc3D": 1500, "cuMemAllocPitch": 1000, "cuMemAllocPitch_v2": 1000} # no pitch is known
    for way in ("handle", "proc5"):
        out, trace = run([program("matrix"), way, "2", "1"])
        want = []
        for kind, klass, name, address, size, device, status in calls(out):
            mt.equal(status, 2, name)
            if kind == 10:
                want.append(("device-info", klass, name, 12345678, 2 << 30, device, 0))
                told = klass != 7 or "ExternalMemory" in name # other imports tell their size only after success
                want.append(("device-fail", klass, name, asked.get(name, size if told else 0), 0, device, 2))
            elif kind in (11, 15):
                want.append((KINDS[kind], klass, name, address, size, device, 0))
                want.append(("device-undo", klass, name, address, size, device, 0))
        compare(want, events(trace))


def case_shutting_down():
    """Status 4: no failure, and nothing is taken back."""
    out, trace = run([program("matrix"), "handle", "4"])
    want = [(KINDS[k], c, n, a, b, -1, 0) for k, c, n, a, b, _, _ in calls(out) if k in (11, 15)]
    compare(want, events(trace))


def case_refused_for_other_reasons():
    """Status 800, not permitted, as where a fabric is asked for that is not there: memory has not run out. Frees are taken back."""
    out, trace = run([program("matrix"), "handle", "800"])
    want = [(kind, c, n, a, b, device, 0) for k, c, n, a, b, device, _ in calls(out) if k in (11, 15) for kind in (KINDS[k], "device-undo")]
    mt.check(len(want) > 20, "only %d frees" % len(want))
    compare(want, events(trace))


def case_without_context():
    """The driver says 201: events without a device."""
    out, trace = run([program("matrix"), "handle", "0", "-1"])
    got = events(trace)
    mt.equal({e[5] for e in got if e[2] not in ("cuMemCreate",)}, {-1}, "devices")
    mt.check(len(got) > 60, "only %d events" % len(got))


def case_context_beside_the_primary():
    """Where the primary context lives on, the end of another context or of one reference is no reset."""
    out, trace = run([program("matrix"), "handle", "0", "0", "1"])
    mt.equal([e[2] for e in events(trace) if e[0] == "device-reset"],
             ["cudaDeviceReset", "cudaThreadExit", "cuDevicePrimaryCtxReset", "cuDevicePrimaryCtxReset_v2"])


def case_devices():
    """Identity, model and size as the driver says; an instance is not its device."""
    _, trace = run([program("matrix"), "handle"])
    found = [line.split(" ", 6) for line in trace.tool("dump").out.splitlines() if line.startswith("device ")]
    mt.equal(sorted(line[4:] for line in found),
             [["0", "1073741824", '"GPU-00010203-0405-0607-0809-0a0b0c0d0e0f" "Fake 0"'],
              ["1", "2147483648", '"MIG-74757677-7879-7a7b-7c7d-7e7f80818283" "Fake 1"']])


def case_ctypes():
    script = """
import ctypes
runtime, driver = ctypes.CDLL("libcudart.so.12"), ctypes.CDLL("libcuda.so.1")
p, d = ctypes.c_void_p(), ctypes.c_uint64()
def call(kind, name, library, address, size, *arguments):
    status = getattr(library, name)(*arguments)
    print("CALL", kind, 1, name, address().value, size, 0, status)
call(10, "cudaMalloc", runtime, lambda: p, 77, ctypes.byref(p), ctypes.c_size_t(77))
call(11, "cudaFree", runtime, lambda: p, 0, p)
call(10, "cuMemAlloc_v2", driver, lambda: d, 78, ctypes.byref(d), ctypes.c_size_t(78))
call(11, "cuMemFree_v2", driver, lambda: d, 0, d)
print(hasattr(ctypes.CDLL(None), "cuMemAlloc_v2"), hasattr(ctypes.CDLL(None), "cudaMalloc"))
"""
    out, trace = run([mt.python(), "-c", script])
    compare(expected(out), events(trace))
    mt.equal(out.splitlines()[-1], "False False")


mt.main()
