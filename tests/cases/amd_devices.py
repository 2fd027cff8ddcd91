#!/usr/bin/env python3
"""What the recorder sees of AMD's devices, against the files that it reads: a tree made here, with programs on the fake of HIP."""
# timeout: 300
import base64
import contextlib
import gzip
import json
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import fakehip
import mt
from fakeamd import KFD, Device, Tree, start
from sampled import rows

MIB, GIB = 1 << 20, 1 << 30
FIRST = 0x5d6c5fcd8f3a07c1  # what the fake's hipDeviceGetUuid says of hip:0
CONTEXT = 30 * MIB
OURS = os.stat("/proc/self/ns/pid").st_ino == 0xEFFFFFFC  # in a container the driver's numbers are another namespace's


@contextlib.contextmanager
def neighbours(count):
    """Processes that nobody traces."""
    children = [subprocess.Popen(["sleep", "1000"]) for _ in range(count)]
    try:
        yield [c.pid for c in children]
    finally:
        for child in children:
            child.kill()
            child.wait()


def device(trace, name="hip:0"):
    return next(d for d in trace.report["devices"] if d["name"] == name)


def rest(ledger):
    return {key: ledger[key] for key in ("other_own", "other_processes", "free", "unexplained")}


def others(found):
    return {p["pid"]: p["bytes"] for p in found["processes"] if not p["traced"]}


def name_of(pid):
    return "%d %s" % (pid, "sleep" if OURS else "?")


def page_data(trace):
    path = os.path.join(mt.scratch("page"), "page.html")
    mt.equal(mt.execute([mt.MEMTRACE, "html", "-q", "-o", path, trace.path]).status, 0, "status of html")
    with open(path) as file:
        return json.loads(gzip.decompress(base64.b64decode(re.search('id="data">([^<]*)<', file.read()).group(1))))


def looked_at(run):
    """Enough looks at it to know that none finds a device."""
    run.sampled(lambda found: len([r for r in found if r["kind"] == "process"]) > 3, "the process")


def stands_still(run, number, used, users):
    """What nobody explains, and contexts, are told where nothing moves a little before and after a look."""
    run.shows(number, used, users)
    time.sleep(1)
    run.fail()
    run.shows(number, used, users)


def gauge(run, name):
    done = subprocess.Popen([mt.MEMTRACE, "live", "--json", run.output], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        for line in done.stdout:
            look = json.loads(line)
            if any(p["device_bytes"] for p in look["processes"]):
                return next((g for g in look["gauges"] if g["name"] == name), None)
    finally:
        done.kill()
        done.communicate()
    return mt.fail("live had no look")


def case_neighbour_grows():
    """The ledger of the last peak, the screen, the page's chart and live have what the files had; and nothing has NVIDIA's names."""
    tree = Tree([Device(0, FIRST)])
    with neighbours(1) as (other,):
        run, charged = start(tree), 0
        run.take(0, 50)
        for own, theirs in ((100, 200), (110, 250), (120, 300)):
            run.shows(0, tree.use(0, {other: theirs * MIB, run.pid: charged}, more=40 * MIB), {other: theirs * MIB})
            run.take(0, own)
            charged = own * MIB + CONTEXT
            users = {other: theirs * MIB, run.pid: charged}
            used = tree.use(0, users, more=40 * MIB)
            stands_still(run, 0, used, users)
        shown = gauge(run, "hip:0")
        trace = run.end()
    mt.equal((shown["uuid"], shown["used_bytes"], shown["total_bytes"]), (tree.devices[0].uuid, used, GIB), "the gauge of live")
    found = device(trace)
    mt.equal((found["uuid"], found["total_bytes"]), (tree.devices[0].uuid, GIB))
    mt.equal(rest(found["ledger"]), {"other_own": 120 * MIB + CONTEXT, "other_processes": 300 * MIB, "free": GIB - used, "unexplained": 40 * MIB})
    mt.equal(others(found), {other: 300 * MIB}, "neighbours")
    screen = trace.tool("report", "--device", "hip:0").out
    mt.check("driver, no trace" in screen and name_of(other) + " (driver)" in screen, "the neighbour: " + screen)
    mt.check(not any(word in screen for word in ("NVML", "NVIDIA", "cuda")), "names: " + screen)
    chart = page_data(trace)["device_samples"]
    mt.equal([(s["device"], s["others"][-1], s["unexplained"][-1]) for s in chart], [("hip:0", 300 * MIB, 40 * MIB)], "the chart's last")
    mt.check(set(chart[0]["others"]) >= {200 * MIB, 250 * MIB, 300 * MIB}, "over time: %s" % chart[0]["others"])


@mt.variants("6", "7")
def case_at_a_failure(major):
    """HIP 7 says itself what is free then, before that the files do."""
    tree = Tree([Device(0, FIRST)])
    told = 12345678 if major == "7" else 300 * MIB
    with neighbours(2) as pids:
        run = start(tree, major)
        run.take(0, 100)
        users = {pids[0]: 150 * MIB, pids[1]: 250 * MIB, run.pid: 100 * MIB + CONTEXT}
        used = tree.use(0, users, more=GIB - told - sum(users.values()))
        stands_still(run, 0, used, users)
        run.refused(0, 900)
        run.shows(0, used, users)
        trace = run.end()
    failed, = device(trace)["ooms"]
    mt.equal(rest(failed["ledger"]), {"other_own": 100 * MIB + CONTEXT, "other_processes": 400 * MIB, "free": told,
                                      "unexplained": GIB - told - 500 * MIB - CONTEXT})
    mt.equal(others(device(trace)), {pids[0]: 150 * MIB, pids[1]: 250 * MIB}, "neighbours")


@mt.variants(0, 1)
def case_without_a_unique_id(domain):
    """A device is its PCI address then, and another device's memory is nobody's."""
    tree = Tree([Device(0, FIRST), Device(1, domain=domain)])
    with neighbours(1) as (other,):
        run = start(tree)
        run.take(0, 100)
        run.take(1, 300)
        users = {other: 500 * MIB, run.pid: 300 * MIB + CONTEXT}
        tree.use(0, {run.pid: 100 * MIB})
        used = tree.use(1, users, more=50 * MIB)
        stands_still(run, 1, used, users)
        trace = run.end()
    mt.equal({r["text"] for r in rows(trace, "device")}, {d.uuid for d in tree.devices.values()}, "sampled devices")
    mt.equal(device(trace, "hip:1")["uuid"], "PCI-0000:04:00.0", "what HIP calls it")
    known = {"other_own": 300 * MIB + CONTEXT, "other_processes": 500 * MIB, "free": 2 * GIB - used, "unexplained": 50 * MIB}
    unknown = {"other_own": 300 * MIB, "other_processes": None, "free": None, "unexplained": None}
    mt.equal(rest(device(trace, "hip:1")["ledger"]), unknown if domain else known)
    mt.equal(rest(device(trace, "hip:0")["ledger"])["other_processes"], 0, "others on hip:0")


@mt.variants("counted", "its files are gone")
def case_a_device_vanishes(how):
    """Its samples end, and those of the other go on. Older kernels do not count a removal."""
    tree = Tree([Device(0, FIRST), Device(1)])
    first, second = tree.devices.values()
    with neighbours(1) as (other,):
        run = start(tree)
        for number, mib in ((0, 100), (1, 200)):
            run.take(number, mib)
            users = {other: 64 * MIB, run.pid: mib * MIB}
            stands_still(run, number, tree.use(number, users), users)
        tree.remove(1, counted=how == "counted")
        run.fail()
        gone = lambda: {(r["kind"], r["text"]) for r in rows(run.trace, record="gone") if r["text"] == second.uuid}
        run.sampled(lambda found: len(gone()) == 2, "the end of a device")
        tree.use(0, {other: 128 * MIB, run.pid: 100 * MIB})
        run.shows(0, 228 * MIB, {other: 128 * MIB})
        mt.equal([gauge(run, name)["used_bytes"] for name in ("hip:0", "hip:1")], [228 * MIB, 200 * MIB], "live: of the second only what is traced")
        trace = run.end()
    mt.equal(gone() >= {("device", second.uuid), ("device-process", second.uuid)}, True, "what is gone")
    mt.equal(rest(device(trace, "hip:1")["ledger"]), {"other_own": 200 * MIB, "other_processes": 64 * MIB, "free": 2 * GIB - 264 * MIB, "unexplained": 0})
    mt.equal(first.uuid in {r["text"] for r in rows(trace, record="gone") if r["kind"] == "device"}, False, "the first is there")


def case_neighbours_end():
    """One that has ended is there no more, and nor is one that has nothing left."""
    tree = Tree([Device(0, FIRST)])
    with neighbours(2) as pids:
        run = start(tree)
        run.take(0, 100)
        users = {pids[0]: 100 * MIB, pids[1]: 150 * MIB, run.pid: 100 * MIB}
        run.shows(0, tree.use(0, users), users)
        tree.end(pids[0])
        run.shows(0, tree.use(0, {pids[1]: 0, run.pid: 100 * MIB}))
        run.take(0, 200)
        stands_still(run, 0, tree.use(0, {run.pid: 200 * MIB}), {run.pid: 200 * MIB})
        trace = run.end()
    mt.equal(rest(device(trace)["ledger"]), {"other_own": 200 * MIB, "other_processes": 0, "free": GIB - 200 * MIB, "unexplained": 0})


def number_here(pid):
    """What our /proc calls a process of another namespace."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open("/proc/%s/status" % name) as file:
            words = next(line for line in file if line.startswith("NSpid:")).split()
            if len(words) > 2 and int(words[-1]) == pid and os.readlink("/proc/%s/exe" % name) == os.path.realpath(mt.python()):
                return int(name)
    return mt.fail("no process %d" % pid)


@mt.variants("the neighbour first", "the program first")
def case_in_a_container(order):
    """The files have the machine's numbers of processes there, and none of them is that of the program."""
    unshare = [mt.need("unshare"), "-p", "-f", "--mount-proc"]
    probe = mt.plain(unshare + ["true"])
    if probe.status:
        mt.skip("unshare -p: %s" % probe.err.strip())
    tree = Tree([Device(0, FIRST)])
    with neighbours(1) as (other,):
        run = start(tree, supervised=True, outside=unshare)
        own = number_here(run.pid)
        first, second = (other, own) if order == "the neighbour first" else (own, other)
        run.take(0, 50)
        users = {other: 300 * MIB, own: 50 * MIB + CONTEXT}
        for pids in ((first,), (first, second)):
            there = {pid: users[pid] for pid in pids}
            run.shows(0, tree.use(0, there, more=40 * MIB), there)
        run.take(0, 100)
        users[own] = 100 * MIB + CONTEXT
        used = tree.use(0, users, more=40 * MIB)
        stands_still(run, 0, used, users)
        trace = run.end()
    mt.equal({r["pid"] for r in rows(trace, "device-process")}, {0}, "whose they are, as far as the recorder knows")
    found = device(trace)
    mt.equal(rest(found["ledger"]), {"other_own": 100 * MIB + CONTEXT, "other_processes": 300 * MIB, "free": GIB - used, "unexplained": 40 * MIB})
    mt.equal(others(found), {other: 300 * MIB}, "neighbours")


@mt.variants("no driver", "half of the card", "another memory", "no size", "nothing used", "more than there is", "words")
def case_left_out(what):
    """What can't be read, or is of other memory than the program's, is left out, not guessed."""
    tree = Tree([Device(0, FIRST, bank={"half of the card": GIB // 2, "another memory": 16 * GIB}.get(what))])
    folder = "sys/class/drm/renderD128/device/mem_info_vram_"
    if what == "no driver":
        tree.write(KFD + "/topology/generation_id", "")
    elif what == "no size":
        os.unlink(os.path.join(tree.root, folder + "total"))
    run = start(tree)
    run.take(0, 100)
    if what not in ("nothing used", "no size"):
        tree.use(0, {run.pid: 100 * MIB}, more=5 * GIB if what == "more than there is" else 0)
    if what == "words":
        tree.write(folder + "used", "unknown\n")
    looked_at(run)
    trace = run.end()
    mt.equal([r for r in rows(trace, "device")], [], "devices")
    mt.equal(rest(device(trace)["ledger"]), {"other_own": 100 * MIB, "other_processes": None, "free": None, "unexplained": None})


@mt.variants("no device", "HIP and no driver for it")
def case_nothing_is_opened_without_amd(what):
    """A recorder that meets no HIP opens none of AMD's files; one that does asks once for the driver, and again after ten seconds."""
    log, output = os.path.join(mt.scratch("strace"), "log"), os.path.join(mt.scratch("trace"), "t")
    code = "import time\nfor _ in range(200): bytearray(10000); time.sleep(0.01)"
    if what != "no device":
        code = "import ctypes\np = ctypes.c_void_p()\nctypes.CDLL('libamdhip64.so.7').hipMalloc(ctypes.byref(p), ctypes.c_size_t(1 << 20))\n" + code
    done = mt.plain([mt.need("strace"), "-f", "-o", log, "-e", "trace=open,openat", mt.MEMTRACE, "run", "-o", output, "--", mt.python(), "-c", code],
                    env={"LD_LIBRARY_PATH": fakehip.libraries()})
    mt.equal(done.status, 0, "status of %s" % done)
    with open(log) as file:
        asked = [line for line in file if "/kfd" in line or "/drm" in line]
    mt.equal(len(asked), 0 if what == "no device" else 1, "files of AMD's that were opened: %s" % asked)


@mt.variants("many descriptors", "few")
def case_eight_devices_and_a_hundred_processes(descriptors):
    tree = Tree([Device(n, FIRST if n == 0 else 0) for n in range(8)])
    with neighbours(99) as pids:
        run = start(tree, prefix=("prlimit", "--nofile=64:64") if descriptors == "few" else ())
        run.take(0, 100)
        want = {}
        for n in range(8):
            users = {pid: (1 + (i + n) % 5) * MIB for i, pid in enumerate(pids)} | ({run.pid: 100 * MIB} if n == 0 else {})
            want[n] = tree.use(n, users), users
        for n in range(8):
            run.shows(n, *want[n])
        stands_still(run, 0, *want[0])
        trace = run.end()
    found = device(trace)
    mt.equal(others(found), {pid: size for pid, size in want[0][1].items() if pid != run.pid}, "neighbours")
    mt.equal(rest(found["ledger"]), {"other_own": 100 * MIB, "other_processes": want[0][0] - 100 * MIB, "free": GIB - want[0][0], "unexplained": 0})


mt.main(at_once=4)
