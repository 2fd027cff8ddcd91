#!/usr/bin/env python3
"""What the recorder sees of the system, against /proc, against programs that touch known amounts, and against files made here."""
# timeout: 300
import contextlib
import os
import re
import signal
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import golden_traces
import mt
import records
from cgroup import Cgroup
import samplesfile
from sampled import PROGRAM, Running, rows

sys.path.insert(0, os.path.join(mt.TOP, "scripts"))
import decode

MIB = 1 << 20
DECODE = os.path.join(mt.TOP, "scripts/decode.py")
LEDGER = ("live", "kept", "pinned", "mapped_files", "shared", "shm_files", "other_processes", "page_cache", "kernel", "free", "unexplained")


def near(got, want, slack, what):
    mt.between(want - slack, got, want + slack, what)


def adds_up(ledger):
    mt.equal(sum(ledger[k] for k in LEDGER), ledger["total_bytes"], "sum of the ledger")
    mt.check(all(ledger[k] >= 0 for k in LEDGER[:-1]), "a row is negative: %s" % ledger)


def case_processes_are_as_proc_says():
    run = Running("anon", 64, "untouched", 32, "heap", 48, "freed", 40, "file", 8, "shm", 16, "lock", 4, "until", 0).ready()
    run.seen("pss", count=3)
    status, rollup = run.proc("status"), run.proc("smaps_rollup")
    trace = run.end()
    found = [r["fields"] for r in rows(trace, "process", run.pid) if r["traced"] and r["mono_ns"] >= run.ready_ns]
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
    run = Running("anon", 96, "untouched", 64, "heap", 48, "freed", 60, "shm", 24, "until", 0).ready()
    trace = run.seen("pss").end()
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


EXPLAINED = "MemFree", "Buffers", "Cached", "SwapCached", "AnonPages", "Slab", "KernelStack", "PageTables", "Percpu"


def meminfo():
    with open("/proc/meminfo") as file:
        return {line.split(":")[0]: int(line.split()[1]) * 1024 for line in file}


@contextlib.contextmanager
def watched_meminfo():
    """What it said meanwhile: others may take and give back gigabytes within a second."""
    seen, over = [meminfo()], threading.Event()

    def watch():
        while not over.wait(0.01):
            seen.append(meminfo())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        over.set()
        watcher.join()
        seen.append(meminfo())


def case_machine_is_as_meminfo_says():
    run = Running("anon", 16, "until", 0).ready()
    with watched_meminfo() as seen:
        run.seen("rss")
    after = seen[-1]
    machine = [r["fields"] for r in rows(run.trace, "machine") if r["mono_ns"] >= run.ready_ns][0]
    system = run.end().report["system"]
    mt.equal(system["memory_bytes"], after["MemTotal"])
    for field, key in (("available", "MemAvailable"), ("free", "MemFree"), ("cached", "Cached"), ("anon", "AnonPages")):
        values = [one[key] for one in seen]
        mt.between(min(values) - (1 << 30), machine[field], max(values) + (1 << 30), field)
    mt.equal(machine["swap_total"], after["SwapTotal"])
    shm = os.statvfs("/dev/shm")
    mt.equal(machine["shm_total"], shm.f_blocks * shm.f_frsize)
    ledger = system["ledger"]
    adds_up(ledger)
    # what the kernel itself has no row for: a balloon's pages, drivers' own
    rest = [one["MemTotal"] - sum(one[key] for key in EXPLAINED) for one in seen]
    mt.between(min(rest) - after["MemTotal"] // 20, ledger["unexplained"], max(rest) + after["MemTotal"] // 20, "unexplained")


def dirty(found, pid, from_ns):
    """(time, private_dirty) where a process was looked at closely."""
    return [(r["mono_ns"], r["fields"]["private_dirty"]) for r in found
            if r["kind"] == "process" and r["pid"] == pid and r["mono_ns"] >= from_ns and "private_dirty" in r["fields"]]


def case_shared_pages_count_once():
    """A forked child shares what its parent has, until it writes to it: half of it, without any allocation."""
    run = Running("cow", 64, "until", 0).ready("READY", "CHILD")
    pids = run.pids
    run.sampled(lambda found: all(dirty(found, pid, run.ready_ns) for pid in pids), "both while they share all")
    run.tell()
    child = run.ready("COPIED").pid
    mt.equal(child, pids[1])
    run.sampled(lambda found: all(dirty(found, pid, run.ready_ns) for pid in pids), "both after the child has written")
    trace = run.stop()
    report = trace.report
    ledger = report["system"]["ledger"]
    adds_up(ledger)
    children = [p for p in trace.processes if p["ppid"] == trace.processes[0]["pid"]]
    mt.equal([p["pid"] for p in children], [child])
    near(children[0]["resident"]["rss_bytes"], 64 * MIB, 8 * MIB, "resident of the child")
    near(ledger["live"] + ledger["kept"], (64 + 32) * MIB, 4 * MIB, "private memory of both at the peak")
    near(ledger["copied"], 32 * MIB, 4 * MIB, "of it copied by the child")
    copied = [value for _, value in dirty(rows(trace), child, 0)]
    near(max(copied), 32 * MIB, 3 * MIB, "what the child copied on write")
    near(min(copied), 0, 3 * MIB, "what it had copied before")
    mt.between(0, children[0]["map"]["live_bytes"], MIB, "mapped by the child itself")


def case_fast_growth_is_looked_at_more_often():
    if os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") > 30 << 30:
        mt.skip("the machine is too large for it to be fast")
    for _ in range(4):  # on a busy machine the recorder may come too late for a wave
        run = Running("waves", 700).ready()
        mt.until(run.trace.recorder, "a recorder")
        time.sleep(6)
        times = [r["mono_ns"] / 1e9 for r in rows(run.end(), "machine")]
        gaps = [b - a for a, b in zip(times, times[1:])][1:-1]
        if any(g < 0.5 for g in gaps) and any(g > 0.9 for g in gaps):
            return
    mt.fail("gaps between samples: %s" % gaps)


def samples_size(run):
    path = os.path.join(run.output, "samples")
    return os.path.getsize(path) if os.path.exists(path) else 0


def comes_at_once(run, cause, kind, limit):
    """What CAUSE brings is in the file within LIMIT seconds, not after the ten that it would take otherwise, and it is of that moment. On a
    machine that is busy one of ten times must do."""
    tries = []
    for _ in range(10):
        before, when = samples_size(run), time.clock_gettime(time.CLOCK_MONOTONIC)
        cause()
        mt.until(lambda: samples_size(run) != before, "what a failure brings", pause=0.01)
        took = time.clock_gettime(time.CLOCK_MONOTONIC) - when
        after = [r["mono_ns"] / 1e9 - when for r in rows(run.trace, kind)]
        if took < limit and any(0 <= t <= took for t in after):
            return
        tries.append((took, after[-3:]))
    mt.fail("seconds until it was in the file, and of the samples since: %s" % tries)


def case_failures_are_sampled_at_once():
    run = Running("anon", 8, "until", 0, supervised=True).ready().seen("rss")
    comes_at_once(run, run.fail, "machine", 0.6)
    run.end()


def blocks(run):
    """(first, last) of the blocks of samples that are in the file."""
    with open(os.path.join(run.output, "samples"), "rb") as file:
        data, at, found = file.read(), 32, []
    while at + 40 <= len(data):
        stored, _, first, last = struct.unpack_from("<IIQQ", data, at + 8)
        found.append((first, last))
        at += 40 + stored
    return found


def case_a_killed_recorder_loses_ten_seconds_at_most():
    """A block is written by the sample that finds it ten seconds long; what is in the file outlives the recorder."""
    run = Running("anon", 8, "until", 0).ready()
    mt.until(lambda: samples_size(run) > 40, "the first samples in the file")
    os.kill(run.trace.recorder(), signal.SIGKILL)
    times = [r["mono_ns"] for r in rows(run.trace, "process", run.pid)]
    (first, last), *more = blocks(run)
    run.end()
    mt.equal(more, [])
    mt.between(10e9, last - first, 1e15, "ns of the block")
    mt.check(len(times) > 2 and times[-2] - first < 10e9, "the samples of the block %d to %d: %s" % (first, last, times))


def case_a_new_recorder_goes_on():
    run = Running("anon", 8, "until", 0, supervised=True).ready().seen("rss")
    os.kill(run.trace.recorder(), signal.SIGKILL)
    mt.until(lambda: not run.trace.recorder(), "the end of the recorder")
    before = len(rows(run.trace, "machine"))
    path = os.path.join(run.output, "samples")
    with open(path, "ab") as file:
        file.write(b"MTSB torn")  # what a recorder may leave that is killed while it writes
    mt.equal(len(rows(run.trace, "machine")), before, "samples read of a torn file")
    second = subprocess.Popen([mt.MEMTRACE, "record", run.output])
    run.sampled(lambda found: sum(r["kind"] == "machine" for r in found) >= before + 2, "the second recorder")
    run.end()
    second.wait(60)
    mt.check(before, "the first recorder had no samples")
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
    run = Running("anon", 20, "cow", 20, "shm", 20, "until", 0).ready("READY", "CHILD")
    same_as_decoder(run.seen("pss", count=3).end())


# ---- control groups ---------------------------------------------------------------------------------------------


def case_ledger_of_a_cgroup():
    """Its recorder is outside, as in a job whose cgroup is the program's alone."""
    with Cgroup(256 * MIB) as group:
        run = Running("file", 40, "anon", 64, "heap", 32, "until", 0, group=group).ready()
        system = run.seen("pss").end().report["system"]
        mt.equal(run.child.returncode, 0)
        ledger = system["ledger"]
        mt.equal((system["limit_bytes"], ledger["of"], ledger["total_bytes"]), (256 * MIB, "cgroup", 256 * MIB))
        mt.equal(ledger["estimated"], False)
        adds_up(ledger)
        near(ledger["live"], 96 * MIB, 12 * MIB, "live")  # calloc of what the file is written from is live, too
        near(ledger["mapped_files"], 40 * MIB, 4 * MIB, "mapped_files")
        near(ledger["unexplained"], 0, 4 * MIB, "unexplained")
        mt.equal(system["oom_kills"], 0)
        mt.between(0, ledger["page_cache"], 30 * MIB, "page_cache")


def case_who_the_oom_killer_killed():
    with Cgroup(64 * MIB) as group:
        run = Running("anon", 20, "heap", 34, "until", 0, "grow", 300, "hold", 5, group=group).ready()
        trace = run.seen("pss").end()
        mt.equal(run.child.returncode, 128 + signal.SIGKILL)
        system, process = trace.report["system"], trace.process("resident")
        mt.equal((process["exit"]["kind"], process["exit"]["code"]), ("signal", 9))
        mt.equal(process["exit"]["oom_killed"], "yes")
        mt.equal(system["oom_kills"], 1)
        mt.equal(system["limit_bytes"], 64 * MIB)
        adds_up(system["ledger"])
        mt.between(40 * MIB, system["ledger"]["live"], 64 * MIB, "live when it was killed")
        limit = [v for v in trace.report["verdicts"] if v["kind"] == "limit"]
        mt.equal(len(limit), 1, "verdicts of a limit")
        mt.between(54 * MIB, limit[0]["bytes"], 64 * MIB, "in use when it was killed")
        text = trace.tool("report").out
        mt.check("the kernel killed 1" in text, "the report does not say so: %s" % text)


def killed_with_its_recorder(used, group):
    """All of a control group at once, as memory.oom.group does; when the recorder has seen what it had."""
    run = Running("anon", 10, "heap", used, "until", 0, program=group.command([PROGRAM])).ready()
    mt.until(lambda: run.trace.recorder() and any(r["fields"].get("rss_anon", 0) > (used + 9) * MIB for r in rows(run.trace, "process", run.pid)), "a look")
    for pid in (run.trace.recorder(), run.pid):
        os.kill(pid, signal.SIGKILL)
    killed_ns, trace = time.clock_gettime_ns(time.CLOCK_MONOTONIC), run.end()
    mt.between(0, killed_ns - rows(trace)[-1]["mono_ns"], 5e9, "age of the last look")
    same_as_decoder(trace)
    return trace


def killed_by_the_kernel(trace, name):
    """So the report has it: likely. Of the only verdict what it says."""
    text, (limit,) = trace.tool("report").out, [v for v in trace.report["verdicts"] if v["device"] == "host"]
    mt.equal((limit["kind"], limit["certainty"], trace.report["status"], trace.process(name)["exit"]["oom_killed"]), ("limit", "medium", "problem", "likely"))
    mt.check(" perhaps killed by the kernel\n" in text, text)
    return limit["evidence"]


def case_all_is_killed_at_once():
    with Cgroup(128 * MIB) as group:
        trace = killed_with_its_recorder(106, group)
        near(trace.report["system"]["ledger"]["live"], 116 * MIB, 2 * MIB, "live when it was killed")
        killed_by_the_kernel(trace, "resident")


ASKS_AND_DIES = """
import os, select, sys
print("READY", os.getpid(), flush=True)
while not select.select([0], [], [], 0.1)[0]:
    bytes(100000)  # gets it a recorder
recorder = int(sys.stdin.readline())
last = bytes(200 << 20)
os.kill(recorder, 9)
os.kill(os.getpid(), 9)
"""


def case_all_is_killed_before_anybody_looks():
    """What it asked for last is known from its own events; here it did not take it, or the kernel would have killed it."""
    with Cgroup(128 * MIB) as group:
        run = Running(program=group.command([mt.python(), "-c", ASKS_AND_DIES])).ready()
        mt.until(lambda: run.trace.recorder() and rows(run.trace, "process", run.pid), "a look")
        run.tell(str(run.trace.recorder()))
        said = killed_by_the_kernel(run.end(), "python")
        found = re.search(r"heaps got ([\d.]+) MiB", said)
        mt.check(found, said)
        mt.between(199.8, float(found[1]), 201, "MiB that it got at last, but for what was alive at the look")


def case_all_is_killed_at_once_with_room():
    """By somebody."""
    with Cgroup(128 * MIB) as group:
        trace = killed_with_its_recorder(44, group)
        mt.equal((trace.report["verdicts"], trace.process("resident")["exit"]["oom_killed"]), ([], "no"))
    path = os.path.join(trace.path, "samples.open")
    with open(path, "rb") as file:
        whole = file.read()
    for damaged in (whole[:-1], whole[:60] + bytes([whole[60] ^ 1]) + whole[61:], whole[:16] + b"\1" + whole[17:], whole[:20], b""):
        with open(path, "wb") as file:
            file.write(damaged)
        mt.equal(rows(trace), [], "what a damaged block says")
        mt.equal(list(decode.sample_lines(trace.path)), [], "... to the decoder")
    mt.equal(trace.tool("check").status, 0)


def case_no_block_stays_open():
    run = Running("anon", 10, "until", 0).ready()
    mt.until(lambda: os.path.exists(os.path.join(run.output, "samples.open")), "an open block")
    looks = lambda trace: [(r["mono_ns"], r["fields"]) for r in rows(trace, "process", run.pid)]
    before = looks(run.trace)
    trace = run.end()
    mt.equal(sorted(os.listdir(run.output)), ["%d-0.trace" % run.pid, "samples", "session"])
    mt.equal(looks(trace)[:len(before)], before)


def case_a_killed_process_had_what_it_had():
    """Its last event may be long before its death and its fullest moment; what it had is in the ledger all the same."""
    run = Running("heap", 20, "until", 0, "later", 150, "hold", 300, supervised=True).ready().seen("rss")
    run.child.stdin.close()
    run.sampled(lambda found: max(r["fields"]["rss_anon"] for r in found if r["kind"] == "process" and r["traced"]) > 170 * MIB, "the rest")
    os.kill(run.pid, signal.SIGKILL)
    ledger = run.end().report["system"]["ledger"]
    mt.between(165 * MIB, ledger["live"], 172 * MIB, "live")
    near(ledger["kept"], 0, 5 * MIB, "kept")


def case_killed_by_somebody_else():
    """The same death, and no kill was counted; on a machine where nobody else is killed either."""
    root = mt.scratch("root")
    os.mkdir(os.path.join(root, "proc"))
    with open(os.path.join(root, "proc/vmstat"), "w") as file:
        file.write("pswpin 0\npswpout 0\noom_kill 7\n")
    run = Running("anon", 20, "until", 0, env={"MEMTRACE_PROC_ROOT": root}).ready().seen("rss")
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
    run = Running("anon", 20, "until", 0, env={"MEMTRACE_PROC_ROOT": root}).ready()
    os.makedirs(os.path.join(root, "proc/%d" % run.pid))
    with open(os.path.join(root, "proc/%d/cgroup" % run.pid), "w") as file:
        file.write("0::/job/step\n")
    run.sampled(lambda found: any(r["kind"] == "cgroup" and r["text2"] == "/job/step" for r in found), "the container")
    fake_kernel(root, 3000000, 3, 1500000256)
    run.sampled(lambda found: any(r["kind"] == "machine" and r["fields"]["swap_free"] == 3000000 * 1024 for r in found), "less swap")
    fake_kernel(root, 4000000, 4, 1600000000)
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
import ctypes, os, select, sys
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
while True:
    while not select.select([sys.stdin], [], [], 0.01)[0]:
        bytearray(10000)
    if not sys.stdin.readline():
        break
    assert rt.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(64 << 30)) == 2
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
    neighbour = subprocess.Popen([mt.python(), script, "100", "200"], env=mt.clean_env(**env), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    neighbour.stdout.readline()
    try:
        run = Running(300, 50, program=(mt.python(), script), env=env).ready("FREE")
        run.sampled(lambda found: sum(r["kind"] == "device-process" for r in found) >= 4, "all devices")
        comes_at_once(run, run.tell, "device", 0.4)
        found = rows(run.trace)
        trace = run.end()
    finally:
        neighbour.kill()
        neighbour.wait()
    pid = run.pid
    free, total = (int(w) for w in run.lines[-1].split()[2:4])
    devices = {}
    for row in (r for r in found if r["kind"] == "device"):
        devices.setdefault(row["text"], []).append(row)
    mt.equal(len(devices), 2, "devices: %s" % list(devices))
    sizes = {r[0]["fields"]["total"] for r in devices.values()}
    mt.equal(sizes, {2 << 30, 1 << 30})
    users = {}
    for row in (r for r in found if r["kind"] == "device-process"):
        users[row["text"], row["pid"]] = row
    second = [uuid for uuid in devices if devices[uuid][0]["fields"]["total"] == total][0]
    first = [uuid for uuid in devices if uuid != second][0]
    # in a container the driver's numbers may be the host's, so there only traced processes have one
    other = neighbour.pid if os.stat("/proc/self/ns/pid").st_ino == 0xEFFFFFFC else 0
    want = {(first, pid): 364, (second, pid): 114, (first, other): 164, (second, other): 264}
    mt.equal({k: r["fields"]["bytes"] // MIB for k, r in users.items()}, want, "MiB of processes")
    mt.equal({k[1]: r["traced"] for k, r in users.items()}, {pid: True, other: False})
    mt.equal(devices[second][-1]["fields"]["free"], free)
    report = trace.report
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


def case_a_device_that_was_given_back_is_no_sample():
    """From the driver's end to the process's own its memory is free to the driver, and live in the trace."""
    import gpu
    script = os.path.join(mt.scratch("cuda"), "cuda.py")
    with open(script, "w") as file:  # handlers run last first: on_exit's, sleep(exit status), after the driver's
        file.write("import ctypes, sys\nctypes.CDLL(None).on_exit(ctypes.CDLL(None).sleep, None)\n" + CUDA + "take(0, 100)\nsys.exit(3)\n")
    run = Running(300, 50, program=(mt.python(), script), env=gpu.environment(devices="2G,1G", context="64M")).ready("FREE")
    held = lambda found: [r for r in found if r["kind"] == "device" and r["fields"].get("free") == (2 << 30) - 364 * MIB]
    run.sampled(held, "the device")
    recorder = run.trace.recorder()
    os.kill(recorder, signal.SIGSTOP)
    time.sleep(1)  # so that the look after the driver's end is nearer to the peak than the one before
    run.child.stdin.close()
    time.sleep(0.5)
    os.kill(recorder, signal.SIGCONT)
    run.sampled(lambda found: any(r["kind"] == "device" and r["fields"].get("free") == 2 << 30 for r in found), "the device without it")
    run.child.wait(mt.WAIT)
    run.trace.settle()
    first = next(d for d in run.trace.report["devices"] if d["total_bytes"] == (2 << 30))
    mt.equal((first["ledger"]["free"], first["ledger"]["unexplained"]), ((2 << 30) - 464 * MIB, 0))


@mt.variants("ours as it dies", "one that came")
def case_who_is_listed_only_afterwards(who):
    """After a failure the driver lists a process that was not there before: no neighbour where there was no room for it."""
    trace, session, info = made("gpu")
    uuid, used = "GPU-6d742d73-7461-6e64-2d69-6e0000000000", 84 * MIB  # segments of 20 MiB, 64 MiB of somebody's
    mine, came = ("device-process", 1, info.pid, info.pid, uuid, "mine"), who == "one that came"
    later = ("device-process", 1, 77, 77, uuid, "other") if came else ("device-process", 1, 0, info.pid, uuid, "")
    file = samplesfile.SamplesFile()
    for ms, subject, size in ((1, mine, (20 if came else 84) * MIB), (500, later, (64 if came else 84) * MIB)):
        file.time(session.start_mono_ns + ms * 1000000)
        file.add(("device", 1, 0, 0, uuid, ""), total=1 << 30, used=used, free=(1 << 30) - used)
        file.add(subject, bytes=size, known=1)
    file.flush()
    file.write(trace.path)
    ledger = trace.json("report")["devices"][0]["ledger"]
    mt.equal((ledger["other_processes"], ledger["unexplained"]), (64 * MIB, 0) if came else (0, 0), "other processes, unexplained")


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


def case_shares_that_were_not_measured_are_said_to_be_estimates():
    """As the recorder does it: a close look at a process is rare. Of two equal moments that with the look counts. What came
    since a look is the process's own, whatever it shared then."""
    for look_at, part, grows, want in ((1, 1, 0, (2, False, 100 * MIB)), (0, 2, 10 * MIB, (3, True, 70 * MIB))):
        trace, session, info = made()
        file = samplesfile.SamplesFile()
        mine = ("process", info.pid, info.boot_start, 1, "golden", "/")
        for i in range(3):
            rss = 100 * MIB + i * grows
            look = dict(pss=rss // part, pss_anon=rss // part, pss_file=0, pss_shmem=0, anonymous=rss) if i == look_at else {}
            file.time(session.start_mono_ns + (i + 1) * 10**9)
            file.add(mine, rss=rss, rss_anon=rss, rss_file=0, rss_shmem=0, swap=0, **look)
            file.add(("machine",), total=1 << 30, free=512 << 20, anon=400 << 20, shmem=0, cached=0, swap_total=0, swap_free=0)
        file.write(trace.path)
        ledger = trace.json("report")["system"]["ledger"]
        mt.equal((round(ledger["at_s"]), ledger["estimated"], ledger["live"] + ledger["kept"]), want, "moment, estimated, private memory")


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
    values = dict(magic=records.decode.SAMPLES_MAGIC, stored_bytes=len(stored), plain_bytes=len(content), first_ns=10**12, last_ns=2 * 10**12)
    return records.sealed(records.decode.SAMPLES_BLOCK, stored, **dict(values, part=part, **head))


def case_nonsense_with_a_right_checksum():
    trace, _, _ = made()
    v = records.varint
    subject = v(1) + v(1) + v(0) * 3 + v(0) + v(0)
    wrong = {
        "no such item": v(9), "kind 0": v(1) + v(0) * 6, "kind 7": v(1) + v(7) + v(0) * 5, "text too long": v(1) + v(1) + v(0) * 3 + v(5000),
        "text with NUL": v(1) + v(1) + v(0) * 3 + v(2) + b"a\0" + v(0), "figures of nothing": v(3) + v(0) + v(1) + v(5),
        "field 40": subject + v(3) + v(0) + v(1 << 40) + v(1), "no fields": subject + v(3) + v(0) + v(0),
        "half figures": subject + v(3) + v(0) + v(3) + v(1), "gone before": v(4) + v(0), "far future": v(2) + v(1 << 60),
        "negative": subject + v(3) + v(0) + v(1) + v(1), "huge": subject + v(3) + v(0) + v(1) + v((1 << 60) * 2),
        "varint without end": b"\x80" * 30,
    }
    head = records.samples_head()
    blocks = {name: patched(plain) for name, plain in wrong.items()}
    blocks.update({"part 5": patched(subject, part=5), "sizes": patched(subject, plain_bytes=1 << 30), "time": patched(subject, first_ns=5, last_ns=4),
                   "less": patched(subject, plain_bytes=1), "more": patched(subject, plain_bytes=500)})
    for name, block in blocks.items():
        with open(os.path.join(trace.path, "samples"), "wb") as out:
            out.write(head + block)
        done = damaged(trace, "dump", "--samples")
        mt.check(done.status == 3 and done.err.count("\n") == 1 and "samples" in done.err, "%s: %s" % (name, done))
        mt.equal(damaged(trace, "report", "--force").status, 0, name)


def gives_back(how):
    """The program's own figures of both moments, and what report says, once both were sampled."""
    run = Running(how, 96, program=(os.path.join(mt.BUILD, "tests/programs/givesback"),)).ready()
    run.seen("rss_anon")
    run.tell()
    run.ready("FREED").seen("rss_anon")
    peak, end = (int(next(line for line in run.lines if line.startswith(word)).split()[2]) for word in ("READY", "FREED"))
    return peak - end, run.end()


@mt.variants("kept", "trimmed", "mapped", "untouched")
def case_where_freed_memory_went(how):
    to_kernel, trace = gives_back(how)
    freed = trace.report["processes"][0]["host"]["freed_since_peak"]
    mt.between(96 * MIB, freed["bytes"], 97 * MIB, "freed")
    mt.check(freed["error_bytes"] < 2 * MIB, "error: %s" % freed)
    near(freed["to_kernel_bytes"], to_kernel, freed["error_bytes"], "back to the kernel")
    want = {"kept": (0, 96, 0), "trimmed": (96, 0, 0), "mapped": (96, 0, 0), "untouched": (0, 0, 96)}[how]
    for key, mib in zip(("to_kernel_bytes", "in_allocators_bytes", "untouched_bytes"), want):
        near(freed[key], mib * MIB, 4 * MIB, key)
    near(freed["to_kernel_bytes"] + freed["in_allocators_bytes"] + freed["untouched_bytes"], freed["bytes"], freed["error_bytes"], "sum")


mt.main(at_once=4)
