#!/usr/bin/env python3
"""What the reading commands say about a program whose owners are known (tests/programs/owners.cc)."""
import csv
import functools
import io
import json
import os
import re
import shutil
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import gpu
import mt
from screen import FIGURE, Figure

SOURCE = os.path.join(mt.TOP, "tests/programs/owners.cc")
MIB, LINES = 1 << 20, 1000 * 1024


@functools.lru_cache(None)
def recorded(*arguments):
    trace = mt.shimmed([mt.program("owners"), *arguments]).trace
    return trace.settle()


def text(trace, *arguments, status=0):
    done = trace.tool(*arguments)
    mt.equal(done.status, status, "status of %s (%s)" % (arguments, done.err))
    return done.out


def line_of(words):
    """The number of the source line that holds these words."""
    with open(SOURCE) as file:
        return next(i for i, line in enumerate(file, 1) if words in line)


def through(sites, function):
    return [s for s in sites if any((f["function"] or "").startswith(function) for f in s["stack"])]


def total(sites, function, key="bytes"):
    return sum(s[key] for s in through(sites, function))


# ---- report -----------------------------------------------------------------------------------------------------


def case_report_is_one_screen():
    screen = text(recorded(), "report").splitlines()
    mt.check(len(screen) <= 50, "the report has %d lines" % len(screen))
    wide = [line for line in screen if len(line) > 100]
    mt.check(not wide, "wider than 100 columns: %r" % wide)
    mt.check("\033" not in "".join(screen), "escape sequences in a pipe")


def case_wrappers_are_not_the_program():
    """What a process ran before it became the program is no process, and not what the trace is called after."""
    done = mt.shimmed(["sh", "-c", "exec env %s" % mt.program("busy")])
    for title in (done.trace.tool("report").out.splitlines()[1], done.trace.summary().splitlines()[1]):
        mt.check(re.match(r"busy +1 process on ", title), "title: %r" % title)


def case_report_names_the_owner_by_function_and_line():
    screen = text(recorded(), "report")
    owners = screen[screen.index("LARGEST OWNERS"):].splitlines()
    mt.check(re.search(r"8\.0\d? MiB .* load_weights +owners\.cc:\d+", owners[1]), "the first owner is %r" % owners[1])
    mt.check("main" in owners[2], "its caller is %r" % owners[2])


def case_report_says_what_failed():
    screen = text(recorded(), "report")
    mt.check("FAILED  malloc of 1,125,899,906,842,624 bytes (1.00 PiB)" in screen, "no failure in %r" % screen[:600])
    mt.check("ask_too_much" in screen, "its site is missing")


def case_report_json_has_the_documented_keys():
    report = recorded().json("report")
    keys = {"version", "status", "command", "host", "start", "duration_s", "complete", "processes", "map", "pinned", "system", "devices",
            "phases", "steps", "categories", "copies", "verdicts", "ruled_out", "unknown", "losses"}
    mt.check(keys <= report.keys(), "missing: %s" % (keys - report.keys()))
    mt.equal((report["version"], report["status"], report["complete"]), (1, "ok", True))
    mt.equal((report["devices"], report["verdicts"], report["steps"]), ([], [], None))
    process = report["processes"][0]
    keys = {"id", "pid", "ppid", "name", "command", "start_s", "end_s", "exit", "host", "map", "pinned", "rss_peak_bytes",
            "swap_peak_bytes", "threads"}
    mt.check(keys <= process.keys(), "missing in a process: %s" % (keys - process.keys()))
    figures = {"peak_bytes", "peak_s", "live_bytes", "live_blocks", "allocations", "frees", "allocated_bytes", "temporary", "failed",
               "inherited_bytes", "inherited_blocks"}
    for kind in ("host", "map", "pinned"):
        mt.check(figures <= report[kind].keys() and figures <= process[kind].keys(), "figures missing in " + kind)
    mt.check(set(report["losses"]) >= {"events", "truncated_stacks", "unwritten_bytes", "missed_frees", "unrecorded_processes"},
             "losses are %s" % report["losses"])


def case_report_figures():
    report = recorded().json("report")
    parent, child = report["processes"]
    mt.between(8 * MIB, report["host"]["peak_bytes"], 8 * MIB + 200000, "peak")
    mt.between(LINES, parent["host"]["live_bytes"], LINES + 200000, "live bytes")
    mt.check(parent["host"]["temporary"] >= 1000, "%d temporaries" % parent["host"]["temporary"])
    mt.equal(parent["host"]["failed"], 1)
    mt.equal((child["exit"]["kind"], child["exit"]["code"]), ("exit", 3))
    mt.between(1001, child["host"]["inherited_blocks"], 1010, "blocks inherited")
    mt.between(4 * MIB, parent["map"]["live_bytes"], 8 * MIB, "mapped")


def case_one_process_alone():
    child = recorded().json("report")["processes"][1]
    report = recorded().json("report", "--process", str(child["pid"]))
    mt.equal([p["pid"] for p in report["processes"]], [child["pid"]])
    mt.equal(report["host"]["peak_bytes"], child["host"]["peak_bytes"])


# ---- peak -------------------------------------------------------------------------------------------------------


def case_peak_adds_up():
    trace = recorded()
    peak = trace.json("peak", "-n", "100000")
    heap = [s for s in peak["sites"] if s["memory"] == "heap"]
    mt.equal(sum(s["bytes"] for s in heap), trace.json("report")["host"]["peak_bytes"], "sum of sites")
    mt.equal(total(heap, "load_weights"), 8 * MIB, "bytes of load_weights")


def case_peak_frames_have_lines():
    site = through(recorded().json("peak")["sites"], "load_weights")[0]
    frame = next(f for f in site["stack"] if f["function"].startswith("load_weights"))
    mt.equal(os.path.basename(frame["file"]), "owners.cc")
    mt.equal(frame["line"], line_of("weights.reserve(n)"))
    mt.equal((frame["language"], frame["inlined"]), ("c++", False))


def case_peak_at_the_end():
    sites = recorded().json("peak", "--at", "end", "-n", "100000")["sites"]
    mt.equal(total(sites, "keep_line"), LINES, "bytes of keep_line")
    mt.equal(total(sites, "keep_line", "blocks"), 1000, "blocks of keep_line")
    mt.equal(total([s for s in sites if s["memory"] == "map"], "map_pages"), 4 * MIB, "mapped")


def case_peak_at_a_moment():
    trace = recorded("1")
    middle = trace.json("report")["duration_s"] / 2
    some = total(trace.json("peak", "--at", str(middle), "-n", "100000")["sites"], "keep_line", "blocks")
    mt.between(100, some, 900, "blocks half-way")


def case_peak_filtered():
    sites = recorded().json("peak", "--at", "end", "--filter", "^keep_li", "-n", "100000")["sites"]
    mt.equal(sum(s["bytes"] for s in sites), LINES)
    done = recorded().tool("peak", "--filter", "(")
    mt.equal(done.status, 2, "status of a filter that is no regular expression")
    mt.equal(len(done.err.splitlines()), 1, "lines of the error")


@mt.variants("stack", "site", "function", "file", "library", "thread", "process", "size")
def case_peak_by(key):
    sites = recorded().json("peak", "--by", key, "--device", "host", "-n", "100000")["sites"]
    mt.equal(sum(s["bytes"] for s in sites), recorded().json("report")["host"]["peak_bytes"], "sum")
    text(recorded(), "peak", "--by", key)


# ---- leaks ------------------------------------------------------------------------------------------------------


def case_leaks():
    sites = recorded().json("leaks", "-n", "100000")["sites"]
    mt.equal((total(sites, "keep_line"), total(sites, "keep_line", "blocks")), (LINES, 1000))
    mt.equal(total(sites, "touch_temporary"), 0)
    screen = text(recorded(), "leaks")
    mt.check(re.search(r"1000\.0 KiB.*1,000.*keep_line +owners\.cc:%d" % line_of("malloc(bytes)"), screen), "screen: %r" % screen)


def case_leaks_find_growth():
    sites = through(recorded("2").json("leaks")["sites"], "keep_line")
    mt.equal(sites[0]["kind"], "linear")
    mt.between(LINES * 0.3, sites[0]["slope_bytes_per_s"], LINES * 0.6, "slope")


@mt.variants(("1G", 0), ("100K", 1), ("1K/s", 1), ("1G/s", 0), ("1G,1K/s", 1), ("1M/step", 0), ("1000/step", 1), ("much", 2))
def case_leaks_fail_over(limit, status):
    text(recorded("2"), "leaks", "--fail-over", limit, status=status)


STOPPED = """
import time
kept = []
for i in range(%d):
    kept.append(bytearray(20000))
    if i %% 50 == 0:
        time.sleep(0.02)
last = bytes(200 << 20)
%s
"""


@mt.variants(("late", 4000, "", r"nothing failed: <string>:5 \S+ grew by 76\.\d MiB until \S+ s of \S+ s,\s+then\s+stopped"),
             ("early", 4000, "time.sleep(4)", "healthy: nothing goes on growing"))
def case_what_stopped_late_is_named(_name, count, then, said):
    """One large block is most of what was made, and what grew until then has stopped by that clock: it is said, since hardly any time follows."""
    done = mt.shimmed([mt.python(), "-c", STOPPED % (count, then)])
    mt.equal(done.status, 0, done.err)
    mt.check(re.search("^" + said, done.trace.summary(), re.M), done.trace.summary())


def case_killed_programs_did_not_leak():
    trace = recorded("0.2", "kill")
    screen = text(trace, "leaks")
    mt.check("in use, not leaked" in screen, "screen: %r" % screen[:300])


# ---- timeline ---------------------------------------------------------------------------------------------------


ALIKE = """
import os
kept = []
def make(n): return bytes(n)
def load(n): kept.append(make(n))
def users(): load(40000)
def orders(): load(30000)
def items(): load(20000)
for i in range(20): users(), orders(), items()
os._exit(0)
"""


def case_stacks_that_begin_alike():
    """One line allocates, one calls it: a row by stack shows what tells it from the others."""
    trace = mt.shimmed([mt.python(), "-c", ALIKE]).trace.settle()
    table = text(trace, "leaks", "--by", "stack", "-n", "3").split("HEAP\n")[1]
    rows = [row.splitlines() for row in re.split(r"\n(?= *[\d.]+ [KM]iB )", table)[1:4]]
    # where the interpreter is not stripped the line below says what of it `make` called
    mt.check(all(" make " in row[0] for row in rows) and len({tuple(line.strip() for line in row[1:-1]) for row in rows}) == 1, "rows: %s" % rows)
    mt.equal([re.search(r"^ +< \.\. (\w+) ", row[-1]) and re.search(r"< \.\. (\w+) ", row[-1])[1] for row in rows], ["users", "orders", "items"], "rows: %s" % rows)
    mt.check("< .. " not in text(trace, "leaks", "-n", "3"), "a row by site says more than its site and caller")


TREE = """
import os, subprocess, sys
kept = [bytes(100000) for i in range(30)]
again = lambda how: [sys.executable, "-c", sys.argv[-2], sys.argv[-2], how]
if sys.argv[-1] == "root":
    children = [subprocess.Popen(again("runs")) for i in range(2)] + [subprocess.Popen(again("execs")) for i in range(3)]
    children += [subprocess.Popen(["sh", "-c", "exec sleep 0"]) for i in range(4)]
    for child in children: child.wait()
    for i in range(2):
        if not os.fork(): os._exit(len([bytes(50000) for i in range(100)]) - 100)
        os.wait()
if sys.argv[-1] == "execs": os.execv(sys.executable, again("runs"))
"""


@functools.lru_cache(None)
def tree():
    """Processes that start others, that become other programs, that are forked, that live for a moment."""
    return mt.shimmed([mt.python(), "-c", TREE, TREE, "root"]).trace.settle()


def case_processes_are_counted_alike():
    """In the heading, in the table, and by their numbers."""
    pids = {p["pid"] for p in tree().processes}
    mt.check(len(pids) >= 12 and len(tree().processes) >= len(pids) + 3, "%d processes, %d programs" % (len(pids), len(tree().processes)))
    for options in ((), ("--all",)):
        screen = tree().summary(*options, rows=60)
        mt.equal(int(re.search(r"   (\d+) process(?:es)? ", screen)[1]), len(pids), "processes in the heading")
        table = screen[screen.index("\nPROCESS "):].split("\n\n")[0].splitlines()[2:]
        rows = [line.split()[0] for line in table if re.match(r" +\d+  \S", line)]
        more = sum(int(n) for n in re.findall(r"^ +(\d+) (?:more, none above|short commands)", "\n".join(table), re.M))
        rows = [row for row in rows if int(row) in pids]
        mt.equal((len(set(rows)), len(rows) + more), (len(rows), len(pids)), "rows of the table: %s" % "\n".join(table))


def case_processes_that_load_count_together():
    """What each of several keeps is little beside what all have: the headline says what they keep together, as the fact does."""
    fact, = [fact for fact in tree().report["facts"] if fact["kind"] == "grows"]
    mt.check(fact["bytes"] > 15_000_000 and "of each of" in fact["evidence"], "%s" % fact)
    mt.check("only grew, %.1f MiB in 9 processes together" % (fact["bytes"] / 1048576) in " ".join(tree().summary().split()), "%s: %s" % (fact, tree().summary()))


IMPORTS = """
import asyncio, email.mime.text, http.server, sys, unittest.mock, xml.dom.minidom
kept = bytes(int(sys.argv[1]))
"""


def case_imports_are_one_row_in_every_worker():
    """Also where they are nearly all there is: of two workers one has hardly anything else."""
    starts = "import subprocess, sys; [subprocess.run([sys.executable, '-c', sys.argv[1], n]) for n in ('1', '9000000')]"
    trace = mt.shimmed([mt.python(), "-c", starts, IMPORTS]).trace.settle()
    workers = [p for p in trace.processes if len(p["command"]) == 4 and p["command"][3] in ("1", "9000000")]
    mt.equal(len(workers), 2, "workers")
    for worker in workers:
        screen = text(trace, "report", "-n", "15", "--process", str(worker["pid"]))
        found = re.search(r"^ +([\d.]+) MiB .* imported modules$", screen, re.M)
        mt.check(found and float(found[1]) > 2, screen)


@mt.variants("1", "15", "all")
def case_rows_do_not_take_the_owners(rows):
    for options in ((), ("--all",)):
        mt.check(re.search(r"^LARGEST OWNERS ", text(tree(), "report", "-n", rows, *options), re.M), "no owners with -n %s %s" % (rows, options))


def case_no_more_frees_of_mappings_than_allocations():
    for process in tree().processes:
        mt.check(process["map"]["frees"] <= process["map"]["allocations"], "mappings of %s: %s" % (process["pid"], process["map"]))


def case_what_was_left_is_no_sum_at_one_moment():
    """Each process leaves something when it ends; together that may be more than there ever was, and is not called the end's."""
    host = tree().host
    screen = tree().tool("report").out
    mt.check(re.search(r"^HOST MEMORY .* at each end ", screen, re.M), screen)
    mt.equal(host["live_bytes"], sum(p["host"]["live_bytes"] for p in tree().processes), "live bytes")
    alone = mt.shimmed([mt.program("keeps"), "100"]).trace.settle().tool("report").out
    mt.check(re.search(r"^HOST MEMORY .* at end ", alone, re.M), alone)
    table = screen[screen.index("\nPROCESS "):].split("\n\n")[0].splitlines()[2:]
    for line in [line for line in table if "short commands" not in line]:
        peak, left = [Figure(text).value for text in re.findall(FIGURE, line)[:2]]
        mt.check(left <= peak, "more at the end than at the peak: %s" % line)


def case_linked_allocator_is_noticed():
    """Its mappings grow, the heap does not: nobody sees what is in them, and that is said. Data that a program maps is none."""
    trace = mt.shimmed([mt.program("ownheap"), "64"]).trace.settle()
    own = trace.processes[0]["own_allocator"]
    mt.equal((own["function"], os.path.basename(own["library"])), ("malloc", "ownheap"), "who maps")
    mt.between(64 << 20, own["mapped_bytes"], trace.processes[0]["map"]["peak_bytes"], "bytes that it maps")
    wide = trace.tool("report").out
    mt.check(re.search(r"^\d+ ownheap has its own allocator \(malloc  ownheap\.c:\d+\): what is in its 65\.0 MiB is not seen$", wide, re.M), wide)
    mt.check(re.search(r"^\d+ ownheap has its own allocator: what is in its 65\.0 MiB is not seen$", trace.summary(), re.M), trace.summary())
    trace = mt.shimmed([mt.program("ownheap"), "64", "reserve"]).trace.settle()
    own = trace.processes[0]["own_allocator"]
    mt.check(own["mapped_bytes"] >= 1 << 30, "address space that it has reserved: %s" % own)
    mt.between(64 << 20, own["resident_bytes"], 66 << 20, "what is in memory of it")
    words = " ".join(trace.summary().split())
    mt.check(re.search(r"peak 1\.\d+ GiB mapped at \S+ s, 1\.\d+ GiB of it address space of ownheap's allocator, 6[456]\.\d MiB of that resident \(sampled\)", words), words)
    for arguments in (["64", "data"], ["4"]):
        other = mt.shimmed([mt.program("ownheap"), *arguments]).trace.settle()
        mt.equal(other.processes[0]["own_allocator"], None, "with %s" % arguments)
        mt.check("its own allocator" not in other.tool("report").out, "with %s" % arguments)


def case_setting_that_shows_an_allocator():
    """Arrow's pool is mimalloc, linked in: the report names the variable with which it calls malloc, and with that variable it is all seen."""
    python = gpu.python()  # PyTorch's environment has pyarrow
    program = os.path.join(mt.scratch("arrow"), "arrow.py")
    with open(program, "w") as file:
        file.write("import time\nimport pyarrow\nimport pyarrow.compute\n"
                   "a = pyarrow.array(range(1_000_000))\nkept = []\nfor i in range(16):\n    kept.append(pyarrow.compute.add(a, i))\ntime.sleep(2)\n")
    trace = mt.shimmed([python, program]).trace.settle()
    own, kept = trace.processes[0]["own_allocator"], 16 * 8_000_000
    mt.equal(own["setting"], "ARROW_DEFAULT_MEMORY_POOL=system", "setting")
    mt.between(kept, own["resident_bytes"], kept + (40 << 20), "what is not seen")
    wide = mt.execute([mt.MEMTRACE, "report", trace.path], env=mt.clean_env(COLUMNS="200")).out
    mt.check("not seen; with ARROW_DEFAULT_MEMORY_POOL=system it is" in wide, wide)
    for line in trace.summary().splitlines():
        mt.check(len(line) <= 80, line)
    mt.check(re.search(r"ARROW_DEFAULT_MEMORY_POOL=system shows \S+ MiB of libarrow", trace.summary()), trace.summary())
    name, _, value = own["setting"].partition("=")
    seen = mt.shimmed([python, program], env={name: value}).trace.settle()
    mt.equal(seen.processes[0]["own_allocator"], None, "with that variable")
    found = sum(s["bytes"] for s in seen.json("peak", "-n", "1000")["sites"] if any((f["file"] or "").endswith("arrow.py") and f["line"] == 7 for f in s["stack"]))
    mt.between(kept, found, 1.01 * kept, "bytes of the line")


def case_timeline_as_csv():
    rows = list(csv.DictReader(io.StringIO(text(recorded("1"), "timeline", "--csv"))))
    heap = [r for r in rows if r["kind"] == "heap" and r["pid"] == "all"]
    times = [float(r["time_s"]) for r in heap]
    mt.check(times == sorted(times) and len(times) > 10, "times: %s" % times[:10])
    mt.equal(max(int(r["high_bytes"]) for r in heap), recorded("1").json("report")["host"]["peak_bytes"])


def case_timeline_json():
    timeline = recorded("1").json("timeline")
    series = [s for s in timeline["series"] if s["pid"] is None and s["kind"] == "heap"]
    mt.equal(len(series), 1)
    mt.check(series[0]["points"], "no points")


# ---- what is missing --------------------------------------------------------------------------------------------


def moved():
    """A trace of a copy of the program, and where that copy is."""
    binary = os.path.join(mt.scratch(), "owners")
    shutil.copy(mt.program("owners"), binary)
    return mt.shimmed([binary]).trace.settle(), binary


def case_replaced_module_is_not_misread():
    trace, binary = moved()
    os.remove(binary)
    shutil.copy(mt.program("busy"), binary)
    screen = text(trace, "report")
    mt.check("rebuilt or replaced since, so without names: " + binary[:20] in screen, "screen: %r" % screen[-600:])
    mt.check(re.search(r"8\.0\d? MiB .* owners\+0x[0-9a-f]+", screen), "the owner isn't given as an offset")


def case_missing_module():
    trace, binary = moved()
    os.remove(binary)
    screen = text(trace, "report")
    mt.check("not on this machine, so without names: " + binary[:20] in screen, "screen: %r" % screen[-600:])
    mt.equal(trace.json("report")["status"], "ok", "status: no figure is wrong")


def case_damage_is_said_first():
    trace = recorded("1")
    copy = os.path.join(mt.scratch(), "t")
    shutil.copytree(trace.path, copy)
    largest = max((os.path.join(copy, f) for f in os.listdir(copy) if f.endswith(".trace")), key=os.path.getsize)
    os.truncate(largest, os.path.getsize(largest) - 100)
    damaged = mt.Trace(copy)
    mt.equal(damaged.tool("report").status, 3, "status without --force")
    screen = text(damaged, "report", "--force").splitlines()
    mt.check(screen[2].startswith("INCOMPLETE"), "line below the title: %r" % screen[2])
    mt.check(damaged.summary("--force").splitlines()[2].startswith("INCOMPLETE"), "the summary's")
    mt.equal(damaged.json("report", "--force")["status"], "inconclusive")


# ---- everywhere -------------------------------------------------------------------------------------------------


@mt.variants("report", "peak", "leaks", "timeline")
def case_help(command):
    done = mt.execute([mt.MEMTRACE, command, "--help"])
    mt.equal(done.status, 0)
    mt.check(done.out.startswith("usage: memtrace " + command) or "memtrace " + command in done.out, "help: %r" % done.out[:200])


@mt.variants("report", "peak", "leaks", "timeline")
def case_errors_are_one_line(command):
    for arguments in (["/nowhere"], ["--nonsense"], ["--device", "cuda:0", recorded().path], ["--process", "nobody", recorded().path]):
        done = mt.execute([mt.MEMTRACE, command, *arguments])
        mt.check(done.status in (2, 3), "status of %s is %d" % (arguments, done.status))
        mt.equal(len(done.err.splitlines()), 1, "lines of %r" % done.err)


@mt.variants("report", "peak", "leaks", "timeline")
def case_json_is_json(command):
    json.loads(mt.execute([mt.MEMTRACE, command, "--json", recorded().path]).out)


def case_resident_memory_is_on_the_first_screen():
    """What the kernel says of the process, which is more than its blocks; where no sample was near its end there is no such row."""
    program = "import time\nkept = bytearray(200 << 20)\nfor at in range(0, len(kept), 4096): kept[at] = 1\ntime.sleep(4)\nprint(open('/proc/self/smaps_rollup').read())"
    done = mt.shimmed([sys.executable, "-c", program])
    own, = [int(n) / 1024 for n in re.findall(r"^Pss:\s+(\d+) kB", done.out, re.M)]
    peak, end = map(float, re.search(r"^  sampled RSS +([\d.]+) MiB .*? ([\d.]+) MiB", done.trace.settle().summary(), re.M).groups())
    for figure in peak, end:  # without the library's own files, which the process has mapped
        mt.between(200, figure, own + 1, "MiB in memory")
    short = mt.shimmed([sys.executable, "-c", "pass"]).trace.settle()
    mt.check("sampled RSS" not in short.summary(), short.summary())


if __name__ == "__main__":
    mt.main()
