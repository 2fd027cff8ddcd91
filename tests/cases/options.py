#!/usr/bin/env python3
"""The variables and where the trace goes."""
import json
import os
import re
import shutil
import stat
import subprocess
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

BUSY = [mt.program("busy"), "20000", "1000", "300"]


def case_output_exists():
    output = os.path.join(mt.scratch(), "t")
    for expect in (output, output + ".2", output + ".3"):
        mt.shimmed(BUSY, output=output)
        mt.Trace(expect).intact()
    mt.check(not os.path.exists(output + ".4"), "too many")


def case_default_name():
    cwd = mt.scratch()
    mt.plain(BUSY, env={"LD_PRELOAD": mt.SHIM}, cwd=cwd)
    mt.check(len(os.listdir(cwd)) == 1 and re.fullmatch(r"memtrace-busy-[^/]+-\d+", os.listdir(cwd)[0]), os.listdir(cwd))
    done = mt.execute([mt.MEMTRACE, "report", "--json"], cwd=cwd)
    mt.equal(json.loads(done.out)["host"]["allocations"], 20000, "of the newest trace in the working directory")


def case_patterns():
    cwd = mt.scratch()
    env = {"LD_PRELOAD": mt.SHIM, "RANK": "3", "SLURM_JOB_ID": "99", "MEMTRACE_OUTPUT": "a/b/%n-%h-%p-%r-%j"}
    mt.plain(BUSY, env=env, cwd=cwd)
    found = os.listdir(os.path.join(cwd, "a/b"))
    mt.check(len(found) == 1 and re.fullmatch(r"busy-%s-\d+-3-99" % re.escape(os.uname().nodename), found[0]), found)


@mt.variants("all", "none", "sample")
def case_totals_in_every_mode(stacks):
    trace = mt.same(BUSY, env={"MEMTRACE_STACKS": stacks})
    mt.equal((trace.host["allocations"], trace.host["live_blocks"], trace.host["frees"]), (20000, 1000, 19000))


def case_depth():
    trace = mt.same(BUSY, env={"MEMTRACE_DEPTH": "3"})
    mt.equal(trace.host["allocations"], 20000)
    deepest = max(len([f for f in s["stack"] if not f["inlined"]]) for s in trace.sites())
    mt.between(2, deepest, 3, "frames")
    mt.check(trace.report["losses"]["truncated_stacks"] > 0, "no stack is counted as truncated")


def case_stacks():
    """12 calls deep, with function, file and line."""
    trace = mt.same(BUSY)
    sites = [s for s in trace.sites() if any(f["function"] == "busy" for f in s["stack"])]
    mt.check(sites, "no stack through busy()")
    for site in sites:
        names = [f["function"] for f in site["stack"]]
        mt.equal((names.count("deep"), names.count("main")), (13, 1), "frames in %s" % names)
        mt.check(all(f["file"].endswith("busy.c") and f["line"] > 0 for f in site["stack"] if f["function"] == "deep"),
                 "file and line: %s" % site["stack"][0])


def case_paused():
    trace = mt.same(BUSY, env={"MEMTRACE_PAUSED": "1"})
    mt.equal(trace.host["allocations"], 0)


def case_secret_environment():
    trace = mt.same(BUSY, env={"MY_TOKEN": "hunter2secret", "OMP_NUM_THREADS": "3"})
    found = set()
    for name in trace.files():
        with open(os.path.join(trace.path, name), "rb") as file:
            data = file.read()
        found |= {word for word in (b"hunter2secret", b"OMP_NUM_THREADS=3") if word in data}
    text = trace.settle().tool("dump").out.encode() # what was compressed, too
    found |= {word for word in (b"hunter2secret", b"OMP_NUM_THREADS=3") if word in text}
    mt.equal(found, {b"OMP_NUM_THREADS=3"}, "found in the trace")


def case_verbose_only_on_stderr():
    want, got = mt.plain(BUSY), mt.shimmed(BUSY, env={"MEMTRACE_VERBOSE": "1"})
    mt.equal((got.status, got.out), (want.status, want.out))
    mt.check("memtrace" in got.err, "nothing was said")


def case_quiet_by_default():
    mt.equal(mt.shimmed(BUSY).err, "")


def case_ring_directory():
    rings = mt.scratch("rings")
    env = {"MEMTRACE_RING_DIR": rings}
    got = mt.shimmed([mt.program("exits"), "kill"], env=env)
    own = os.listdir(rings)
    mt.equal(len(own), 1, "%s in the ring directory" % own)
    inside = os.path.join(rings, own[0])
    mt.equal(stat.S_IMODE(os.stat(inside).st_mode), 0o700, "mode of %s" % inside)
    mt.check(any(f.endswith(".ring") for f in os.listdir(inside)), "no rings in %s: %s" % (inside, os.listdir(inside)))
    mt.check(not got.trace.files(".ring"), "rings are in %s" % got.trace.files())
    got.trace.intact()
    mt.equal(got.trace.host["allocations"], 1000)
    got = mt.same([mt.program("busy"), "20000", "1000", "300", "1500"], env=env)
    mt.equal(got.host["allocations"], 40000)
    mt.equal(mt.execute([mt.MEMTRACE, "record", got.path]).status, 0)
    mt.equal(os.listdir(rings), own, "of one that has been compressed")


def case_ring_directory_is_made_again():
    """The recorder removes it with the last file; then another process of the session comes."""
    rings = mt.scratch("rings")
    env = {"MEMTRACE_RING_DIR": rings}
    got = mt.shimmed(BUSY, env=env)
    for count in (1, 2):
        trace = mt.Trace(got.trace.path).settle()
        mt.equal(mt.execute([mt.MEMTRACE, "record", trace.path]).status, 0)
        mt.equal(os.listdir(rings), [], "left behind")
        trace.intact()
        mt.equal([p["host"]["allocations"] for p in trace.processes], [20000] * count)
        mt.equal(mt.plain(BUSY, env=dict(env, LD_PRELOAD=mt.SHIM, MEMTRACE_SESSION=trace.path)).status, 7)


def case_ring_directory_of_a_deleted_trace():
    rings, output = mt.scratch("rings"), os.path.join(mt.scratch(), "t")
    child = subprocess.Popen([mt.program("busy"), "20000", "1000", "300", "2500"], env=mt.shim_env(output, MEMTRACE_RING_DIR=rings), stdout=subprocess.DEVNULL)
    mt.until(mt.Trace(output).recorder, "no recorder came")
    shutil.rmtree(output)
    mt.equal(child.wait(), 7)
    mt.until(lambda: not os.listdir(rings), "left behind: %s" % os.listdir(rings))


@mt.variants("missing", "file", "shared memory")
def case_ring_directory_that_can_not_be(what):
    folder = mt.scratch()
    rings = {"missing": os.path.join(folder, "nowhere"), "file": os.path.join(folder, "file"), "shared memory": "/dev/shm"}[what]
    open(os.path.join(folder, "file"), "w").close()
    env = {"MEMTRACE_RING_DIR": rings}
    got = mt.shimmed(["sh", "-c", "%s; %s; exit 7" % (" ".join(BUSY), " ".join(BUSY))], env=env)
    mt.equal((got.status, got.err), (7, "memtrace: MEMTRACE_RING_DIR: '%s' is no directory that can be written to; the rings are in the trace now\n" % rings))
    mt.equal(sum(p["host"]["allocations"] >= 20000 for p in got.trace.intact().processes), 2, "recorded")
    done = mt.supervised(BUSY, "--ring-dir", rings)
    mt.check(done.err.startswith("memtrace: %s: no directory that can be written to, so the rings are not there\n" % rings), done.err[:300])
    mt.equal((done.status, done.trace.intact().host["allocations"]), (7, 20000))


def case_nobody_recorded_anything():
    """memtrace wrote the directory: to say that it didn't would be wrong."""
    trace = mt.same(BUSY)
    for name in trace.files():
        if name != "session":
            os.unlink(os.path.join(trace.path, name))
    done = trace.tool("report")
    mt.equal(done.status, 3)
    mt.check("no process recorded anything" in done.err and "name a directory" not in done.err, done.err)


def case_copied_elsewhere():
    trace = mt.same(BUSY)
    moved = mt.Trace(os.path.join(mt.scratch(), "elsewhere"))
    shutil.copytree(trace.path, moved.path)
    shutil.rmtree(trace.path)
    same = lambda t: {k: v for k, v in t.host.items() if k != "peak_s"}
    mt.equal(same(moved), same(trace))
    mt.equal([s["stack"] for s in moved.sites()][:1] != [], True)


def case_mappings():
    trace = mt.same([mt.program("mapped")])
    m = trace.report["map"]
    anon, shared, file, memfd = (1 << 20) - (256 << 10), 3 << 20, 8192, 1 << 20
    mt.equal(m["live_bytes"], anon + shared + file + memfd, "live mapped bytes")
    mt.equal(trace.host["live_bytes"], 0, "mappings counted as heap")


mt.main()
