#!/usr/bin/env python3
"""An evaluation that needs too much, and host memory that is nearly full, as programs: the report names the cause, and says nothing of
the kind of their healthy twins. The other incidents: figures.py."""
# timeout: 900
import os
import re
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import browser
import goldens
import gpu
import mt
import screen
from cgroup import Cgroup
from failures import certain, compare_ledger, compare_ooms, compare_refusals, one_cause

MIB = 1 << 20


@mt.once
def run(name, *arguments):
    """One run of a scenario for all that is asked of it."""
    done = gpu.scenario(name, *arguments, paused=True, timeout=200)
    done.trace.settle()
    return done


def compare_healthy(done, seen, *sick):
    """None of the sick verdicts, and a screen without a failure or a cause."""
    mt.equal((done.status, done.trace.report["status"], certain(done)), (0, "ok", []), "status, the report's and its verdicts")
    held, _ = seen.why()
    mt.check(re.search(r"^healthy: nothing goes on growing; ", done.trace.summary(), re.M), "it does not hear that it is healthy: %s" % done.trace.summary())
    mt.equal((held, seen.has("OUT OF MEMORY"), seen.has("WHAT TO DO$")), ([], False, False), "causes, a failure, advice")
    kinds = {v["kind"] for v in done.trace.report["verdicts"]}
    mt.check(not kinds & set(sick), "verdicts of the sick twin: %s" % kinds)


def case_evaluation():
    done = run("evaluation")
    goldens.compare("evaluation", done.trace)
    mt.equal(done.status, 1, "status of %r" % done)
    _, text = one_cause(done)
    oom, = compare_ooms(done)
    compare_ledger(oom)
    compare_refusals(done, oom)
    stack = re.search(r"^ *asked .*\n((?:.+\n)+)\nWHY", text, re.M)[1].splitlines()
    mt.equal([line.split(":")[0].strip() for line in stack], ["evaluation.py", "evaluation.py", "linear.py"], "the stack's files")
    mt.check("of_batch = model(" in stack[1], "no source: %s" % stack)
    mt.check("__exit__" not in text, "what unwound the failure is a phase: %s" % text)
    mt.check("no_grad" not in text, "it runs under no_grad already: %s" % text)


def case_evaluation_healthy():
    """As many batches, of which only what is needed is kept."""
    done = gpu.scenario("evaluation", "--healthy", paused=True)
    compare_healthy(done, screen.Screen(done.trace.tool("report").out), "phase_peak", "capacity")
    pool = done.trace.report["devices"][0]["pool"]
    mt.equal(pool["peak_allocated_bytes"], max(done.account["train_peak_bytes"], done.account["end"]["peak_allocated_bytes"]), "the pool's peak")


@mt.long
def case_imports_are_no_leak():
    done = gpu.run([gpu.python(), "-c", "import torch\nraise SystemExit(1)"])
    mt.equal((done.status, certain(done)), (1, []))


def limited(limit, *arguments):
    """Incident 4 in a cgroup of its own, if this machine lets us make one."""
    script = os.path.join(gpu.SCENARIOS, "incident4.py")
    with Cgroup(limit) as group:
        done = gpu.run(group.command([gpu.python(), script, *arguments]), env={"MEMTRACE_PAUSED": "1"}, **gpu.settings_of(script))
        done.trace.report  # its recorder is in the group, too
        return done


def case_killed_at_once():
    """Between two looks of the recorder it takes twice what its cgroup may use: the counters say why it was killed. Until its memory is given back the
    kernel may kill the recorder, too: then nobody reads them (samples.py has that), and it is run again."""
    for _ in range(6):
        with Cgroup(512 * MIB) as group:
            done = gpu.run(group.command([gpu.python(), "-c", "import time\ntime.sleep(2.5)\nb'x' * (1 << 30)"]))
            report, text = done.trace.report, done.trace.tool("report").out
            kills = group.kills()
        if kills == 1:
            break
    mt.equal(kills, 1, "killed by the kernel")
    goldens.compare("killed", done.trace)
    mt.equal((done.status, report["status"], report["system"]["oom_kills"]), (-9, "problem", 1))
    limit, = [v for v in report["verdicts"] if v["kind"] == "limit"]
    mt.equal((limit["device"], limit["certainty"]), ("host", "high"))
    mt.between(0.8 * 512 * MIB, limit["bytes"], 512 * MIB, "what was in use, if somebody looked, else all")
    victim, = [p["pid"] for p in report["processes"] if p["exit"]["oom_killed"] == "yes"]
    mt.check(re.search(r"^OUT OF MEMORY  host \(cgroup, 512.0 MiB\)  pid %d python  [\d.]+ s  killed by the kernel$" % victim, text, re.M), text)
    mt.check("nothing was killed" not in text, text)
    with open(browser.page(done.trace.path), encoding="utf-8") as page:
        head, = re.findall("<h1>(.*)</h1>", page.read())
    mt.check(re.match(r"Out of memory: host \(cgroup, 512.0 MiB\), pid %d python, [\d.]+ s, killed by the kernel$" % victim, head), head)


LIMIT = 1024 * MIB  # 200 MiB more than it takes by itself, which is not the same each time: when libraries give memory back is theirs


@mt.once
def sick():
    """It takes all of what it may."""
    return limited(LIMIT, "--fill", str(LIMIT * 96 // 100))


def case_incident4():
    done = sick()
    goldens.compare("incident4", done.trace)
    said = certain(done, "host")
    mt.check({"host_pressure", "limit"} & set(said), "verdicts of the host: %s" % said)
    mt.equal(done.trace.report["system"]["ledger"]["total_bytes"], LIMIT)


@mt.long
def case_incident4_healthy():
    """At the moment at which it stood still it has as much beside, and room."""
    done = limited(LIMIT, "--healthy", "--spike", str(sick().account["spike_bytes"]))
    mt.equal((done.status, certain(done)), (0, []))


mt.main(at_once=2)
