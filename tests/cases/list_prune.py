#!/usr/bin/env python3
"""memtrace list says which traces are here; memtrace prune removes old ones, and nothing else."""
import json
import os
import shutil
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import golden_traces
import mt

KEEP = "x = [bytearray(1000000) for _ in range(30)]"


def made(folder, name, number, golden="final"):
    """A trace that began that many seconds after 2020."""
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    shutil.move(golden_traces.unpack(golden, mt.scratch("golden")), path)
    with open(os.path.join(path, "session"), "r+b") as file:
        file.seek(mt.session_offset("start_real_ns"))
        file.write(struct.pack("<Q", (1577836800 + number) * 10**9))
    return path


def tool(*words, cwd=None, status=0):
    done = mt.execute([mt.MEMTRACE, *words], cwd=cwd, env=mt.clean_env(COLUMNS="160"))
    mt.equal((done.status, done.err if not status else ""), (status, ""), "of %s" % done)
    return done.out


def names(folder):
    return sorted(os.path.relpath(t["directory"], folder) for t in json.loads(tool("list", "--json", folder))["traces"])


def use(path):
    return sum(os.lstat(os.path.join(path, f)).st_blocks * 512 for f in os.listdir(path))


def case_list():
    folder = mt.scratch("traces")
    for number, (words, env) in enumerate(((["sh", "-c", "exit 3"], {}), (["sh", "-c", "kill -9 $$"], {"RANK": "5"}))):
        mt.shimmed(words, output=os.path.join(folder, "t%d" % number), env=env).trace.settle()
    made(folder, "old/job/7", 0)
    os.makedirs(os.path.join(folder, "notes"))
    traces = json.loads(tool("list", "--json", folder))["traces"]
    mt.equal([(os.path.relpath(t["directory"], folder), t["command"][:2], t["exit"], t["ranks"], t["running"]) for t in traces[:2]],
             [("t1", ["sh", "-c"], {"kind": "signal" if traces[0]["exit"]["code"] else "unknown", "code": traces[0]["exit"]["code"]}, "5", False),
              ("t0", ["sh", "-c"], {"kind": "exit", "code": 3}, None, False)])
    mt.equal((traces[2]["directory"], traces[2]["start"], traces[2]["bytes"]),
             (os.path.join(folder, "old/job/7"), "2020-01-01T00:00:00.000Z", use(os.path.join(folder, "old/job/7"))))
    lines = tool("list", cwd=folder).splitlines()
    mt.equal((len(lines), lines[-1][:8], lines[3][:16], lines[3].split()[-1]), (5, "3 traces", "2020-01-01 00:00", "old/job/7"))
    mt.check("exit 3" in lines[2], "no exit status: %s" % lines[2])
    mt.equal(len(tool("list", "-n", "1", cwd=folder).splitlines()), 3)


def case_list_has_verdicts():
    folder = mt.scratch("traces")
    made(folder, "memtrace-a", 0, "gpu")
    path = os.path.join(folder, "memtrace-a")
    report = json.loads(tool("report", "--json", path))
    want = report["verdicts"][0]["kind"] if report["verdicts"] else report["status"]
    mt.equal(json.loads(tool("list", "--json", "--verdict", folder))["traces"][0]["verdict"], want)
    mt.check(want.replace("_", " ") in tool("list", "--verdict", folder), "it is not on the screen")
    mt.equal(json.loads(tool("list", "--json", folder))["traces"][0]["verdict"], None)


def case_list_says_what_runs():
    output = os.path.join(mt.scratch("trace"), "t")
    child = subprocess.Popen(["sleep", "60"], env=mt.shim_env(output))
    try:
        mt.until(lambda: any(f.endswith(".info") for f in mt.Trace(output).files()), "the trace")
        mt.equal([t["running"] for t in json.loads(tool("list", "--json", output))["traces"]], [True])
        said = tool("prune", "--keep", "0", os.path.dirname(output))
        mt.check("is being recorded" in said and "0 of 1 traces removed" in said and os.path.exists(output), said)
    finally:
        child.kill()
        child.wait()


def case_prune_keeps_the_newest():
    folder = mt.scratch("traces")
    for number in range(5):
        made(folder, "memtrace-%d" % number, number)
    said = tool("prune", "--keep", "2", "--dry-run", folder)
    mt.equal((said.count("would go  "), len(names(folder))), (3, 5), said)
    before = sum(use(os.path.join(folder, n)) for n in names(folder)[:3])
    said = tool("prune", "--keep", "2", folder)
    mt.equal(names(folder), ["memtrace-3", "memtrace-4"])
    mt.equal(sorted(os.listdir(folder)), ["memtrace-3", "memtrace-4"])
    mt.check("3 of 5 traces removed, %.1f KiB of" % (before / 1024) in said, said)
    mt.check("0 of 2" in tool("prune", "--keep", "2", folder), "it goes on")


def case_prune_by_size():
    folder = mt.scratch("traces")
    for number in range(4):
        made(folder, "memtrace-%d" % number, number)
    one = use(os.path.join(folder, "memtrace-0"))
    tool("prune", "--max-use", str(2 * one + 100), folder)
    mt.equal(names(folder), ["memtrace-2", "memtrace-3"])
    tool("prune", "--max-use", "1T", "--keep", "1", folder)
    mt.equal(names(folder), ["memtrace-3"])


def case_prune_leaves_what_is_no_trace():
    """A note in a trace, links, a directory that only looks like one, and what hides."""
    folder = mt.scratch("traces")
    made(folder, "memtrace-noted", 1)
    made(folder, ".hidden", 2)
    with open(os.path.join(folder, "memtrace-noted", "notes.txt"), "w") as file:
        file.write("mine")
    elsewhere = made(mt.scratch("elsewhere"), "t", 3)
    os.symlink(elsewhere, os.path.join(folder, "memtrace-link"))
    os.makedirs(os.path.join(folder, "memtrace-empty"))
    os.makedirs(os.path.join(folder, "memtrace-folder"))
    with open(os.path.join(folder, "memtrace-folder", "session"), "w") as file:
        file.write("of another program")
    made(folder, "memtrace-linked", 4)
    os.symlink("/etc/passwd", os.path.join(folder, "memtrace-linked", "symbols"))
    said = tool("prune", "--keep", "0", folder)
    mt.equal(said.count("something in it is no trace's"), 2, said)
    mt.check("0 of 2 traces removed" in said, said)
    mt.equal(sorted(os.listdir(folder)), [".hidden", "memtrace-empty", "memtrace-folder", "memtrace-link", "memtrace-linked", "memtrace-noted"])
    mt.check(os.path.exists(elsewhere) and os.path.exists("/etc/passwd"), "a link was followed")
    mt.equal(len(os.listdir(os.path.join(folder, "memtrace-noted"))) > 2, True)


def case_prune_takes_raw_files_elsewhere():
    rings, folder = mt.scratch("rings"), mt.scratch("traces")
    mt.shimmed(["sh", "-c", "kill -9 0"], output=os.path.join(folder, "t"), env={"MEMTRACE_RING_DIR": rings})
    time.sleep(0.1)
    with open(os.path.join(rings, "mine"), "w") as file:
        file.write("no trace's")
    mt.check(len(os.listdir(rings)) > 1, "there are no raw files in %s" % os.listdir(rings))
    mt.check("1 of 1 traces removed" in tool("prune", "--keep", "0", folder), "it is not removed")
    mt.equal((os.listdir(rings), os.listdir(folder)), (["mine"], []))


def case_prunes_at_once():
    """As of several jobs that end together: each says what it removed itself, none complains, and nothing more goes than asked for."""
    for _ in range(3):
        folder = mt.scratch("traces")
        for number in range(40):
            made(folder, "memtrace-%02d" % number, number)
        most = "%d" % (10 * use(os.path.join(folder, "memtrace-00")))
        prunes = [subprocess.Popen([mt.MEMTRACE, "prune", "--max-use", most, folder], env=mt.clean_env(), stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True) for _ in range(4)]
        said = [(*prune.communicate(), prune.returncode) for prune in prunes]
        mt.equal([(err, status) for _, err, status in said], [("", 0)] * 4, "%s: status" % said)
        mt.equal(names(folder), ["memtrace-%02d" % number for number in range(30, 40)])
        removed = [line.split()[1] for out, _, _ in said for line in out.splitlines()[:-1]]
        mt.equal(sorted(removed), [os.path.join(folder, "memtrace-%02d" % number) for number in range(30)], "each once")
        mt.equal(sum(int(out.splitlines()[-1].split()[0]) for out, _, _ in said), 30)


def case_prune_wants_to_know():
    mt.execute([mt.MEMTRACE, "prune"])
    tool("prune", status=2)


mt.main()
