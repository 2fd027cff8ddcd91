#!/usr/bin/env python3
"""Every hook of shim/hooks/hooks_ze.def (Level Zero), in every way a program can get the function, is seen exactly once and with the
right size, device and class; and the table is what the header says. The library is a fake made from the table (tests/ze/fake.c)."""
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import fakecuda  # noqa: E402
import mt  # noqa: E402
from declared import Headers  # noqa: E402
from fakecuda import calls, compare, events, expected, raw_events  # noqa: E402

SOURCES = os.path.join(mt.TOP, "tests/ze")


def table():
    with open(os.path.join(mt.TOP, "shim/hooks/hooks_ze.def")) as file:
        return set(re.findall(r"^(?:OUT|DROP|HAND)\((?:[A-Z]+, )?(\w+)", file.read(), re.M))


_folder = None


def folder():
    global _folder
    if _folder is None:
        where = _folder = mt.scratch("ze")
        library = where + "/libze_loader.so.1"
        fakecuda.cc("-shared", "-fPIC", "-fvisibility=hidden", "-o", library, SOURCES + "/fake.c", "-Wl,-soname,libze_loader.so.1", "-Wl,-Bsymbolic")
        fakecuda.cc("-o", where + "/matrix", SOURCES + "/matrix.c", "-ldl")
        fakecuda.cc("-o", where + "/linked", "-DLINKED", SOURCES + "/matrix.c", library, "-ldl")
    return _folder


def run(program, *arguments):
    where = folder()
    command, env = [os.path.join(where, program), *arguments], {"LD_LIBRARY_PATH": where}
    want, got = mt.plain(command, env=env), mt.shimmed(command, env=env)
    mt.equal((want.status, got.status), (0, 0), "status of %s %r" % (command, got.err[-300:]))
    mt.equal(re.sub(r"\d{10,}", "P", got.out), re.sub(r"\d{10,}", "P", want.out), "output under the shim")
    got.trace.intact()
    return got.out, got.trace


def matrix(program, way):
    out, trace = run(program, way)
    mt.equal(table() - {name for _, _, name, _, _, _, _ in calls(out)}, set(), "not called")
    compare(expected(out), events(trace))


def case_linked():
    matrix("linked", "linked")


def case_handle():
    matrix("matrix", "handle")


def case_default():
    matrix("matrix", "default")


def case_failures():
    for status in (0x70000003, 0x70000002):
        out, trace = run("matrix", "handle", hex(status))
        want = []
        for kind, klass, name, address, size, device, got in calls(out):
            mt.equal(got, status, name)
            if kind == 10:
                want.append(("device-fail", klass, name, 0 if klass == 7 else size, 0, device, status))
            elif kind in (11, 15):  # nothing is there, so nobody says whose it would be
                asked = name.startswith("zeMemFree")
                want += [(k, 1 if asked else klass, name, address, size, -1, 0)
                         for k in ("device-free" if kind == 11 else "device-unmap", "device-undo")]
        compare(want, events(trace))


def case_refused_for_other_reasons():
    out, trace = run("matrix", "handle", "0x78000004")
    mt.equal({e[0] for e in events(trace)}, {"device-free", "device-unmap", "device-undo"})


def case_devices():
    """GPUs in the order of Level Zero's list, whoever's driver they are of; a part counts as its device. No other devices."""
    _, trace = run("matrix", "handle")
    found = [line.split(" ", 6) for line in trace.tool("dump").out.splitlines() if line.startswith("device ")]
    mt.equal(sorted(line[3:] for line in found),
             [["5", "0", "536870912", '"GPU-10111213-1415-1617-1819-1a1b1c1d1e1f" "Fake Max 100"'],
              ["5", "1", "1073741824", '"GPU-20212223-2425-2627-2829-2a2b2c2d2e2f" "Fake Max 200"']])


def case_report():
    _, trace = run("matrix", "handle")
    names = [d["name"] for d in json.loads(trace.tool("report", "--json").out)["devices"]]
    mt.check({"xpu:0", "xpu:1"} <= set(names), "devices are %s" % names)


def case_pool():
    """PyTorch's blocks for XPU lie in what Level Zero gave, on the device of that number."""
    where = folder()
    fakecuda.cc("-shared", "-fPIC", "-o", where + "/libc10.so", fakecuda.SOURCES + "/c10.c", "-Wl,-soname,libc10.so")
    fakecuda.cc("-o", where + "/blocks", SOURCES + "/blocks.c", where + "/libc10.so", where + "/libze_loader.so.1")
    _, trace = run("blocks")
    report = "c10_reportMemoryUsageToProfiler"
    got = [(e["record"], e["hook"], e["size"], e["class"], e["ordinal"]) for e in raw_events(trace)]
    compare([("device-alloc", "zeMemAllocDevice", 1 << 21, 1, 1), ("device-alloc", report, 512, 10, 1),
             ("device-alloc", report, 1024, 10, 1), ("device-free", report, 0, 10, 1)], got)
    device, = json.loads(trace.tool("report", "--json").out)["devices"]
    mt.equal((device["name"], device["pool"]["peak_allocated_bytes"], device["pool"]["peak_reserved_bytes"]), ("xpu:1", 1536, 1 << 21), "pool")


def headers():
    include = os.path.join(mt.VENV, "ze/include")
    if not os.path.exists(include + "/level_zero/ze_api.h"):
        mt.skip("Level Zero's header is not installed (scripts/setup check)")
    return Headers("ze", [include])


def case_declarations():
    mt.equal(table() - headers().known(), set(), "what the header doesn't have")


def case_a_wrong_declaration_is_noticed():
    headers().check_wrong_is_noticed("zeMemFree, (ze_context_handle_t c, void *p)", "zeMemFree, (ze_context_handle_t c, const void *p)")


def case_structures():
    mt.equal(headers().layout("-DMT_ZE_VENDOR"), headers().layout(), "layout")


mt.main()
