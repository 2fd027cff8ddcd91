#!/usr/bin/env python3
"""Every hook of shim/hooks_cuda.def, in every way a program can get the function, is seen exactly once and with the right size, device
and class. The libraries are fakes made from the table (tests/cuda/fake.c); what was called is what the program printed."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt  # noqa: E402

KINDS = {10: "device-alloc", 11: "device-free", 12: "device-fail", 13: "device-undo", 14: "device-map", 15: "device-unmap",
         16: "device-reset", 17: "device-info"}
MAJORS = ("11.0", "12", "13")
SOURCES = os.path.join(mt.TOP, "tests/cuda")
ENTRY_POINTS = re.compile("GetProcAddress|GetDriverEntryPoint")


def table():
    """Names of the hook table, by library."""
    with open(os.path.join(mt.TOP, "shim/hooks_cuda.def")) as file:
        rows = re.findall(r"^(?:OUT|DROP|HAND|BARE)\((CUDA|CUDART),(?: [A-Z]+,)? (\w+)", file.read(), re.M)
    names = {"CUDA": [], "CUDART": []}
    for library, name in rows:
        names[library].append(name)
    return names


def cc(*arguments):
    done = subprocess.run([os.environ.get("CC", "cc"), "-std=gnu11", "-O1", "-g", "-w", "-I" + mt.TOP, "-D_GNU_SOURCE", *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    mt.check(done.returncode == 0, "cc: " + done.stdout)


_libraries = None


def libraries():
    """The folder with the fakes."""
    global _libraries
    if _libraries is None:
        folder = mt.scratch("cuda")
        cc("-shared", "-fPIC", "-fvisibility=hidden", "-DDRIVER", "-o", folder + "/libcuda.so.1", SOURCES + "/fake.c",
           "-Wl,-soname,libcuda.so.1", "-Wl,-Bsymbolic")
        for major in MAJORS:
            name = "libcudart.so." + major
            with open(folder + "/map", "w") as file:
                file.write(name + " { global: *; };\n")
            cc("-shared", "-fPIC", "-fvisibility=hidden", "-o", folder + "/" + name, SOURCES + "/fake.c", "-Wl,-soname," + name,
               "-Wl,--version-script=" + folder + "/map", "-Wl,-Bsymbolic")
        _libraries = folder
    return _libraries


def program(name, *arguments, source="matrix.c"):
    path = os.path.join(libraries(), name)
    if not os.path.exists(path):
        cc("-o", path, os.path.join(SOURCES, source), *arguments, "-ldl", "-lpthread")
    return path


def linked(major):
    folder = libraries()
    return program("linked-" + major, "-DLINKED", folder + "/libcuda.so.1", folder + "/libcudart.so." + major)


def run(command, **env):
    """Its standard output, and the device events of the trace in order. Under the shim it does what it does without."""
    env["LD_LIBRARY_PATH"] = libraries()
    want, got = mt.plain(command, env=env), mt.shimmed(command, env=env)
    mt.equal((want.status, got.status), (0, 0), "status of %s %r" % (command, got.err[-300:]))
    mt.equal(re.sub(r"\d{10,}", "P", got.out), re.sub(r"\d{10,}", "P", want.out), "output under the shim")
    got.trace.intact()
    return got.out, got.trace


def events(trace):
    """(kind, class, hook, address, bytes, ordinal of the device or -1, status) of all device events, in order."""
    return [(e["record"], e["class"], e["hook"], e["addr"], e["size"], e["ordinal"], e["status"]) for e in raw_events(trace)]


def raw_events(trace):
    import json
    done = trace.settle().tool("dump", "--json")
    mt.equal(done.status, 0, "status of dump")
    rows, devices = [], {}
    for line in done.out.splitlines():
        if not line.startswith('{"record":"device'):
            continue
        row = json.loads(line)
        if row["record"] == "device":
            devices[row["process"], row["id"]] = row["ordinal"]
        else:
            rows.append(row)
    rows.sort(key=lambda row: row["ticks"])
    for row in rows:
        row["ordinal"] = devices[row["process"], row["device"]] if row["device"] else -1
    return rows


def calls(out):
    return [(int(k), int(c), name, int(a), int(b), int(d), int(s))
            for k, c, name, a, b, d, s in re.findall(r"^CALL (\d+) (\d+) (\w+) (\d+) (\d+) (-?\d+) (\d+)$", out, re.M)]


def expected(out):
    """What calls that succeeded leave. Those of releases carry the class of their function."""
    return [(KINDS[kind], klass, name, address, size, device, 0) for kind, klass, name, address, size, device, _ in calls(out)]


def compare(want, got):
    for i, (a, b) in enumerate(zip(want, got)):
        if a != b:
            mt.fail("event %d is %s, not %s (of %d, %d)" % (i, b, a, len(got), len(want)))
    mt.equal(len(got), len(want), "number of events, after %s:" % (got[len(want):] or want[len(got):])[:3])


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
                want.append(("device-fail", klass, name, asked.get(name, size if klass != 7 else 0), 0, device, 2))
            elif kind in (11, 15):
                want.append((KINDS[kind], klass, name, address, size, device, 0))
                want.append(("device-undo", klass, name, address, size, device, 0))
        compare(want, events(trace))


def case_shutting_down():
    """Status 4: no failure, and nothing is taken back."""
    out, trace = run([program("matrix"), "handle", "4"])
    want = [(KINDS[k], c, n, a, b, -1, 0) for k, c, n, a, b, _, _ in calls(out) if k in (11, 15)]
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
