#!/usr/bin/env python3
"""Every function of the Ascend hook table, reached in every way, is exactly one event: the stand-in's log is the truth."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import ascend
import mt

EVERY_WAY = [(shape, way) for shape in ascend.SHAPES for way in ascend.WAYS] + [("layered", way + "-twin") for way in ascend.WAYS]


def run(shape, way, mode, **more):
    found = ascend.Run([ascend.client(shape, way), mode], **more)
    mt.equal(found.done.status, 0, "status (%s)" % found.done)
    found.trace.intact()
    return found


@mt.variants(*EVERY_WAY)
def case_matrix(shape, way):
    done = run(shape, way, "all"), run(shape, way, "reset")
    for r in done:
        ascend.compare(r)
    seen = {line["function"] for r in done for line in r.log}
    missing = ascend.table(("ACL",)) - seen
    mt.check(not missing, "not tried: %s" % sorted(missing))


@mt.variants(*[(shape, way) for shape in ascend.SHAPES for way in ascend.WAYS])
def case_layers_below(shape, way):
    """Called by themselves they are events; called by the upper layer (case matrix) they are not."""
    found = run(shape, way, "low")
    ascend.compare(found)
    missing = ascend.table(("LOW",)) - {line["function"] for line in found.log}
    mt.check(not missing, "not tried: %s" % sorted(missing))
    device, pinned = found.trace.report["devices"], found.trace.report["pinned"]
    mt.equal(([d["live_bytes"] for d in device], pinned["live_bytes"]), ([0] * len(device), 0), "left alive")


@mt.variants(*EVERY_WAY)
def case_dladdr_names_the_real_library(shape, way):
    """MindSpore looks for "cann" in the path of the library that dladdr(aclrtMalloc) names: same output as without the shim."""
    found = run(shape, way, "where")
    mt.equal(found.done.out.count("/cann/lib64/lib"), 6, "answers that name the stand-in in %r" % found.done.out)


@mt.variants(*ascend.SHAPES)
def case_threads(shape):
    ascend.compare(run(shape, "handle", "threads"))


@mt.variants(*ascend.SHAPES)
def case_fork(shape):
    found = run(shape, "linked", "fork")
    ascend.compare(found)
    mt.equal(len({line["pid"] for line in found.log}), 2, "processes in the log")
    mt.equal(len({(d["process"], d["uuid"]) for d in found.devices()}), 2, "device records: one of each process")


@mt.variants(*ascend.SHAPES)
def case_exit_handlers(shape):
    """What is allocated and freed in an exit handler, and after aclFinalize, is there."""
    ascend.compare(run(shape, "handle", "finalize"))


@mt.variants(*EVERY_WAY)
def case_out_of_memory(shape, way):
    found = run(shape, way, "oom")
    ascend.compare(found)
    events = next(iter(found.events().values()))
    places = [i for i, e in enumerate(events) if e[0] == "fail"]
    asked = [events[i][4] for i in places]
    mt.equal(asked, [3111649280, 90 << 20, 900 << 20], "bytes of the failed requests")
    infos = [events[i - 1] for i in places if events[i - 1][0] == "info"]
    mt.equal([(e[3], e[4], e[5]) for e in infos], [("NPU-0", 60 << 20, 100 << 20)] * 2, "free and total of the current device")
    stacks = [r for r in found.records("device-fail") if r["node"] == 0]
    mt.check(not stacks, "a failure has no stack")


@mt.variants(*ascend.SHAPES)
def case_huge_pages_run_out_first(shape):
    """The driver's first attempt fails, the second succeeds: one allocation and no failure."""
    found = run(shape, "linked", "huge", MEMTRACE_STANDIN_HUGE="1")
    ascend.compare(found)
    mt.equal([e[0] for e in next(iter(found.events().values()))], ["info", "alloc", "free"], "events")


def case_other_errors_are_no_lack_of_memory():
    command = [ascend.client("flat", "linked"), "huge"]
    found = ascend.Run(command, MEMTRACE_STANDIN_FAIL="aclrtMalloc:1:507899")
    ascend.compare(found)
    mt.equal([e[0] for e in next(iter(found.events().values())) if e[0] == "fail"], [], "failures")


def case_failed_free_leaves_the_block():
    found = ascend.Run([ascend.client("layered", "linked"), "huge"], MEMTRACE_STANDIN_FAIL="aclrtFree:1:207002")
    ascend.compare(found)
    mt.equal([e[0] for e in next(iter(found.events().values()))], ["info", "alloc", "free", "undo"], "events")


def case_device_records():
    found = run("flat", "linked", "all")
    first = [d for d in found.devices() if d["ordinal"] == 0][0]
    mt.equal((first["backend"], first["total"], first["uuid"], first["name"]), (2, 100 << 20, "NPU-0", "Ascend910B2"), "npu:0")
    start = next(iter(found.events().values()))[0]
    mt.equal((start[0], start[3], start[4], start[5]), ("info", "NPU-0", 100 << 20, 100 << 20), "free and total when it was first set")


def case_every_device_has_a_size():
    """npu:1 is first used by a thread whose current device is npu:0, which can't ask for its size."""
    found = run("flat", "linked", "sizes")
    mt.equal({d["uuid"]: d["total"] for d in found.devices()}["NPU-1"], 0, "what is known at first")
    ascend.compare(found)
    mt.equal({d["name"]: d["total_bytes"] for d in found.trace.report["devices"]}["npu:1"], 200 << 20, "what the report says")


def case_physical_numbers():
    """npu:0 of a process is what ASCEND_RT_VISIBLE_DEVICES says, and in a container what it was given."""
    found = ascend.Run([ascend.client("layered", "handle"), "threads"], devices="50M,60M,100M,200M", ASCEND_RT_VISIBLE_DEVICES="2,3",
                       MEMTRACE_STANDIN_FIRST="4")
    mt.equal({d["ordinal"]: d["uuid"] for d in found.devices()}, {0: "NPU-6", 1: "NPU-7"}, "devices")
    ascend.compare(found, first=4)


def case_no_ascend_no_symbol():
    """Where the library isn't loaded nothing looks as if it were."""
    code = "import ctypes; print([hasattr(ctypes.CDLL(None), n) for n in ('aclrtMalloc', 'aclrtMallocImpl', 'rtMalloc', 'halMemAlloc')])"
    done = mt.shimmed([mt.python(), "-c", code])
    mt.equal(done.out.strip(), "[False, False, False, False]", "symbols found")


def case_neighbours():
    """Two processes on one device: both are in its account when the second runs out of memory, which then adds up."""
    found = run("flat", "linked", "neighbours")
    ascend.compare(found)
    row, = found.trace.report["devices"]
    mt.equal((row["peak_bytes"], row["num_ooms"], row["ooms"][0]["free_bytes"]), (70 << 20, 1, 30 << 20), "peak, failures, free")
    mt.equal(sorted(p["bytes"] for p in row["processes"]), [30 << 20, 40 << 20], "bytes of the processes")
    ledger = row["ooms"][0]["ledger"]
    mt.equal((ledger["total"], ledger["other_own"], ledger["free"], ledger["unexplained"]), (100 << 20, 70 << 20, 30 << 20, 0), "ledger")


def case_neighbour_that_is_not_recorded():
    """What somebody else holds is a row: free is what the device says."""
    env, library = ascend.settings(), ascend.library()
    holder = ("import ctypes, sys\nacl = ctypes.CDLL(%r)\nacl.aclrtSetDevice(0)\np = ctypes.c_void_p()\n"
              "print(acl.aclrtMalloc(ctypes.byref(p), ctypes.c_size_t(45 << 20), 0), flush=True)\nsys.stdin.read()\n" % library)
    with subprocess.Popen([mt.python(), "-c", holder], env=mt.clean_env(**env), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as held:
        mt.equal(held.stdout.readline(), "0\n", "the neighbour's allocation")
        done = mt.shimmed([ascend.client("flat", "linked"), "crowded"], env=env)
        held.stdin.close()
    mt.equal(done.status, 0, "status (%s)" % done)
    row, = done.trace.intact().report["devices"]
    oom = row["ooms"][0]
    mt.equal((oom["requested_bytes"], oom["free_bytes"], oom["total_bytes"]), (60 << 20, 25 << 20, 100 << 20), "asked, free, total")
    ledger = oom["ledger"]
    mt.equal(ledger["other_own"] + (ledger["other_processes"] or 0) + ledger["free"] + ledger["unexplained"], 100 << 20, "sum of the ledger")
    mt.equal((ledger["other_own"], (ledger["other_processes"] or 0) + ledger["unexplained"]), (30 << 20, 45 << 20), "own, the neighbour's")


@mt.variants("local", "global")
def case_other_libraries_with_such_names(how):
    """Their functions are called with what they are given, and return what they return."""
    trace = mt.same([mt.program("halnames"), mt.program("libhalnames.so"), how])
    mt.equal([e for e in trace.report["devices"]], [], "devices")


def sums(log, device):
    """Peak and end of what the stand-in has charged the process for."""
    charged = [line["charged"] for line in log if line["device"] == device and line["op"] in ("alloc", "free", "reset", "dereference")]
    return max(charged, default=0), charged[-1] if charged else 0


@mt.variants(*[(shape, mode) for shape in ascend.SHAPES for mode in ("all", "threads", "reset")])
def case_report_has_the_same_sums(shape, mode):
    found = run(shape, "handle", mode)
    devices = {d["uuid"]: d for d in found.trace.report["devices"]}
    for number in (0, 1):
        want = sums(found.log, number)
        have = devices.get("NPU-%d" % number, {"peak_bytes": 0, "live_bytes": 0})
        mt.equal((have["peak_bytes"], have["live_bytes"]), want, "peak and end of NPU-%d" % number)
    pinned = sum(line["bytes"] for line in found.log if line["op"] == "alloc" and
                 (line["kind"] == "pinned" or (line["kind"] == "physical" and line["device"] < 0)))
    mt.equal(found.trace.report["pinned"]["allocated_bytes"], pinned, "pinned memory")


mt.main()
