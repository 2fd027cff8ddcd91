#!/usr/bin/env python3
"""The stand-in CUDA devices keep the books that other tests rely on."""
import collections
import json
import os
import random
import signal
import subprocess
import sys
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import gpu
import mt

MIB = 1 << 20
# What the programs below begin with: the driver by ctypes, with device 0's context current.
BEGIN = """
import ctypes, json, os, random, sys, time
from ctypes import byref, c_int, c_size_t as size, c_uint, c_ulonglong as u64, c_void_p as pointer, create_string_buffer
cuda = ctypes.CDLL("libcuda.so.1")
MIB = 1 << 20
def good(status):
    if status:
        raise SystemExit("status %d" % status)
def device(number):
    context = pointer()
    good(cuda.cuDevicePrimaryCtxRetain(byref(context), number))
    good(cuda.cuCtxSetCurrent(context))
def alloc(bytes):
    address = u64()
    status = cuda.cuMemAlloc_v2(byref(address), size(bytes))
    return status or address.value
def info():
    free, total = size(), size()
    good(cuda.cuMemGetInfo_v2(byref(free), byref(total)))
    return free.value, total.value
def say(*values):
    print(json.dumps(values), flush=True)
good(cuda.cuInit(0))
"""


def program(text, env=None, **settings):
    """Runs it, without the shim; .said has what it said."""
    done = gpu.run([sys.executable, "-c", BEGIN + text], traced=False, env=env, **settings)
    mt.equal(done.status, 0, "status of %r" % done)
    done.said = [json.loads(line) for line in done.out.splitlines()]
    return done


def start(text, folder, **settings):
    """The same, left running; it ends with its input."""
    env = mt.clean_env(**gpu.environment(folder, **settings))
    return subprocess.Popen([sys.executable, "-c", BEGIN + text], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def case_sizes_and_identity():
    text = """
nvml = ctypes.CDLL("libnvidia-ml.so.1")
good(nvml.nvmlInit_v2())
count = c_int()
good(cuda.cuDeviceGetCount(byref(count)))
for i in range(count.value):
    total, uuid, handle, name = size(), create_string_buffer(16), pointer(), create_string_buffer(64)
    good(cuda.cuDeviceTotalMem_v2(byref(total), i))
    good(cuda.cuDeviceGetUuid_v2(uuid, i))
    good(nvml.nvmlDeviceGetHandleByIndex_v2(i, byref(handle)))
    good(nvml.nvmlDeviceGetUUID(handle, name, 64))
    say(total.value, uuid.raw.hex(), name.value.decode())
"""
    said = program(text, devices="24G,1.5G,65536").said
    mt.equal([s[0] for s in said], [24 << 30, 3 << 29, 65536])
    for _, raw, text_form in said:
        mt.equal(text_form[4:].replace("-", ""), raw)
    mt.equal(len({s[1] for s in said}), 3, "different UUIDs")
    mt.equal(program(text, devices="24G,1.5G,65536").said, said, "another run")
    mt.check(program(text, devices="1G", serial=7).said[0][1] != said[0][1], "another machine's device has the same UUID")
    return said


def case_visible_devices():
    text = """
count = c_int()
good(cuda.cuDeviceGetCount(byref(count)))
say(*[(lambda t: good(cuda.cuDeviceTotalMem_v2(byref(t), i)) or t.value)(size()) for i in range(count.value)])
"""
    uuids = [s[2] for s in case_sizes_and_identity()]
    for visible, wanted in [("2,0", [65536, 24 << 30]), (uuids[1], [3 << 29]), ("%s,0" % uuids[2], [65536, 24 << 30]), ("1,9,0", [3 << 29])]:
        done = program(text, env={"CUDA_VISIBLE_DEVICES": visible}, devices="24G,1.5G,65536")
        mt.equal(done.said[0], wanted, "CUDA_VISIBLE_DEVICES=" + visible)
    done = gpu.run([sys.executable, "-c", BEGIN], traced=False, env={"CUDA_VISIBLE_DEVICES": ""})
    mt.equal(done.err.strip(), "status 100")


def case_neighbours():
    """Free shrinks by a neighbour's bytes, NVML lists it, and all comes back when it is killed."""
    folder = mt.scratch("standin")
    look = """
nvml = ctypes.CDLL("libnvidia-ml.so.1")
class Process(ctypes.Structure):
    _fields_ = [("pid", c_uint), ("bytes", u64), ("a", c_uint), ("b", c_uint)]
handle, count, list = pointer(), c_uint(16), (Process * 16)()
good(nvml.nvmlDeviceGetHandleByIndex_v2(0, byref(handle)))
good(nvml.nvmlDeviceGetComputeRunningProcesses_v3(handle, byref(count), list))
users = {list[i].pid: list[i].bytes for i in range(count.value)}
device(0)
say(users, info())
"""
    settings = {"devices": "1G", "context": "10M"}
    with start("device(0)\nfor _ in range(3): alloc(100 * MIB)\nsay(os.getpid())\nsys.stdin.read()\n", folder, **settings) as child:
        pid = json.loads(child.stdout.readline())[0]
        users, (free, total) = program(look, folder=folder, **settings).said[0]
        mt.equal(users, {str(pid): 310 * MIB})
        mt.equal(free, total - 320 * MIB)
        shifted = program(look, folder=folder, pid_shift=100000, **settings).said[0][0]
        mt.equal(shifted, {str(pid + 100000): 310 * MIB}, "another namespace's pids")
        child.send_signal(signal.SIGKILL)
    users, (free, total) = program(look, folder=folder, **settings).said[0]
    mt.equal((users, free), ({}, total - 10 * MIB), "after its death")


def case_killed_at_any_moment():
    """Whoever is killed, with the lock or without, is in nobody's way."""
    folder, rng = mt.scratch("standin"), random.Random(1)
    text = "device(0)\nsay(0)\nwhile True:\n    a = alloc(MIB)\n    cuda.cuMemFree_v2(u64(a))\n"
    for _ in range(12):
        with start(text, folder, devices="1G") as child:
            child.stdout.readline()
            time.sleep(rng.random() * 0.02)
            child.kill()
    done = program("device(0)\nsay(info())\n", folder=folder, devices="1G", context="1M")
    mt.equal(done.said[0][0], [1023 * MIB, 1024 * MIB])


def case_refusal():
    done = program("device(0)\nsay(alloc(900 * MIB) > 2, alloc(200 * MIB), alloc(100 * MIB) > 2, info())\n", devices="1G", context="20M")
    mt.equal(done.said[0], [True, 2, True, [4 * MIB, 1024 * MIB]])
    mt.equal([e["bytes"] for e in done.log if e["op"] == "fail"], [200 * MIB])


def case_granularity():
    """Small blocks share 2 MiB, larger ones are rounded up; 1 is exact."""
    text = "device(0)\nalloc(3 * MIB)\nalloc(1000)\nalloc(1000)\nsay(info())\n"
    mt.equal(program(text, devices="1G", context=0).said[0][0], [(1024 - 6) * MIB, 1024 * MIB])
    mt.equal(program(text, devices="1G", context=0, granularity=1).said[0][0][0], 1021 * MIB - 2000)


def case_the_log_adds_up():
    """At each line of the log what is charged is the sum of what was allocated and not yet freed."""
    text = """
random.seed(5)
live, handles, window = [], [], u64()
for d in (0, 1):
    device(d)
good(cuda.cuMemAddressReserve(byref(window), size(400 * MIB), size(0), u64(0), u64(0)))
free_places, mapped = list(range(200)), {}
class Properties(ctypes.Structure):
    _fields_ = [("type", c_int), ("handles", c_int), ("location_type", c_int), ("location", c_int), ("m", pointer), ("f", ctypes.c_ubyte * 8)]
class Array(ctypes.Structure):
    _fields_ = [("width", size), ("height", size), ("format", c_int), ("channels", c_uint)]
def linear():
    a = alloc(random.randrange(1, 9 * MIB))
    live.append((cuda.cuMemFree_v2, u64(a))) if a > 2 else None
def managed():
    a = u64()
    if cuda.cuMemAllocManaged(byref(a), size(random.randrange(1, MIB)), 1) == 0:
        live.append((cuda.cuMemFree_v2, a))
def pitch():
    a, p = u64(), size()
    if cuda.cuMemAllocPitch_v2(byref(a), byref(p), size(random.randrange(1, 4000)), size(300), 4) == 0:
        live.append((cuda.cuMemFree_v2, a))
def array():
    a = pointer()
    if cuda.cuArrayCreate_v2(byref(a), byref(Array(random.randrange(1, 2000), random.randrange(0, 50), 0x20, 4))) == 0:
        live.append((cuda.cuArrayDestroy, a))
def physical():
    h = u64()
    if cuda.cuMemCreate(byref(h), size(2 * MIB), byref(Properties(1, 0, 1, random.randrange(2))), u64(0)) == 0:
        handles.append(h)
def map():
    if handles and free_places:
        h, place = random.choice(handles), free_places.pop()
        good(cuda.cuMemMap(u64(window.value + place * 2 * MIB), size(2 * MIB), size(0), h, u64(0)))
        mapped[place] = True
def unmap():
    if mapped:
        place, _ = mapped.popitem()
        good(cuda.cuMemUnmap(u64(window.value + place * 2 * MIB), size(2 * MIB)))
        free_places.append(place)
def release():
    if handles:
        good(cuda.cuMemRelease(handles.pop(random.randrange(len(handles)))))
def free():
    if live:
        function, value = live.pop(random.randrange(len(live)))
        good(function(value))
for step in range(3000):
    if step % 50 == 0:
        device(step // 50 % 2)
    random.choice([linear, linear, managed, pitch, array, physical, map, unmap, release, free, free, free])()
device(1)
good(cuda.cuDevicePrimaryCtxReset_v2(1))
"""
    done = program(text, devices="300M,200M", granularity=1, context=1000000)
    charged, kinds = collections.Counter(), collections.Counter()
    for line in done.log:
        if line["kind"] in ("reservation", "pool", "process"):
            continue
        if line["op"] in ("alloc", "free"):
            # Blocks of at least 1 byte are "large" at this granularity: nothing is rounded.
            charged[line["device"]] += line["bytes"] * (1 if line["op"] == "alloc" else -1)
        kinds[line["op"], line["kind"]] += 1
        mt.equal(line["charged"], charged[line["device"]], "charged at %s" % line)
    for kind in ("linear", "managed", "array", "physical", "context"):
        mt.check(kinds["alloc", kind] and kinds["free", kind], "no %s was made and freed: %s" % (kind, kinds))
    mt.check(sum(n for (op, _), n in kinds.items() if op == "fail") > 10, "too few refusals: %s" % kinds)


def case_pools_keep_memory():
    """What is freed stays in the pool until a synchronisation, a trim, or as far as the threshold says."""
    text = """
device(0)
pool, address, keep = pointer(), u64(), u64(64 * MIB)
good(cuda.cuDeviceGetDefaultMemPool(byref(pool), 0))
def used():
    return (info()[1] - info()[0]) // MIB
def cycle():
    good(cuda.cuMemAllocAsync(byref(address), size(100 * MIB), pointer(0)))
    seen = [used()]
    good(cuda.cuMemFreeAsync(address, pointer(0)))
    seen.append(used())
    good(cuda.cuCtxSynchronize())
    return seen + [used()]
say(cycle())
good(cuda.cuMemPoolSetAttribute(pool, 4, byref(keep)))
say(cycle())
good(cuda.cuMemPoolTrimTo(pool, size(0)))
say(used(), alloc(990 * MIB) > 2)
"""
    said = program(text, devices="1G", context=0).said
    mt.equal(said, [[[100, 100, 0]], [[100, 100, 64]], [0, True]])


def case_a_pool_that_runs_short_is_refused():
    """What it has unused goes back first; where that is not enough the request fails, and nothing else."""
    text = """
device(0)
first, second = u64(), u64()
def asked(address, mib):
    return cuda.cuMemAllocAsync(byref(address), size(mib * MIB), pointer(0))
def used():
    return (info()[1] - info()[0]) // MIB
say(asked(first, 600), asked(second, 300))
good(cuda.cuMemFreeAsync(second, pointer(0)))
say(used(), asked(second, 500), used())
say(asked(second, 400), used())
"""
    said = program(text, devices="1G", context=0).said
    mt.equal(said, [[0, 0], [900, 2, 600], [0, 1000]])


def case_end_and_fork():
    """A forked child gets 3, and whoever calls after the driver's end 4."""
    text = """
device(0)
a = alloc(MIB)
if os.fork() == 0:
    say("child", alloc(MIB), cuda.cuMemFree_v2(u64(a)))
    os._exit(0)
os.wait()
"""
    mt.equal(program(text).said, [["child", 3, 3]])
    source = """
#include <stdio.h>
#include <stdlib.h>
int cuInit(unsigned), cuMemFree_v2(unsigned long long), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);
static void late(void) { printf("%d\\n", cuMemFree_v2(1)); }
int main(void)
{
	void *context;
	atexit(late); /* before the driver's own: runs after it */
	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
		return 1;
	printf("%d\\n", cuMemFree_v2(1));
	return 0;
}
"""
    binary = os.path.join(mt.scratch("late"), "late")
    subprocess.run([os.environ.get("CC", "cc").split()[0], "-x", "c", "-", "-x", "none", os.path.join(gpu.STANDIN, "libcuda.so.1"), "-o", binary],
                   input=source.encode(), check=True, stderr=subprocess.DEVNULL)
    mt.equal(gpu.run([binary], traced=False).out.split(), ["1", "4"])


def case_shared_between_processes():
    """An IPC handle opens in another process as an alias without bytes; not in its own."""
    folder = mt.scratch("standin")
    exporter = """
device(0)
handle = create_string_buffer(64)
a = alloc(50 * MIB)
good(cuda.cuIpcGetMemHandle(handle, u64(a)))
class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_ubyte * 64)]
own = cuda.cuIpcOpenMemHandle_v2(byref(u64()), Handle.from_buffer_copy(handle.raw), 1)
say(handle.raw.hex(), own)
sys.stdin.read()
"""
    importer = """
device(0)
class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_ubyte * 64)]
handle, first, second = Handle.from_buffer_copy(bytes.fromhex(os.environ["HANDLE"])), u64(), u64()
before = info()[0]
good(cuda.cuIpcOpenMemHandle_v2(byref(first), handle, 1))
good(cuda.cuIpcOpenMemHandle_v2(byref(second), handle, 1))
say(first.value == second.value, before - info()[0], cuda.cuIpcCloseMemHandle(first), cuda.cuIpcCloseMemHandle(first), cuda.cuIpcCloseMemHandle(first))
"""
    with start(exporter, folder, devices="1G") as child:
        handle, own = json.loads(child.stdout.readline())
        mt.equal(own, 201, "opening one's own")
        done = program(importer, folder=folder, env={"HANDLE": handle}, devices="1G")
        mt.equal(done.said[0], [True, 0, 0, 0, 1])
        child.stdin.close()


mt.main()
