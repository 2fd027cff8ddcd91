#!/usr/bin/env python3
"""What was resident, and whose: processes with few calls, what allocators keep, limits that were met, files in /dev/shm. Programs that say
themselves what they had, each with a healthy twin."""
# timeout: 400
import json
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt
from growing import limited as ended
from cgroup import Cgroup

MIB = 1 << 20
ONCE = mt.program("once")


def near(got, want, slack, what):
    mt.between(want - slack, got, want + slack, what)


def told(done):
    """{what: (ns, bytes)} of its lines."""
    return {line.split()[0]: tuple(map(int, line.split()[1:])) for line in done.out.splitlines()}


def samples(trace, kind="process"):
    rows = [json.loads(line) for line in trace.tool("dump", "--samples", "--json").out.splitlines()]
    return [r for r in rows if r["record"] == "sample" and r["kind"] == kind and (kind != "process" or r["traced"])]


def held(trace, kind):
    return [v for v in trace.report["verdicts"] if v["kind"] == kind]


# ---- a recorder in time


@mt.variants((), ("kept",), ("pieces",))
def case_one_block_is_sampled(*end):
    """It makes two calls in all, or one for each of a few pieces within a moment. What it had meanwhile is known, as it says itself, and none of it is an allocator's."""
    done = mt.shimmed([ONCE, "512", "0", "4", *end])
    mt.equal(done.status, 0, "%r" % done)
    done.trace.settle()
    said = told(done)
    between = [r for r in samples(done.trace) if said["touched"][0] < r["mono_ns"] < said["waited"][0]]
    mt.check(len(between) >= 2, "%d samples between the touch and the end" % len(between))
    for row in between:
        near(row["fields"].get("rss", said["touched"][1]), said["touched"][1], 8 * MIB, "resident")
    ledger = done.trace.report["system"]["ledger"]
    near(ledger["live"], 512 * MIB, 6 * MIB, "live")
    mt.between(0, ledger["kept"], 8 * MIB, "kept")


def case_a_block_that_is_touched_slowly_meets_the_limit():
    """The kernel kills it at the cgroup's limit, three seconds after its only call."""
    with Cgroup(200 * MIB) as group:
        output = os.path.join(mt.scratch("trace"), "t")
        env = mt.shim_env(output)
        preload = env.pop("LD_PRELOAD")
        done = mt.execute(group.command(["env", "LD_PRELOAD=" + preload, ONCE, "400", "80", "1"]), env=env)
        mt.equal(done.status, -9, "%r" % done)
        trace = mt.Trace(output)
        trace.settle()
    mt.equal(trace.process("once")["exit"]["oom_killed"], "yes")
    limit = held(trace, "limit")
    mt.equal(len(limit), 1, "verdicts of a limit")
    near(limit[0]["bytes"], 200 * MIB, 40 * MIB, "in use")
    mt.equal(trace.report["status"], "problem")


def case_a_short_command_starts_no_recorder():
    """What asks for little, or for address space alone, and what churns through much of it within a moment."""
    for command in (["sh", "-c", "for i in 1 2 3; do echo $i; done | sort | head -1"], [sys.executable, "-S", "-c", "for i in range(50): bytes(2 << 20)"]):
        output = os.path.join(mt.scratch("trace"), "t")
        mt.equal(mt.execute(command, env=mt.shim_env(output)).status, 0)
        mt.equal([name for name in os.listdir(output) if name.endswith(".trace") or name == "samples"], [], "files of a recorder after %s" % command)


# ---- kept by allocators


KEEPERS = mt.program("keepers")


def keepers(*arguments, **env):
    done = mt.shimmed([KEEPERS, *map(str, arguments)], env=env)
    mt.equal(done.status, 0, "%r" % done)
    done.trace.settle()
    words = done.out.split()
    done.resident, done.live = int(words[1]), int(words[3])
    return done


def case_workers_that_gave_back_keep_nothing():
    """Five forked workers share what their parent has, and had a block each that went back to the kernel."""
    trace = keepers("workers", 5, 300, 350, 5).trace
    mt.equal(held(trace, "retained"), [], "retained")


def case_arenas_that_peak_in_turn_keep_it_all():
    done = keepers("arenas", 12, 56, 4)
    kept, found = done.resident - done.live, held(done.trace, "retained")
    mt.equal(len(found), 1, "verdicts of what was retained")
    near(found[0]["bytes"], kept, 0.04 * kept, "retained")
    ledger = done.trace.report["system"]["ledger"]
    # it may be of a moment at which the last thread had not freed yet: that much more was live
    near(ledger["kept"] - ledger["unseen"] + ledger["live"] - done.live, kept, 0.04 * kept, "kept in the ledger")
    mt.equal(ledger["unseen"], 0, "seen by no hook")
    check_advice(done, found[0]["advice"])


def check_advice(done, advice):
    """What it says of two arenas, replayed, is what a real run with these has. Where a replay has no room, it names the command."""
    less = re.search(r"MALLOC_ARENA_MAX=2: replayed, ([\d.]+) MiB less at the end, [\d.]+ times the time in malloc", advice)
    mt.check(less, advice)
    real = mt.plain([KEEPERS, "arenas", "12", "56", "0"], env={"MALLOC_ARENA_MAX": "2"})
    want = done.resident - int(real.out.split()[1])
    near(float(less[1]) * MIB, want, 0.05 * want, "less with two arenas")
    root = mt.scratch("proc")
    os.mkdir(root + "/proc")
    with open(root + "/proc/meminfo", "w", encoding="ascii") as file:
        file.write("MemTotal: 1000000 kB\nMemAvailable: 300000 kB\n")
    asked = mt.execute([mt.MEMTRACE, "report", "--json", done.trace.path], env=mt.clean_env(MEMTRACE_PROC_ROOT=root))
    named = [v["advice"] for v in json.loads(asked.out)["verdicts"] if v["kind"] == "retained"]
    mt.check(len(named) == 1 and "memtrace whatif --host all --process" in named[0], "%s" % named)


def case_arenas_that_gave_back_keep_nothing():
    """One screen, one figure: what was kept at the fullest moment is no contradiction."""
    trace = keepers("given", 12, 40, 4).trace
    mt.equal(held(trace, "retained"), [], "retained")
    why = [v["evidence"] for v in trace.report["ruled_out"] if v["kind"] == "retained"]
    mt.equal(len(why), 1, "why not retained")
    ledger = trace.report["system"]["ledger"]
    mt.check(ledger["kept"] < 16 * MIB or "used again or given back since" in why[0], "%s beside %s" % (why, ledger))


def case_what_no_hook_saw_is_no_allocators():
    """Memory by system calls of its own, and one block that keeps the recorder at it."""
    done = keepers("both", 200, 4)
    ledger = done.trace.report["system"]["ledger"]
    mt.equal(held(done.trace, "retained"), [], "retained")
    mt.between(168 * MIB, ledger["unseen"], 204 * MIB, "seen by no hook")  # at least so much: stacks and libraries are usual
    near(ledger["live"], 100 * MIB, 10 * MIB, "live")


# ---- limits, and ends


PYTHON = [os.path.realpath(mt.python()), "-S", "-c"]
FILLS = "x = []\nfor i in range(%d): x.append(bytes(10 << 20))"


def of_limit(done):
    report = done.trace.report
    mt.check(done.status != 0, "it ended well")
    found, = [v for v in report["verdicts"] if v["kind"] == "limit"]
    mt.equal(report["status"], "problem")
    mt.check("WHY" in done.trace.tool("report").out, "the report has no WHY")
    return found


@mt.variants(("ulimit -v 600000; ", 600000, "ulimit -v", 60), ("ulimit -d 300000; ", 300000, "ulimit -d", 30))
def case_a_limit_of_the_process_is_named(prefix, kib, name, fit):
    """It fills memory until it is refused some, as it does without the limit, where it ends well."""
    found = of_limit(ended([*PYTHON, FILLS % 100], prefix))
    mt.equal(found["bytes"], kib << 10)
    mt.check(name in found["evidence"] and found["certainty"] == "high", "%s" % found)
    well = ended([*PYTHON, FILLS % (fit // 2)], prefix)
    mt.equal((well.status, well.trace.report["status"], held(well.trace, "limit")), (0, "ok", []), "what fits")


def case_one_request_above_the_machine():
    """A run of 30 ms, which may be over, and read, before its recorder is there; so one of them has none."""
    alone = shutil.copy(mt.SHIM, mt.scratch("alone"))
    for shim in (mt.SHIM, alone):
        done = mt.shimmed([*PYTHON, "bytes(1 << 45)"], shim=shim)
        done.trace.settle()
        found = of_limit(done)
        mt.check(found["bytes"] >= 1 << 45 and "more than the machine's" in found["evidence"], "%s" % found)
        with open("/proc/meminfo") as file:
            mt.equal(done.trace.report["system"]["memory_bytes"], int(re.search(r"^MemTotal: +(\d+) kB$", file.read(), re.M)[1]) << 10)
    mt.check(not done.trace.files(".trace"), "it had a recorder")
    well = ended([*PYTHON, "try: bytes(1 << 45)\nexcept MemoryError: pass"])
    mt.equal((well.status, well.trace.report["status"], well.trace.report["verdicts"]), (0, "ok", []), "who catches it")


JAVA = """import java.util.*;
public class Fills { public static void main(String[] a) { List<byte[]> l = new ArrayList<>();
    for (int i = 0; i < Integer.parseInt(a[0]); i++) l.add(new byte[1 << 20]); } }
"""


def java(name):
    path = os.path.join(mt.scratch("java"), name + ".java")
    with open(path, "w") as file:
        file.write(JAVA)
    return path


@mt.variants("java", "node", "php")
def case_a_runtime_that_met_its_own_limit(kind):
    """None was refused memory by the kernel: all ended by themselves."""
    mt.need(kind)
    fills = {"java": lambda n: ["java", "-Xmx64m", java("Fills"), str(n)],
             "node": lambda n: ["node", "--max-old-space-size=60", "-e", "let l = []; for (let i = 0; i < %d; i++) l.push(new Array(125000).fill(i + 0.5))" % n],
             "php": lambda n: ["php", "-dmemory_limit=64M", "-r", "$a = []; for ($i = 0; $i < %d; $i++) $a[] = str_repeat('x', 1 << 20);" % n]}[kind]
    found = of_limit(ended(fills(1000)))
    mt.check(found["certainty"] == "medium" and "its heap may have 6" in found["evidence"], "%s" % found)
    well = ended(fills(3))
    mt.equal((well.status, well.trace.report["status"], held(well.trace, "limit")), (0, "ok", []), "what fits")


def case_a_runtime_that_ended_badly_is_inconclusive():
    done = ended([mt.need("node"), "-e", "process.exit(3)"])
    report = done.trace.report
    mt.equal((done.status, report["status"], report["verdicts"]), (3, "inconclusive", []))
    text = done.trace.tool("report").out
    mt.check("ENDED BADLY" in text and "WHY" in text and "NOT KNOWN" in text, text)


# ---- what the screen says first, and of which moment


def lines_of(trace, *options):
    done = trace.tool("report", *options)
    mt.equal(done.status, 0, "status of %s" % done)
    return done.out.splitlines()


LOOKED_AT_LATE = """import time
block = bytearray(50 << 20)
if %d: del block
for i in range(30): time.sleep(0.1); bytes(100000)
"""


@mt.variants(0, 1)
def case_a_table_of_another_moment_says_so(gone):
    """Nobody looks within the first second, for it asks for little at once: what was freed by then is in no sample, what it still has is."""
    done = mt.shimmed([os.path.realpath(mt.python()), "-S", "-c", LOOKED_AT_LATE % gone])
    done.trace.settle()
    said = [line for line in lines_of(done.trace, "--all") if "no sample near" in line or "peak not sampled" in line]
    mt.equal(len(said), gone, "lines that say so")


@mt.variants((), ("kept",))
def case_who_kept_all_of_it_is_named_first(*kept):
    """All of the heap is alive at the exit of one, and nothing of the other's."""
    done = mt.shimmed([ONCE, "64", "0", "0", *kept])
    done.trace.settle()
    text = " ".join(" ".join(lines_of(done.trace)[3:7]).split())
    mt.check(("never freed: " in text and "of the peak by once.c" in text) == bool(kept), text)
    mt.check(("healthy: " in text) == (not kept), text)


@mt.variants((400, 10, 2000), (8, 8, 200000))
def case_what_processes_leave_is_of_their_own_peaks(count, width, blocks):
    """Many short ones that leave 64 KiB each, one after the other, are healthy; a few that have all of theirs at the same time are not."""
    done = mt.shimmed([mt.program("children"), str(count), str(width), str(blocks)])
    done.trace.settle()
    text = " ".join(" ".join(lines_of(done.trace)[3:7]).split())
    mt.check(("healthy: " in text) == (count > 100), text)
    part = re.search(r"never freed: .* ([\d.]+) % of the processes' peaks by children\.c", text)
    mt.check((part is None) == (count > 100) and (not part or 90 < float(part[1]) <= 100), text)


SPIKE = """import mmap, time
reserved = mmap.mmap(-1, 600 << 20)
def widen(): return len(bytes(116 << 20))
time.sleep(0.2); widen(); time.sleep(0.3)
"""


def case_a_spike_comes_before_what_a_library_reserved():
    """Most of the heap's peak is one line's; mappings, of which nothing is touched, are five times as much."""
    script = os.path.join(mt.scratch("spike"), "spike.py")
    with open(script, "w") as file:
        file.write(SPIKE)
    done = mt.shimmed([os.path.realpath(mt.python()), "-S", script])
    done.trace.settle()
    found = [number for number, line in enumerate(lines_of(done.trace), 1) if "of heap" in line and "spike.py:3 widen" in line]
    mt.check(found and found[0] <= 6, "line %s" % found)


mt.main(at_once=3)
