#!/usr/bin/env python3
"""Programs on the stand-in whose reason to fail is known: the report names it, and says nothing of the kind of those that are well."""
# timeout: 900
import functools
import os
import re
import sys
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import gpu
import mt
import screen

MIB = 1 << 20


def certain(done, device=None):
    return [v["kind"] for v in done.trace.report["verdicts"]
            if v["certainty"] != "low" and (device is None or v["device"] == device)]


def held(done, kind, device="cuda:0"):
    found = [v for v in done.trace.report["verdicts"] if v["kind"] == kind and v["device"] == device]
    mt.check(found, "no verdict %s: %s" % (kind, [(v["kind"], v["evidence"]) for v in done.trace.report["verdicts"]]))
    mt.check(found[0]["evidence"] and found[0]["certainty"] != "low", "%s is not certain: %s" % (kind, found[0]))
    return found[0]


def ruled_out(done, *kinds):
    there = {r["kind"]: r["evidence"] for r in done.trace.report["ruled_out"] if r["device"] == "cuda:0"}
    for kind in kinds:
        mt.check(there.get(kind), "%s is not ruled out: %s" % (kind, sorted(there)))


def near(got, wanted, part, what):
    mt.check(abs(got - wanted) <= part * wanted, "%s: %s is not near %s" % (what, got, wanted))


def compare_healthy(done, seen, *sick):
    """None of the sick verdicts, and a screen without a failure or a cause."""
    mt.equal((done.status, done.trace.report["status"], certain(done)), (0, "ok", []), "status, the report's and its verdicts")
    held, _ = seen.why()
    mt.equal((held, seen.has("OUT OF MEMORY"), seen.has("DO$")), ([], False, False), "causes, a failure, advice")
    kinds = {v["kind"] for v in done.trace.report["verdicts"]}
    mt.check(not kinds & set(sick), "verdicts of the sick twin: %s" % kinds)


def screen_of(done):
    text = done.trace.tool("report").out
    lines = text.splitlines()
    mt.check(len(lines) <= 45, "the screen has %d lines" % len(lines))
    mt.check(max(map(len, lines)) <= 100, "a line of the screen has %d columns" % max(map(len, lines)))
    return text


@mt.variants("capacity", "fragmentation", "evaluation", "fraction")
def case_failure(name):
    """One cause, and it comes first."""
    done = gpu.scenario(name, paused=True)
    wanted = done.account["verdict"]
    verdict = held(done, wanted)
    mt.equal(certain(done, "cuda:0"), [wanted], "verdicts")
    mt.equal(done.trace.report["status"], "problem")
    mt.equal(done.trace.report["devices"][0]["ooms"][-1]["verdict"], wanted, "the failure's verdict")
    oom = done.account["ooms"][0]
    if name == "capacity":
        mt.equal(verdict["bytes"], oom["requested_bytes"] - oom["free_bytes"], "short by")
    if name == "fragmentation":
        mt.equal(verdict["bytes"], oom["reserved_bytes"] - oom["allocated_bytes"], "unused")
        mt.equal(verdict["bytes"], done.account["unused_bytes"])
        mt.check("expandable_segments" in verdict["advice"], "no advice on expandable segments: %s" % verdict["advice"])
    if name == "fraction":
        near(oom["reserved_bytes"] + verdict["bytes"], done.account["limit_bytes"], 0.25, "what the pool may take")
    text = screen_of(done)
    if name == "evaluation":
        stack = text[:text.index("\nWHY")].splitlines()[4:]
        mt.equal([line.split(":")[0].strip() for line in stack], ["evaluation.py", "evaluation.py", "linear.py"], "the stack's files")
        mt.check("of_batch = model(" in stack[1], "no source: %s" % stack)
        mt.check("__exit__" not in text, "what unwound the failure is a phase: %s" % text)
    if name == "fragmentation":
        mt.check(re.search(r"largest +64.0 MiB account.py:\d+ bytes_of \(x\d+\)", text), "equal blocks are not counted together: %s" % text)
    mt.check(text.index("OUT OF MEMORY") < text.index("WHY") < text.index("\nDO\n"), "the failure comes first, then why: %s" % text)


def case_evaluation_healthy():
    """As many batches, of which only what is needed is kept."""
    done = gpu.scenario("evaluation", "--healthy", paused=True)
    compare_healthy(done, screen.Screen(done.trace.tool("report").out), "phase_peak", "capacity")
    pool = done.trace.report["devices"][0]["pool"]
    mt.equal(pool["peak_allocated_bytes"], max(done.account["train_peak_bytes"], done.account["end"]["peak_allocated_bytes"]), "the pool's peak")


def case_imports_are_no_leak():
    done = gpu.run([gpu.python(), "-c", "import torch\nraise SystemExit(1)"])
    mt.equal((done.status, certain(done)), (1, []))


def case_caught():
    done = gpu.scenario("caught", paused=True)
    mt.equal(done.trace.report["status"], "ok")
    mt.check("leak" not in certain(done) and "fragmentation" not in certain(done), "verdicts: %s" % certain(done))


def case_retry():
    done = gpu.scenario("retry", paused=True)
    mt.equal((certain(done), done.trace.report["status"]), ([], "ok"))


@mt.variants((), ("--traced",))
def case_neighbours(*arguments):
    done = gpu.scenario("neighbours", *arguments, paused=True)
    verdict = held(done, "other_process")
    ruled_out(done, "fragmentation", "capacity", "leak")
    mt.equal(certain(done, "cuda:0"), ["other_process"])
    mt.equal(verdict["bytes"], sum(n["bytes"] for n in done.account["neighbours"]), "bytes of the neighbours, traced or not")
    mt.check("3 were on it" in verdict["advice"], verdict["advice"])


CGROUP = "/sys/fs/cgroup/memory"


def limited(limit, *arguments):
    """Incident 4 in a cgroup of its own, if this machine lets us make one."""
    path = os.path.join(CGROUP, "memtrace-test-%d" % os.getpid())
    try:
        os.mkdir(path)
    except OSError as error:
        mt.skip("no cgroup can be made: %s" % error)
    try:
        with open(os.path.join(path, "memory.limit_in_bytes"), "w") as file:
            file.write(str(limit))
        script = os.path.join(gpu.SCENARIOS, "incident4.py")
        enter = "echo $$ > %s/cgroup.procs; exec \"$@\"" % path
        done = gpu.run(["/bin/sh", "-c", enter, "sh", gpu.python(), script, *arguments], env={"MEMTRACE_PAUSED": "1"},
                       **gpu.settings_of(script))
        done.trace.report
        return done
    finally:
        for _ in range(50):
            try:
                os.rmdir(path)
                break
            except OSError:
                time.sleep(0.1)


@functools.lru_cache(None)
def need():
    """What the sick program takes that can't give way, where it may have all it wants."""
    done = limited(4096 * MIB)
    mt.equal(done.status, 0)
    mt.equal(certain(done), [], "verdicts with room")
    figures = re.findall(r'cgroup .* current (\d+) .* file (\d+) ', done.trace.tool("dump", "--samples").out)
    mt.check(figures, "the cgroup was not sampled")
    return max(int(current) - int(file) for current, file in figures)


def case_incident4():
    """The program takes all of what it may, or is killed for it; its twin has room."""
    limit = need() * 98 // 100 // 4096 * 4096
    done = limited(limit)
    said = certain(done, "host")
    mt.check({"host_pressure", "limit"} & set(said), "verdicts of the host: %s" % said)
    mt.equal(done.trace.report["system"]["ledger"]["total_bytes"], limit)


def case_incident4_healthy():
    done = limited(need() * 98 // 100 // 4096 * 4096, "--healthy")
    mt.equal((done.status, certain(done)), (0, []))


mt.main()
