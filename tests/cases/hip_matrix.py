#!/usr/bin/env python3
"""Every hook of shim/hooks/hooks_hip.def, in every way a program can get the function, is seen exactly once and with the right size,
device and class, and the program's last error is what it is without us. The library is a fake made from the table (tests/hip/fake.c)."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt  # noqa: E402
import fakecuda  # noqa: E402
from fakehip import *  # noqa: E402,F403


def matrix(command, **env):
    out, trace = run(command, **env)
    missing = {name for name in table() if not ENTRY_POINTS.search(name)} - {name for _, _, name, _, _, _, _ in calls(out)}
    mt.check(not missing, "the program doesn't call %s" % missing)
    compare(expected(out), events(trace))


def early(want):
    """Before HIP 6 the device of hipMemCreate is not known: the structure was another."""
    return [(k, c, n, a, b, -1 if n == "hipMemCreate" else d, s) for k, c, n, a, b, d, s in want]


def case_linked():
    for major in ("6", "7"):
        matrix([linked(major), "linked"], RUNTIME="libamdhip64.so." + major)


def case_handle():
    for major in ("6", "7"):
        matrix([program("matrix"), "handle"], RUNTIME="libamdhip64.so." + major)
    out, trace = run([program("matrix"), "handle"], RUNTIME="libamdhip64.so.5")
    compare(early(expected(out)), events(trace))


def case_default():
    matrix([program("matrix"), "default"])


def case_by_name():
    for way in ("proc", "entry", "spt"):
        matrix([program("matrix"), way])


def case_another_device():
    matrix([program("matrix"), "handle", "0", "1"])


def case_failures():
    """Each failed allocation with what was asked for; what was free then, where asking leaves the last error as it is. A free that failed
    is undone."""
    asked = {"hipMallocPitch": 1000, "hipMemAllocPitch": 1000, "hipMalloc3D": 1500}  # no pitch is known
    for major in ("6", "7"):
        out, trace = run([program("matrix"), "handle", "2"], RUNTIME="libamdhip64.so." + major)
        want = []
        for kind, klass, name, address, size, device, status in calls(out):
            mt.equal(status, 2, name)
            if kind == 10:
                if major == "7" and name != "hipMemCreate":  # it asks for memory of another device than the current one
                    want.append(("device-info", klass, name, 12345678, 1 << 30, device, 0))
                told = klass != 7 or "ExternalMemory" in name  # other imports tell their size only after success
                want.append(("device-fail", klass, name, asked.get(name, size if told else 0), 0, device, 2))
            elif kind in (11, 15):
                kind = "device-free" if kind == 11 else "device-unmap"
                want.append((kind, klass, name, address, size, device, 0))
                want.append(("device-undo", klass, name, address, size, device, 0))
        compare(want, events(trace))


def case_refused_for_other_reasons():
    """Status 801, not supported: memory has not run out. Frees are taken back."""
    out, trace = run([program("matrix"), "handle", "801"])
    frees = [c for c in calls(out) if c[0] in (11, 15)]
    mt.equal([e[0] for e in events(trace)], [kind for c in frees for kind in ("device-free" if c[0] == 11 else "device-unmap", "device-undo")])


def case_shutting_down():
    out, trace = run([program("matrix"), "handle", "4"])
    mt.equal({e[0] for e in events(trace)}, {"device-free", "device-unmap"})


def case_last_error():
    """The program prints it after each call: so the cases above compare it, and this one that there was something to compare."""
    for major, status, wanted in (("6", "2", {"2"}), ("7", "2", {"2"}), ("6", "0", {"0"})):
        out, _ = run([program("matrix"), "handle", status], RUNTIME="libamdhip64.so." + major)
        mt.equal(set(re.findall(r"^last (\d+)$", out, re.M)), wanted, "last errors")


def case_devices():
    """Identity, model and size as HIP says; a device without a number of its own is its PCI address."""
    _, trace = run([program("matrix"), "handle"])
    found = [line.split(" ", 6) for line in trace.tool("dump").out.splitlines() if line.startswith("device ")]
    mt.equal(sorted(line[3:] for line in found), [["4", "0", "1073741824", '"GPU-5d6c5fcd8f3a07c1" "Fake Instinct 0"'],
                                                  ["4", "1", "2147483648", '"PCI-0000:04:00.0" "Fake Instinct 1"']])


def case_ctypes():
    script = """
import ctypes
hip = ctypes.CDLL("libamdhip64.so.7")
p = ctypes.c_void_p()
def call(kind, name, size, *arguments):
    status = getattr(hip, name)(*arguments)
    print("CALL", kind, 1, name, p.value, size, 0, status)
call(10, "hipMalloc", 77, ctypes.byref(p), ctypes.c_size_t(77))
call(11, "hipFree", 0, p)
print(hasattr(ctypes.CDLL(None), "hipMalloc"))
"""
    out, trace = run([mt.python(), "-c", script])
    compare(expected(out), events(trace))
    mt.equal(out.splitlines()[-1], "False")


REPORT, OOM = "c10_reportMemoryUsageToProfiler", "c10_reportOutOfMemoryToProfiler"


def case_pool():
    """PyTorch's blocks: of ROCm as types 1 and 6, of XPU, of PrivateUse1. libc10_hip.so has its functions under its own names, or under CUDA's."""
    folder = libraries()
    fakecuda.cc("-shared", "-fPIC", "-o", folder + "/libc10.so", fakecuda.SOURCES + "/c10.c", "-Wl,-soname,libc10.so")
    for names in ("HIP", "CUDA"):
        fakecuda.cc("-shared", "-fPIC", "-D" + names, "-o", folder + "/libc10_hip.so", fakecuda.SOURCES + "/c10.c", "-Wl,-soname,libc10_hip.so")
        for major in ("6", "7"):
            command = program("blocks-" + major, "-Wl,--no-as-needed",
                              *(os.path.join(folder, n) for n in ("libc10.so", "libc10_hip.so", "libamdhip64.so." + major)), source="blocks.c")
            _, trace = run([command], intact=False)  # what the pool says of itself is made up
            free, captured = (12345678, 42) if major == "7" else (0, None)
            info = [("device-info", "hipMalloc", free, 1 << 30, 1, 0, 0, 0, None)] if free else []
            told = [("device-info", OOM, free, 1 << 30, 10, 0, 0, 0, None)] if free else []
            compare([
                ("device-alloc", REPORT, 0x1000, 512, 10, 0, 0, 0, None),
                ("device-alloc", REPORT, 0x4800, 100, 1, 0, 0, 0, None),
                ("device-free", REPORT, 0x4800, 0, 1, 0, 0, 0, None),
                ("device-alloc", REPORT, 0x2000, 1024, 10, 1, 0x700, 0, None),
                ("device-alloc", REPORT, 0x4000, 2048, 1, 0, 0, 0, None),
                ("device-alloc", REPORT, 0x5000, 4096, 10, 0, 0xca00, 0, captured),
                ("device-free", REPORT, 0x1000, 0, 10, 0, 0, 0, None),
                ("device-free", REPORT, 0x4000, 0, 1, 0, 0, 0, None),
                *info,
                ("device-fail", "hipMalloc", 1 << 20, 0, 1, 0, 0, 2, None),
                ("device-alloc", REPORT, 0x6000, 8192, 10, 0, 0xca00, 0, captured),
                *told,
                ("device-fail", OOM, 1 << 20, 0, 10, 0, 1000, 2, captured),
                ("device-fail", OOM, 1 << 21, 0, 1, 0, 1001, 2, None),
            ], [(e["record"], e["hook"], e["addr"], e["size"], e["class"], e["ordinal"], e["stream"], e["status"], e.get("capture"))
                for e in raw_events(trace)])
            devices = json.loads(trace.tool("report", "--json").out)["devices"]
            mt.equal(sorted(d["name"] for d in devices), ["device:0", "hip:0", "hip:1", "xpu:0"])


def case_not_asked_for_where_it_is_not_loaded():
    """A program without HIP and Level Zero: neither is looked for, and none of their names is found."""
    script = "import ctypes; print([hasattr(ctypes.CDLL(None), n) for n in ('hipMalloc', 'hipGetDevice', 'zeMemFree', 'zeDeviceGet')])"
    got = mt.shimmed([mt.python(), "-c", script], env={"LD_DEBUG": "libs"})
    mt.equal(got.out, "[False, False, False, False]\n")
    mt.check("find library=" in got.err, "the loader does not say what it looks for")
    mt.check("libamdhip" not in got.err and "libze_" not in got.err, "they were looked for")
    mt.equal(raw_events(got.trace), [])


def case_report():
    """AMD's devices are called hip:N."""
    trace = run([program("matrix"), "handle"])[1]
    devices = json.loads(trace.tool("report", "--json").out)["devices"]
    mt.equal(sorted(d["name"] for d in devices), ["hip:0", "hip:1"])


mt.main()
