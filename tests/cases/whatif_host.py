#!/usr/bin/env python3
"""memtrace whatif --host against real runs under that allocator. tests/long/whatif_host.py has more programs."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import heaps
import mt

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../battery"))
import trace as writer


def case_the_run_itself():
    """Replayed as it was, it has the memory that the program saw and that was sampled."""
    trace, said = heaps.recorded("arenas")
    heap = trace.json("whatif", "--host", "glibc")["heap"]
    mt.equal((heap["trust"], heap["threads"], heap["written"]), ("figures", 7, "all"))
    mt.between(0, heap["off"], 0.05, "off")
    mt.check(heap["samples"] > 1, "no samples")
    heaps.check_near({"peak": heap["run"]["peak_bytes"], "end": heap["run"]["end_bytes"]}, said, 0.05, "the run itself")
    heaps.check_near({"peak": heap["settings"][0]["peak_bytes"]}, {"peak": heap["run"]["peak_bytes"]}, 0.01, "glibc again")


@mt.variants(("large", "MALLOC_TRIM_THRESHOLD_=131072"), ("vectors", "mimalloc"))
def case_another_setting(kind, setting):
    """It makes a difference, and the one that a real run has."""
    heap, figures = heaps.replayed(kind, 1, setting)
    real = heaps.real(kind, 1, setting)
    heaps.check_near(figures, real, 0.05, "%s under %s" % (kind, setting))
    mt.check(abs(figures["end"] - heap["run"]["end_bytes"]) > 0.05 * real["end"], "no difference: %s, %s" % (figures, heap["run"]))


def case_threads_end():
    """With a thread goes what its allocator kept for it; who only looks at calls would have 160 MiB there."""
    command = [mt.program("keepers"), "arenas", "8", "20", "1"]
    said = mt.plain(command, preload=[mt.library("libjemalloc.so.2")]).out.split()
    heap = mt.supervised(command).trace.settle().json("whatif", "--host", "jemalloc")["heap"]
    mt.check(heap["run"]["end_bytes"] > 150 << 20, "glibc keeps it: %s" % heap["run"])
    mt.between(-8 << 20, heap["settings"][0]["end_bytes"] - int(said[1]), 8 << 20, "replayed less real")


def case_recorded_under_another_allocator():
    """The run's own is then that one, and glibc is another."""
    heap, figures = heaps.replayed("large", 1, "glibc", recorded_as="jemalloc")
    mt.equal(heap["trust"], "figures", "off by %s" % heap["off"])
    heaps.check_near(figures, heaps.real("large"), 0.05, "large under glibc")
    mt.check(heap["run"]["end_bytes"] > 1.05 * figures["end"], "jemalloc was not loaded: %s" % heap["run"])


def case_all_of_them():
    """Ranked by what is resident at the peak; as JSON the same figures."""
    trace = heaps.recorded("large")[0]
    done = trace.tool("whatif", "--host", "all")
    mt.equal((done.status, done.err), (0, ""))
    lines = done.out.splitlines()
    rows = [line.split("MiB")[0].split() for line in lines[lines.index(next(l for l in lines if "at the peak" in l)) + 1:] if "MiB" in line and "x" in line]
    mt.equal(" ".join(rows[0][:-1]), "the run, replayed")
    peaks = [float(row[-1]) for row in rows[1:]]
    mt.equal(peaks, sorted(peaks), "peaks")
    for name in ("MALLOC_ARENA_MAX=1", "malloc_trim", "jemalloc", "mimalloc"):
        installed = name not in heaps.LIBRARIES or os.path.exists(os.path.join(heaps.FOLDER, heaps.LIBRARIES[name]))
        mt.equal([name] in [row[:-1] for row in rows], installed, "%s is a row: %s" % (name, done.out))


@mt.variants(("MALLOC_ARENAS_MAX=2", "'MALLOC_ARENAS_MAX' is nothing that allocators know; did you mean 'MALLOC_ARENA_MAX'?"),
             ("jemaloc", "did you mean 'jemalloc'?"), ("FOO=1", "all, glibc, jemalloc"), ("/no/where.so", "/no/where.so"),
             ("MALLOC_ARENA_MAX", "nothing that allocators know"), ("", "'' is nothing that allocators know"),
             ("GLIBC_TUNABLES=glibc.cpu.x=1:glibc.malloc.arena_mx=3", "glibc has no tunable 'glibc.malloc.arena_mx'; did you mean 'glibc.malloc.arena_max'?"))
def case_wrong_settings(setting, said):
    done = heaps.recorded("large")[0].tool("whatif", "--host", setting)
    mt.equal((done.status, done.out), (2, ""), setting)
    mt.check(said in done.err and len(done.err.splitlines()) == 1, done.err)


def case_a_replay_that_does_not_agree():
    """malloc_trim() of the program itself is no call that a trace has: what it gave back is still there in the replay."""
    trace = mt.shimmed([mt.program("keepers"), "given", "12", "40", "4"]).trace.settle()
    heap = trace.json("whatif", "--host", "malloc_trim")["heap"]
    mt.equal((heap["trust"], heap["settings"]), ("nothing", []))
    mt.check(heap["off"] > 0.25 and heap["at_end"]["replayed_bytes"] > 5 * heap["at_end"]["sampled_bytes"], heap["at_end"])
    screen = mt.execute([mt.MEMTRACE, "whatif", "--host", "malloc_trim", trace.path], env=mt.clean_env(COLUMNS="60")).out
    said = " ".join(screen.split())
    mt.check("of other settings nothing can be said" in said and re.search(r"replayed and as it was: (\S+ [KMG]iB and \S+ [KMG]iB) at most, (\S+ [KMG]iB and \S+ [KMG]iB) at last", said),
             "the screen, on which no figure is cut: %s" % screen)


def copy_of(trace):
    path = os.path.join(mt.scratch("copy"), "trace")
    shutil.copytree(trace.path, path)
    return mt.Trace(path)


def case_a_trace_that_was_cut_off():
    """What is left is replayed as it was; whose samples there are went with the end, so only differences are shown."""
    whole, said = heaps.recorded("arenas")
    trace, calls = copy_of(whole), whole.json("whatif", "--host", "glibc")["heap"]["calls"]
    file = max((os.path.join(trace.path, name) for name in trace.files(".trace")), key=os.path.getsize)
    os.truncate(file, os.path.getsize(file) * 3 // 4)
    done = trace.tool("whatif", "--host", "MALLOC_ARENA_MAX=1", "--json", "--force")
    mt.equal(done.status, 0, done.err)
    heap = json.loads(done.out)["heap"]
    mt.between(0.2 * calls, heap["calls"], 0.8 * calls, "calls that are left")
    mt.equal((heap["complete"], heap["trust"], heap["samples"], len(heap["settings"])), (False, "differences", 0, 1))
    heaps.check_near({"peak": heap["run"]["peak_bytes"]}, {"peak": said["peak"]}, 0.05, "what it had at its peak, which is left")
    text = trace.tool("whatif", "--host", "glibc", "--force").out
    mt.check("INCOMPLETE: what is left is replayed" in text and "of its memory there is no sample" in text, text)
    mt.equal(trace.tool("whatif", "--host", "glibc").status, 3, "status without --force")


def case_samples_of_what_is_missing():
    """The end of the calls is missing, that of the samples is not: those agree up to there, and the others are of calls that nobody knows."""
    t = writer.Trace(os.path.join(mt.scratch("written"), "trace"))
    p = t.process(4711, ["/app/serve.py"])
    subject, count, size = t.samples.subject("PROCESS", (4711, 4711, 1), "python", "/"), 30000, 1000
    for i in range(count):
        p.at(3.0 * i / count)
        p.malloc(size)
        if i % 3000 == 1500:
            t.samples.say(p.now, subject, rss_anon=(4 << 20) + (size + 16) * i)
    t.save()
    ring, = [os.path.join(t.path, name) for name in os.listdir(t.path) if name.endswith(".ring")]
    os.truncate(ring, os.path.getsize(ring) // 2)
    done = mt.execute([mt.MEMTRACE, "whatif", "--host", "glibc", "--json", "--force", t.path])
    mt.equal(done.status, 0, done.err)
    heap = json.loads(done.out)["heap"]
    mt.between(0.4 * count, heap["calls"], 0.6 * count, "calls that are left")
    mt.equal((heap["complete"], heap["trust"]), (False, "figures"), "off by %s" % heap["off"])
    mt.between(4, heap["samples"], 6, "samples of what is left")
    mt.between(1.2, heap["at_end"]["at_s"], 1.8, "the last of them")


def case_a_folded_trace():
    """How many calls are missing is said; what was live at once is as it was, and the samples tell what the rest is worth."""
    whole = heaps.recorded("mixed")[0].json("whatif", "--host", "glibc")["heap"]
    trace = mt.fold(copy_of(heaps.recorded("mixed")[0]))
    heap = trace.json("whatif", "--host", "glibc")["heap"]
    mt.check(heap["folded"] > 1000 and heap["calls"] == whole["calls"] - 2 * heap["folded"], "folded: %s of %s calls" % (heap["folded"], whole["calls"]))
    mt.equal((heap["complete"], heap["live_peak_bytes"]), (True, whole["live_peak_bytes"]))
    mt.between(0, heap["off"], 0.25, "off")
    text = trace.tool("whatif", "--host", "glibc").out
    mt.check("allocations were folded and 0 events lost: the replay has none of them" in text.replace("\n", " "), text)


def case_sampled_stacks():
    """Every call is there."""
    whole, said = heaps.recorded("large")
    env = {"MEMTRACE_STACKS": "sample"}
    trace = mt.shimmed(heaps.command("large", 1), env=env).trace.settle()
    heaps_of = [t.json("whatif", "--host", "MALLOC_TRIM_THRESHOLD_=131072")["heap"] for t in (whole, trace)]
    mt.equal([heaps_of[1][name] for name in ("calls", "live_peak_bytes", "trust")], [heaps_of[0][name] for name in ("calls", "live_peak_bytes", "trust")])
    heaps.check_near({"peak": heaps_of[1]["run"]["peak_bytes"], "end": heaps_of[1]["run"]["end_bytes"]}, said, 0.05, "the run itself")


def case_one_question_at_a_time():
    done = heaps.recorded("large")[0].tool("whatif", "--host", "glibc", "--device-memory", "4G")
    mt.equal((done.status, done.out), (2, ""))
    mt.check("one question at a time" in done.err, done.err)


def case_what_cannot_be_replayed():
    """A forked child began with its parent's blocks."""
    done = mt.shimmed(["sh", "-c", "(%s 10 1 1; :); :" % mt.program("busy")])
    trace = done.trace.settle()
    forked = [p["pid"] for p in trace.processes if p["name"] == "sh" and p["ppid"] in [q["pid"] for q in trace.processes]]
    mt.check(forked, "no forked child: %s" % trace.processes)
    asked = trace.tool("whatif", "--host", "glibc", "--process", str(forked[-1]))
    mt.equal((asked.status, asked.out), (3, ""))
    mt.check("it was forked" in asked.err and len(asked.err.splitlines()) == 1, asked.err)


def case_more_memory_than_there_is():
    """A machine with little that is free: nothing is begun."""
    root = mt.scratch("proc")
    os.makedirs(root + "/proc")
    with open(root + "/proc/meminfo", "w", encoding="utf-8") as file:
        file.write("MemTotal: 100000 kB\nMemAvailable: 50000 kB\n")
    trace = heaps.recorded("large")[0]
    done = mt.execute([mt.MEMTRACE, "whatif", "--host", "glibc", trace.path], env=mt.clean_env(MEMTRACE_PROC_ROOT=root))
    mt.equal((done.status, done.out), (3, ""))
    mt.check("a replay may take 39.1 MiB here" in done.err, done.err)


def case_a_library_without_malloc():
    outcome, = heaps.recorded("large")[0].json("whatif", "--host", mt.library("libz.so.1"))["heap"]["settings"]
    mt.equal((outcome["failed"], outcome["peak_bytes"]), ("could not be loaded, or has no malloc", None))


SLOW = """#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <unistd.h>
void *__libc_malloc(size_t n);
static unsigned calls;
void *malloc(size_t n)
{
	if (++calls > 2000)
		pause();
	return __libc_malloc(n);
}
"""


def case_an_allocator_that_hangs():
    """Its replay is stopped, and the others' figures are there."""
    folder = mt.scratch("slow")
    with open(os.path.join(folder, "slow.c"), "w", encoding="utf-8") as file:
        file.write(SLOW)
    library = os.path.join(folder, "slow.so")
    done = mt.execute([mt.need("gcc"), "-shared", "-fPIC", "-o", library, os.path.join(folder, "slow.c")])
    mt.equal(done.status, 0, done.err)
    trace = heaps.recorded("handed")[0]
    began = time.monotonic()
    outcome, = trace.json("whatif", "--host", library)["heap"]["settings"]
    mt.equal((outcome["failed"], outcome["peak_bytes"]), ("stopped: took more than 8 times as long as the run", None))
    mt.between(5, time.monotonic() - began, 60, "s")


def case_it_does_not_outlive_memtrace():
    """Killed in the middle, memtrace leaves no child behind."""
    trace = heaps.recorded("arenas")[0]
    tool = subprocess.Popen([mt.MEMTRACE, "whatif", "--host", "all", trace.path], stdout=subprocess.DEVNULL, start_new_session=True)
    mt.until(lambda: len(mt.of_group(tool.pid)) > 1, "a child")
    tool.send_signal(signal.SIGKILL)
    tool.wait()
    mt.until(lambda: not mt.of_group(tool.pid), "its end", seconds=10)


mt.main()
