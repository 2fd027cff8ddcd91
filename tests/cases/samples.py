#!/usr/bin/env python3
"""What the recorder sees of the system, against /proc, against programs that touch known amounts, and against files made here."""
# timeout: 300
import json
import os
import signal
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import golden_traces
import mt
from cgroup import Cgroup
import samplesfile

sys.path.insert(0, os.path.join(mt.TOP, "scripts"))
import decode

MIB = 1 << 20
PROGRAM = mt.program("resident")
DECODE = os.path.join(mt.TOP, "scripts/decode.py")
LEDGER = ("live", "kept", "pinned", "mapped_files", "shared", "shm_files", "other_processes", "page_cache", "kernel", "free", "unexplained")


def near(got, want, slack, what):
    mt.between(want - slack, got, want + slack, what)


def rows(trace, kind=None, pid=None):
    done = trace.tool("dump", "--samples", "--json")
    mt.equal(done.status, 0, "status of %s" % done)
    found = [json.loads(line) for line in done.out.splitlines()]
    return [r for r in found if r["record"] == "sample" and kind in (None, r["kind"]) and pid in (None, r["pid"])]


def adds_up(ledger):
    mt.equal(sum(ledger[k] for k in LEDGER), ledger["total_bytes"], "sum of the ledger")
    mt.check(all(ledger[k] >= 0 for k in LEDGER[:-1]), "a row is negative: %s" % ledger)


class Running:
    """The program under the shim until it is ready, and what /proc says of it."""

    def __init__(self, *arguments, env=None, supervised=False):
        self.output = os.path.join(mt.scratch("trace"), "t")
        command = [PROGRAM, *map(str, arguments)]
        environment = mt.shim_env(self.output, **(env or {}))
        if supervised:
            command = [mt.MEMTRACE, "run", "-o", self.output, "--", *command]
            environment = mt.clean_env(**(env or {}))
        self.child = subprocess.Popen(command, env=environment, cwd=mt.scratch(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.lines, self.trace = [], mt.Trace(self.output)

    def ready(self):
        while not self.lines or not self.lines[-1].startswith("READY"):
            line = self.child.stdout.readline().decode()
            mt.check(line, "the program ended: %s" % self.lines)
            self.lines.append(line.rstrip())
        self.pid = int(self.lines[-1].split()[1])
        return self

    def proc(self, name, pid=None):
        fields = {}
        with open("/proc/%d/%s" % (pid or self.pid, name)) as file:
            for line in file:
                words = line.replace(":", " ").split()
                if len(words) > 1 and words[1].isdigit():
                    fields[words[0]] = int(words[1]) * 1024
        return fields

    def end(self):
        self.child.stdout.read()
        self.child.stdout.close()
        self.child.wait()
        return self.trace.settle()


def case_processes_are_as_proc_says():
    run = Running("anon", 64, "untouched", 32, "heap", 48, "freed", 40, "file", 8, "shm", 16, "lock", 4, "hold", 3).ready()
    time.sleep(1)
    status, rollup = run.proc("status"), run.proc("smaps_rollup")
    trace = run.end()
    found = [r["fields"] for r in rows(trace, "process", run.pid) if r["traced"]]
    mt.check(len(found) >= 3, "%d samples in 3 s" % len(found))
    last = found[-1]
    for field, key in (("rss", "VmRSS"), ("rss_anon", "RssAnon"), ("rss_file", "RssFile"), ("rss_shmem", "RssShmem"), ("size", "VmSize"),
                       ("locked", "VmLck"), ("rss_peak", "VmHWM"), ("swap", "VmSwap")):
        near(last[field], status[key], MIB, field)
    rolled = [f for f in found if "pss" in f][-1]
    for field, key in (("pss", "Pss"), ("pss_anon", "Pss_Anon"), ("pss_shmem", "Pss_Shmem"), ("private_dirty", "Private_Dirty"),
                       ("anonymous", "Anonymous")):
        near(rolled[field], rollup[key], MIB, field)
    mt.equal(last["threads"], 1)
    mt.equal(last["locked"], 4 * MIB)
    mappings = {(r["text"], r["fields"]["size"] // MIB) for r in rows(trace, "mapping", run.pid)}
    mt.check(any(text.startswith("/dev/zero") and size == 16 for text, size in mappings), "no shared mapping among %s" % mappings)


def case_ledger_knows_what_was_touched():
    """anon + heap + lock are live, most of what was freed is kept; untouched memory is neither."""
    run = Running("anon", 96, "untouched", 64, "heap", 48, "freed", 60, "shm", 24, "hold", 3).ready()
    trace = run.end()
    ledger, process = trace.report["system"]["ledger"], trace.process("resident")
    adds_up(ledger)
    near(ledger["live"], 144 * MIB, 2 * MIB, "live")
    near(ledger["kept"], 60 * MIB, 3 * MIB, "kept")
    near(ledger["not_resident"], 64 * MIB, MIB, "not_resident")
    near(ledger["shared"], 24 * MIB, MIB, "shared")
    near(process["rss_peak_bytes"], (96 + 48 + 60 + 24) * MIB, 8 * MIB, "rss_peak_bytes")
    mt.equal(process["exit"]["oom_killed"], "no")
    # the kernel and the loader map what no hook sees, and the heap's freed part is the break's
    near(process["unseen_map_bytes"], 60 * MIB + 48 * MIB, 20 * MIB, "unseen_map_bytes")


def case_machine_is_as_meminfo_says():
    run = Running("anon", 16, "hold", 2).ready()
    meminfo = {}
    with open("/proc/meminfo") as file:
        for line in file:
            meminfo[line.split(":")[0]] = int(line.split()[1]) * 1024
    trace = run.end()
    system = trace.report["system"]
    mt.equal(system["memory_bytes"], meminfo["MemTotal"])
    machine = rows(trace, "machine")[-1]["fields"]
    for field, key in (("available", "MemAvailable"), ("free", "MemFree"), ("cached", "Cached"), ("anon", "AnonPages")):
        near(machine[field], meminfo[key], 2 << 30, field)
    mt.equal(machine["swap_total"], meminfo["SwapTotal"])
    shm = os.statvfs("/dev/shm")
    mt.equal(machine["shm_total"], shm.f_blocks * shm.f_frsize)
    ledger = system["ledger"]
    adds_up(ledger)
    near(ledger["unexplained"], 0, meminfo["MemTotal"] // 20, "unexplained")


def case_shared_pages_count_once():
    """A forked child shares what its parent has, until it writes to it: half of it, without any allocation."""
    run = Running("cow", 64, "hold", 6).ready()
    trace = run.end()
    ledger = trace.report["system"]["ledger"]
    adds_up(ledger)
    children = [p for p in trace.processes if p["ppid"] == trace.processes[0]["pid"]]
    mt.equal(len(children), 1)
    near(children[0]["resident"]["rss_bytes"], 64 * MIB, 8 * MIB, "resident of the child")
    near(ledger["live"] + ledger["kept"], (64 + 32) * MIB, 4 * MIB, "private memory of both at the peak")
    near(ledger["copied"], 32 * MIB, 4 * MIB, "of it copied by the child")
    parent = rows(trace, "process", trace.processes[0]["pid"])[-1]["mono_ns"]  # when it ends the rest is the child's alone
    samples = [r["fields"]["private_dirty"] for r in rows(trace, "process", children[0]["pid"])
               if "private_dirty" in r["fields"] and r["mono_ns"] <= parent]
    near(max(samples), 32 * MIB, 3 * MIB, "what the child copied on write")
    near(min(samples), 0, 3 * MIB, "what it had copied before")
    mt.between(0, children[0]["map"]["live_bytes"], MIB, "mapped by the child itself")


def case_fast_growth_is_looked_at_more_often():
    if os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") > 30 << 30:
        mt.skip("the machine is too large for it to be fast")
    run = Running("hold", 1, "anon", 700, "hold", 1)
    run.end()
    times = [r["mono_ns"] / 1e9 for r in rows(run.trace, "machine")]
    gaps = [b - a for a, b in zip(times, times[1:])]
    mt.check(any(g < 0.5 for g in gaps[1:-1]), "gaps between samples: %s" % gaps)
    mt.check(max(gaps) < 1.5, "gaps between samples: %s" % gaps)


def last_block_end(path):
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def case_failures_are_sampled_at_once():
    """The shim counts failed device allocations in the session; here the test does."""
    run = Running("anon", 8, "hold", 4, supervised=True).ready()
    path, offset = os.path.join(run.output, "samples"), mt.session_offset("failures")
    time.sleep(1.5)
    before = last_block_end(path)
    with open(os.path.join(run.output, "session"), "r+b") as file:
        file.seek(offset)
        file.write(struct.pack("<I", 1))
    when = time.clock_gettime(time.CLOCK_MONOTONIC)
    while last_block_end(path) == before and time.clock_gettime(time.CLOCK_MONOTONIC) < when + 2:
        time.sleep(0.01)
    took = time.clock_gettime(time.CLOCK_MONOTONIC) - when
    run.end()
    mt.check(took < 0.6, "a failure's sample was in the file %.2f s later" % took)
    times = [r["mono_ns"] / 1e9 for r in rows(run.trace, "machine")]
    mt.check(any(when - 0.05 < t < when + 0.4 for t in times), "no sample near the failure: %s" % [t - when for t in times])


def case_a_killed_recorder_loses_ten_seconds_at_most():
    run = Running("anon", 8, "hold", 14).ready()
    time.sleep(12.5)
    recorder = run.trace.recorder()
    mt.check(recorder, "no recorder")
    os.kill(recorder, signal.SIGKILL)
    now = time.clock_gettime(time.CLOCK_MONOTONIC)
    time.sleep(0.1)
    times = [r["mono_ns"] / 1e9 for r in rows(run.trace, "process", run.pid)]
    mt.check(times, "nothing is left")
    run.end()
    mt.between(0, now - times[-1], 10.6, "seconds lost")


def case_a_new_recorder_goes_on():
    run = Running("anon", 8, "hold", 6, supervised=True).ready()
    time.sleep(1.5)
    with open(os.path.join(run.output, "session"), "r+b") as file:
        file.seek(mt.session_offset("failures"))
        file.write(struct.pack("<I", 1))  # has what there is written
    time.sleep(0.5)
    os.kill(run.trace.recorder(), signal.SIGKILL)
    time.sleep(0.2)
    before = len(rows(run.trace, "machine"))
    path = os.path.join(run.output, "samples")
    with open(path, "ab") as file:
        file.write(b"MTSB torn")  # what a recorder may leave that is killed while it writes
    mt.equal(len(rows(run.trace, "machine")), before, "samples read of a torn file")
    second = subprocess.Popen([mt.MEMTRACE, "record", run.output])
    run.end()
    second.wait(20)
    after = rows(run.trace, "machine")
    mt.check(before and len(after) >= before + 2, "%d samples, then %d" % (before, len(after)))
    same_as_decoder(run.trace)


def same_as_decoder(trace):
    done = trace.tool("dump", "--samples")
    other = mt.execute([sys.executable, DECODE, "--samples", trace.path])
    mt.equal(done.status, 0, "status of %s" % done)
    mt.equal(other.status, 0, "status of %s" % other)
    mt.check(done.out == other.out, "dump and decode.py differ: %s" %
             [pair for pair in zip(done.out.splitlines(), other.out.splitlines()) if pair[0] != pair[1]][:1])
    mt.check(done.out, "no samples")


def case_the_decoder_agrees():
    same_as_decoder(Running("anon", 20, "cow", 20, "shm", 20, "hold", 3).ready().end())


# ---- control groups ---------------------------------------------------------------------------------------------


def run_in(group, *arguments):
    """The program in the cgroup, its recorder outside (as in a job whose cgroup is the program's alone)."""
    output = os.path.join(mt.scratch("trace"), "t")
    done = mt.execute([mt.MEMTRACE, "run", "-o", output, "--", *group.command([PROGRAM, *map(str, arguments)])], env=mt.clean_env())
    done.trace = mt.Trace(output)
    return done


def case_ledger_of_a_cgroup():
    with Cgroup(256 * MIB) as group:
        done = run_in(group, "file", 40, "anon", 64, "heap", 32, "hold", 3)
        mt.equal(done.status, 0, done.err)
        system = done.trace.report["system"]
        ledger = system["ledger"]
        mt.equal((system["limit_bytes"], ledger["of"], ledger["total_bytes"]), (256 * MIB, "cgroup", 256 * MIB))
        adds_up(ledger)
        near(ledger["live"], 96 * MIB, 12 * MIB, "live")  # calloc of what the file is written from is live, too
        near(ledger["mapped_files"], 40 * MIB, 4 * MIB, "mapped_files")
        near(ledger["unexplained"], 0, 4 * MIB, "unexplained")
        mt.equal(system["oom_kills"], 0)
        mt.between(0, ledger["page_cache"], 30 * MIB, "page_cache")


def case_who_the_oom_killer_killed():
    with Cgroup(64 * MIB) as group:
        done = run_in(group, "anon", 20, "hold", 1, "grow", 300, "hold", 5)
        mt.equal(done.status, 128 + signal.SIGKILL, "status of %s" % done)
        system, process = done.trace.report["system"], done.trace.process("resident")
        mt.equal((process["exit"]["kind"], process["exit"]["code"]), ("signal", 9))
        mt.equal(process["exit"]["oom_killed"], "yes")
        mt.equal(system["oom_kills"], 1)
        mt.equal(system["limit_bytes"], 64 * MIB)
        adds_up(system["ledger"])
        mt.between(40 * MIB, system["ledger"]["live"], 64 * MIB, "live when it was killed")
        text = done.trace.tool("report").out
        mt.check("OOM killer" in text, "the report does not say so: %s" % text)


def case_a_killed_process_had_what_it_had():
    """Its last event may be long before its death and its fullest moment; what it had is in the ledger all the same."""
    run = Running("hold", 1, "heap", 20, "later", 400, supervised=True).ready()
    time.sleep(5)
    os.kill(run.pid, signal.SIGKILL)
    ledger = run.end().report["system"]["ledger"]
    mt.check(ledger["at_s"] > 3, "the fullest moment is said to be at %s s" % ledger["at_s"])
    mt.check(ledger["live"] > 100 * MIB, "live is %d" % ledger["live"])
    near(ledger["kept"], 0, 5 * MIB, "kept")


def case_killed_by_somebody_else():
    """The same death, and no kill was counted."""
    run = Running("anon", 20, "hold", 9).ready()
    time.sleep(1.5)
    os.kill(run.pid, signal.SIGKILL)
    trace = run.end()
    mt.equal(trace.process("resident")["exit"]["oom_killed"], "no")


# ---- machines we don't have ---------------------------------------------------------------------------------------


def fake_kernel(root, swap_free, kills, current):
    """A container of version 2 with a limit of 2 GiB in one of 1.5 GiB, swap, and pressure."""
    files = {
        "proc/meminfo": "MemTotal: 33554432 kB\nMemFree: 1000000 kB\nMemAvailable: 1500000 kB\nBuffers: 1000 kB\nCached: 900000 kB\n"
                        "SwapCached: 5 kB\nShmem: 100000 kB\nSwapTotal: 4194304 kB\nSwapFree: %d kB\nAnonPages: 28000000 kB\n" % swap_free,
        "proc/vmstat": "pswpin 100\npswpout %d\noom_kill %d\n" % (4194304 - swap_free, kills),
        "proc/pressure/memory": "some avg10=1.00 avg60=0.00 avg300=0.00 total=5000000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=200\n",
        "proc/self/mountinfo": "30 25 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup rw\n",
        "sys/fs/cgroup/job/memory.max": "1610612736\n",
        "sys/fs/cgroup/job/memory.current": "%d\n" % current,
        "sys/fs/cgroup/job/memory.high": "max\n",
        "sys/fs/cgroup/job/memory.swap.max": "max\n",
        "sys/fs/cgroup/job/memory.swap.current": "12288\n",
        "sys/fs/cgroup/job/memory.stat": "anon 1000001536\nfile 300003328\nkernel 20000768\nshmem 100001792\nfile_mapped 4096\n"
                                         "file_dirty 0\ninactive_file 150003712\n",
        "sys/fs/cgroup/job/memory.events": "low 0\nhigh 0\nmax 7\noom 2\noom_kill %d\n" % kills,
        "sys/fs/cgroup/job/step/memory.max": "2147483648\n",
        "sys/fs/cgroup/job/step/memory.stat": "anon 5\n",
    }
    for name, text in files.items():
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + ".new", "w") as file:
            file.write(text)
        os.rename(path + ".new", path)


def case_swap_limits_and_counters_of_another_machine():
    """MEMTRACE_PROC_ROOT shows the sampler files made here: a limit two levels up, swap, kills."""
    root = mt.scratch("root")
    fake_kernel(root, 4194304, 3, 900000768)
    run = Running("anon", 20, "hold", 6, env={"MEMTRACE_PROC_ROOT": root}).ready()
    os.makedirs(os.path.join(root, "proc/%d" % run.pid))
    with open(os.path.join(root, "proc/%d/cgroup" % run.pid), "w") as file:
        file.write("0::/job/step\n")
    time.sleep(2.5)
    fake_kernel(root, 3000000, 3, 1500000256)
    time.sleep(1.5)
    fake_kernel(root, 4000000, 4, 1600000000)
    time.sleep(1.2)
    os.kill(run.pid, signal.SIGKILL)
    trace = run.end()
    same_as_decoder(trace)
    system, process = trace.report["system"], trace.process("resident")
    mt.equal(system["memory_bytes"], 32 << 30)
    mt.equal(system["limit_bytes"], 1610612736)
    mt.equal(system["available_min_bytes"], 1500000 * 1024)
    mt.equal(system["swap_peak_bytes"], (4194304 - 3000000) * 1024)
    mt.equal(system["swap_start_bytes"], 0)
    mt.equal(system["oom_kills"], 1)
    mt.equal(process["exit"]["oom_killed"], "yes")
    group = [r for r in rows(trace, "cgroup") if r["text"] == "/job"][-1]
    mt.equal(group["text2"], "/job/step")
    want = {"limit": 1610612736, "current": 1600000000 // 1024 * 1024, "anon": 1000001536, "file": 300003328 - 100001792 - 1024 + 1024,
            "shmem": 100001792 // 1024 * 1024, "kernel": 20000768, "high": 0, "swap_limit": 0, "swap": 12288, "limit_hits": 7, "ooms": 2,
            "oom_kills": 4}
    for field, value in want.items():
        near(group["fields"][field], value, 1024 if value > 1 << 20 else 0, field)
    ledger = system["ledger"]
    adds_up(ledger)
    mt.equal((ledger["of"], ledger["cgroup"], ledger["total_bytes"]), ("cgroup", "/job", 1610612736))
    near(ledger["other_processes"], 1000001536 - 20 * MIB, 3 * MIB, "other_processes")


# ---- devices --------------------------------------------------------------------------------------------------------

CUDA = """
import ctypes, os, sys, time
rt = ctypes.CDLL("libcudart.so.13")
keep = []
def take(device, mib):
    p = ctypes.c_void_p()
    assert rt.cudaSetDevice(device) == 0 and rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(mib << 20)) == 0
    keep.append(p)
take(0, int(sys.argv[1]))
take(1, int(sys.argv[2]))
free, total = ctypes.c_size_t(), ctypes.c_size_t()
rt.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total))
print("FREE", os.getpid(), free.value, total.value, flush=True)
end = time.time() + float(sys.argv[3])
while time.time() < end:
    time.sleep(0.01)
    bytearray(10000)
if len(sys.argv) > 4:
    p = ctypes.c_void_p()
    print("FAILED", rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(64 << 30)), time.clock_gettime_ns(time.CLOCK_MONOTONIC), flush=True)
    time.sleep(0.5)
"""


def case_devices_as_their_library_says():
    """Two devices, an untraced neighbour, a process's bytes on each; at once after a failed allocation. The stand-in's own NVML
    is read by the recorder; what it must say is the programs' own account: blocks plus 64 MiB of context each."""
    import gpu
    env = gpu.environment(devices="2G,1G", context="64M")
    folder = mt.scratch("cuda")
    script = os.path.join(folder, "cuda.py")
    with open(script, "w") as file:
        file.write(CUDA)
    neighbour = subprocess.Popen([mt.python(), script, "100", "200", "60"], env=mt.clean_env(**env), stdout=subprocess.PIPE)
    neighbour.stdout.readline()
    try:
        done = mt.shimmed([mt.python(), script, "300", "50", "3", "fail"], env=env)
    finally:
        neighbour.kill()
        neighbour.wait()
    mt.equal(done.status, 0, done.err[-300:])
    pid = int(done.out.split()[1])
    free, total = (int(w) for w in done.out.split()[2:4])
    devices = {}
    for row in rows(done.trace, "device"):
        devices.setdefault(row["text"], []).append(row)
    mt.equal(len(devices), 2, "devices: %s" % list(devices))
    sizes = {r[0]["fields"]["total"] for r in devices.values()}
    mt.equal(sizes, {2 << 30, 1 << 30})
    users = {}
    for row in rows(done.trace, "device-process"):
        users[row["text"], row["pid"]] = row
    second = [uuid for uuid in devices if devices[uuid][0]["fields"]["total"] == total][0]
    first = [uuid for uuid in devices if uuid != second][0]
    # in a container the driver's numbers may be the host's, so there only traced processes have one
    other = neighbour.pid if os.stat("/proc/self/ns/pid").st_ino == 0xEFFFFFFC else 0
    want = {(first, pid): 364, (second, pid): 114, (first, other): 164, (second, other): 264}
    mt.equal({k: r["fields"]["bytes"] // MIB for k, r in users.items()}, want, "MiB of processes")
    mt.equal({k[1]: r["traced"] for k, r in users.items()}, {pid: True, other: False})
    failed = int(done.out.split()[-1])
    while_it_ran = [r for r in devices[second] if r["mono_ns"] <= failed]
    mt.equal(while_it_ran[-1]["fields"]["free"], free)
    mt.check(any(-0.05e9 < r["mono_ns"] - failed < 0.3e9 for r in devices[second]), "no sample at the failure: %s" %
             [(r["mono_ns"] - failed) / 1e9 for r in devices[second]])
    report = done.trace.report
    mt.equal({d["uuid"] for d in report["devices"]}, set(devices), "uuids of the report and of NVML")


# ---- files made here ---------------------------------------------------------------------------------------------


ASAN = os.path.join(mt.BUILD, "asan/memtrace")


def damaged(trace, *arguments):
    """memtrace on a damaged trace: the AddressSanitizer build where there is one."""
    env = mt.clean_env(ASAN_OPTIONS="exitcode=99:allocator_may_return_null=1", UBSAN_OPTIONS="halt_on_error=1:exitcode=99")
    return mt.execute([ASAN if os.path.exists(ASAN) else mt.MEMTRACE, *arguments, trace.path], env=env)


def made(name="final"):
    """A golden trace, its session, and the first process's info."""
    trace = mt.Trace(golden_traces.unpack(name, mt.scratch("made")))
    session = decode.SESSION.read(decode.load(os.path.join(trace.path, "session")))
    names = sorted(n[:-6] for n in trace.files(".trace"))
    process = decode.Process(session, trace.path, names[0])
    return trace, session, process.info


def case_a_file_made_by_hand_is_read():
    trace, session, info = made()
    file = samplesfile.SamplesFile(parts=2)
    mine = ("process", info.pid, info.boot_start, 1, "golden", "/a")
    start = session.start_mono_ns
    for i in range(10):
        file.time(start + i * 1000000)
        file.add(mine, rss=(10 + i) << 20, rss_anon=(9 + i) << 20, swap=(i % 3) << 20, rss_file=1 << 20, rss_shmem=0, size=50 << 20,
                 rss_peak=(12 + i) << 20)
        file.add(("process", 77, 5, 0, "neighbour"), rss=(100 - i) << 20)
        file.add(("machine",), total=1 << 30, free=512 << 20, available=(700 - i) << 20, cached=200 << 20, anon=150 << 20, shmem=0,
                 swap_total=100 << 20, swap_free=(100 - i) << 20, oom_kills=5)
        file.flush()
    file.gone(("process", 77, 5, 0, "neighbour"))
    file.write(trace.path)
    same_as_decoder(trace)
    found = rows(trace, "process", info.pid)
    mt.equal([r["fields"]["rss"] for r in found], [(10 + i) << 20 for i in range(10)])
    mt.equal([r["mono_ns"] for r in found], [start + i * 1000000 for i in range(10)])
    report = trace.json("report")
    process = [p for p in report["processes"] if p["pid"] == info.pid][0]
    mt.equal((process["rss_peak_bytes"], process["swap_peak_bytes"]), (21 << 20, 2 << 20))
    system = report["system"]
    mt.equal((system["memory_bytes"], system["available_min_bytes"], system["swap_peak_bytes"]), (1 << 30, 691 << 20, 9 << 20))
    ledger = system["ledger"]
    adds_up(ledger)
    mt.equal((ledger["other_processes"], ledger["page_cache"], ledger["free"]), ((150 - 9 - 8) << 20, 199 << 20, 512 << 20))
    mt.equal(report["system"]["other_processes"][0]["rss_bytes"], 92 << 20)


def case_damage_is_said_or_harmless():
    """Every cut, and bits flipped: status 0 or 3 and one line; a cut in the middle of a block loses that block alone."""
    trace, session, info = made()
    file = samplesfile.SamplesFile()
    ends = []
    for i in range(4):
        file.time(session.start_mono_ns + i * 1000000)
        file.add(("process", info.pid, info.boot_start, 1, "golden", "/"), rss=i << 20)
        file.add(("machine",), total=1 << 30, free=i << 20)
        file.flush()
        ends.append(len(file.data))
    file.write(trace.path)
    whole, path = bytes(file.data), os.path.join(trace.path, "samples")
    for size in [*range(0, 40), *range(40, len(whole), 7), *ends]:
        with open(path, "wb") as out:
            out.write(whole[:size])
        done = damaged(trace, "dump", "--samples")
        blocks = sum(end <= size for end in ends)
        if 0 < size < 32:
            mt.equal((done.status, done.err.count("\n")), (3, 1), "cut at %d: %s" % (size, done))
        else:
            mt.equal((done.status, done.out.count("\n")), (0, 2 * blocks), "cut at %d: %s" % (size, done))
    for bit in range(0, 8 * len(whole), 29):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        with open(path, "wb") as out:
            out.write(data)
        done = damaged(trace, "dump", "--samples")
        mt.check(done.status in (0, 3) and (done.status == 0 or done.err.count("\n") == 1 and "samples" in done.err), "bit %d: %s" % (bit, done))
        forced = damaged(trace, "dump", "--samples", "--force")
        mt.equal(forced.status, 0, "with --force, bit %d: %s" % (bit, forced))


def patched(content, part=0, **head):
    """A block whose checksum is right and that says `content`."""
    stored = samplesfile.raw_frame(content, part == 0)
    values = dict(magic=0x4253544D, crc=0, stored=len(stored), plain=len(content), first=10**12, last=2 * 10**12, part=part, reserved=0)
    values.update(head)
    block = bytearray(struct.pack("<IIIIQQII", *values.values()) + stored)
    struct.pack_into("<I", block, 4, samplesfile.zlib.crc32(bytes(block)))
    return bytes(block)


def case_nonsense_with_a_right_checksum():
    trace, _, _ = made()
    v = samplesfile.varint
    subject = v(1) + v(1) + v(0) * 3 + v(0) + v(0)
    wrong = {
        "no such item": v(9), "kind 0": v(1) + v(0) * 6, "kind 7": v(1) + v(7) + v(0) * 5, "text too long": v(1) + v(1) + v(0) * 3 + v(5000),
        "text with NUL": v(1) + v(1) + v(0) * 3 + v(2) + b"a\0" + v(0), "figures of nothing": v(3) + v(0) + v(1) + v(5),
        "field 40": subject + v(3) + v(0) + v(1 << 40) + v(1), "no fields": subject + v(3) + v(0) + v(0),
        "half figures": subject + v(3) + v(0) + v(3) + v(1), "gone before": v(4) + v(0), "far future": v(2) + v(1 << 60),
        "negative": subject + v(3) + v(0) + v(1) + v(1), "huge": subject + v(3) + v(0) + v(1) + v((1 << 60) * 2),
        "varint without end": b"\x80" * 30,
    }
    head = struct.pack("<8sIIQQ", b"MTSAMP1\n", 1, 32, 0, 0)
    blocks = {name: patched(plain) for name, plain in wrong.items()}
    blocks.update({"part 5": patched(subject, part=5), "sizes": patched(subject, plain=1 << 30), "time": patched(subject, first=5, last=4),
                   "less": patched(subject, plain=1), "more": patched(subject, plain=500)})
    for name, block in blocks.items():
        with open(os.path.join(trace.path, "samples"), "wb") as out:
            out.write(head + block)
        done = damaged(trace, "dump", "--samples")
        mt.check(done.status == 3 and done.err.count("\n") == 1 and "samples" in done.err, "%s: %s" % (name, done))
        mt.equal(damaged(trace, "report", "--force").status, 0, name)


mt.main()
