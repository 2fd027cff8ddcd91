"""Programs on the fake CUDA libraries of tests/cuda, and what their traces hold of devices."""
import json
import os
import re
import subprocess

import mt

KINDS = {10: "device-alloc", 11: "device-free", 12: "device-fail", 13: "device-undo", 14: "device-map", 15: "device-unmap",
         16: "device-reset", 17: "device-info"}
MAJORS = ("11.0", "12", "13")
SOURCES = os.path.join(mt.TOP, "tests/cuda")
ENTRY_POINTS = re.compile("GetProcAddress|GetDriverEntryPoint")


def table():
    """Names of the hook table, by library."""
    with open(os.path.join(mt.TOP, "shim/hooks/hooks_cuda.def")) as file:
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
            cc("-shared", "-fPIC", "-fvisibility=hidden", "-o", folder + "/" + name, SOURCES + "/fake.c", "-Wl,-soname," + name, '-DNAME="%s"' % name,
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
