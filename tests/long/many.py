#!/usr/bin/env python3
"""Thousands of processes: the disk limit holds at every moment, nobody is forgotten, and the recorder ends."""
# serial
# timeout: 1800
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

MIB = 1 << 20


def watch(command, limit):
    """Runs it; (trace, most bytes on the disk, seconds that the recorder worked on)."""
    trace = mt.Trace(os.path.join(mt.scratch("trace"), "t"))
    most = 0
    child = subprocess.Popen(command, cwd=mt.scratch(), stdout=subprocess.DEVNULL, env=mt.shim_env(trace.path, MEMTRACE_LIMIT="%dM" % limit))
    while child.poll() is None:
        most = max(most, trace.bytes_now())
        time.sleep(0.05)
    end = time.monotonic()
    mt.equal(child.returncode, 0, "status")
    while trace.recorder():
        most = max(most, trace.bytes_now())
        mt.check(time.monotonic() - end < 600, "the recorder is still there")
        time.sleep(0.05)
    return trace, most, time.monotonic() - end


@mt.variants(2000, 20000)
def case_children(count):
    trace, most, seconds = watch([mt.program("children"), str(count), "50", "200"], 200)
    print("# %d children: at most %.0f MiB on the disk, the recorder worked on for %.1f s" % (count, most / MIB, seconds))
    mt.check(most <= 200 * MIB * 1.1, "%d bytes where 200 MiB are allowed" % most)
    mt.equal(len(trace.processes) + trace.report["losses"]["unrecorded_processes"], count + 1, "processes, recorded and not")


def case_pipelines():
    """400 of a shell: three processes each that live for a moment."""
    trace, most, seconds = watch(["/bin/bash", "-c", "for i in {1..400}; do echo $i | tr 1 2 | sed s/2/3/; done"], 4096)
    print("# 400 pipelines: at most %.0f MiB on the disk, the recorder worked on for %.1f s" % (most / MIB, seconds))
    mt.check(most <= 100 * MIB, "%d bytes on the disk for a moment" % most)
    mt.check(len(trace.processes) >= 800, "%d processes" % len(trace.processes))
    mt.equal(trace.report["losses"]["events"], 0, "lost events")


def case_report():
    """150 processes at once, with 16 million events of which 5 million blocks stay: took 16 to 22 s and 821 MiB once."""
    trace = mt.shimmed([mt.program("children"), "150", "150", "71000"], timeout=300).trace.settle(300)
    with open(os.path.join(mt.scratch("report"), "json"), "w+b") as out:
        child = subprocess.Popen([mt.MEMTRACE, "report", "--json", trace.path], stdout=out, env=mt.clean_env())
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = status
        mt.equal(status, 0, "status")
        out.seek(0)
        report = json.load(out)
    seconds, mib = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
    print("# %d events of %d processes: %.1f s of CPU, %.0f MiB" %
          (report["host"]["allocations"] + report["host"]["frees"], len(report["processes"]), seconds, mib))
    mt.equal((len(report["processes"]), report["losses"]["events"]), (151, 0), "processes, lost events")
    mt.check(report["host"]["allocations"] >= 150 * 71000, "allocations: %s" % report["host"])
    mt.check(seconds < 10, "%.1f s of CPU" % seconds)
    mt.check(mib < 500, "%.0f MiB" % mib)


mt.main()
