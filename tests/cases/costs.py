#!/usr/bin/env python3
"""What a recording costs where much of something is there: frames, threads, children, processes."""
# serial
import os
import subprocess
import sys
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt


def usage_of(command, env):
    child = subprocess.Popen(command, env=env, cwd=mt.scratch(), stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = status
    mt.equal(status, 0, "status of %s" % command)
    return usage


def case_many_threads():
    """2,000 at once: at most 20 MB more than without us, and nothing is lost."""
    command, output = [mt.program("threads"), "2000"], os.path.join(mt.scratch("trace"), "t")
    plain, traced = usage_of(command, mt.clean_env()).ru_maxrss, usage_of(command, mt.shim_env(output)).ru_maxrss
    mt.check(traced - plain < 20000, "%d KiB resident, %d without us" % (traced, plain))
    trace = mt.Trace(output)
    mt.check(trace.bytes() < 20 << 20, "%d bytes on the disk" % trace.bytes())
    trace.intact()
    mt.equal(mt.blocks_of(trace.sites(), "leave_one"), (200000, 2000))


def case_threads_one_after_the_other():
    """10,000 take what those before them have left."""
    command, output = [mt.program("threads"), "10000", "0", "apart"], os.path.join(mt.scratch("trace"), "t")
    plain, traced = usage_of(command, mt.clean_env()).ru_maxrss, usage_of(command, mt.shim_env(output)).ru_maxrss
    trace = mt.Trace(output).intact()
    mt.equal(trace.host["live_blocks"] >= 10000, True)
    mt.check(traced - plain < 8000, "%d KiB resident, %d without us" % (traced, plain))


def bytes_now(trace):
    """What it takes while files come and go."""
    total = 0
    for entry in os.scandir(trace.path) if trace.exists() else ():
        try:
            total += entry.stat(follow_symlinks=False).st_blocks * 512
        except FileNotFoundError:
            pass
    return total


@mt.variants(64, 2)
def case_many_children(limit):
    """300, one after the other, of a parent that does nothing meanwhile: the disk limit holds, and nobody is forgotten. Into 64 MiB all fits
    before anybody compresses it."""
    trace = mt.Trace(os.path.join(mt.scratch("trace"), "t"))
    child = subprocess.Popen([mt.program("children"), "300", "40", "200", "2"], cwd=mt.scratch(), stdout=subprocess.DEVNULL,
                             env=mt.shim_env(trace.path, MEMTRACE_LIMIT="%dM" % limit))
    most = 0
    while child.poll() is None:
        most = max(most, bytes_now(trace))
        time.sleep(0.02)
    mt.equal(child.returncode, 0)
    mt.check(most <= (limit << 20) * 1.1, "%d bytes where %d MiB are allowed" % (most, limit))
    unrecorded = trace.report["losses"]["unrecorded_processes"]
    mt.equal(len(trace.processes) + unrecorded, 301, "processes, recorded and not")
    if limit == 64:
        trace.intact()
        mt.check(not trace.files(".ring"), "nobody compressed them: %s" % trace.files(".ring")[:3])


mt.main()
