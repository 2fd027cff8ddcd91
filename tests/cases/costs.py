#!/usr/bin/env python3
"""What a recording costs where much of something is there: frames, threads, children, processes."""
import os
import subprocess
import sys
import tempfile
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt


def resident(command, env):
    """The most that a command had, in KiB. Started by a small program: what a process had before exec counts as its own, and Python is large."""
    program, settings = mt.program("weighs"), ["%s=%s" % v for v in env.items()]
    with tempfile.TemporaryFile("w+") as to:
        child = subprocess.Popen([program, str(to.fileno()), "600", "/usr/bin/env", "-i", *settings, *command], cwd=mt.scratch(), env=mt.clean_env(),
                                 stdout=subprocess.DEVNULL, pass_fds=[to.fileno()])
        mt.equal(child.wait(), 0, "status of weighs")
        to.seek(0)
        status, _, kib = map(int, to.read().split())
    mt.equal(status, 0, "status of %s" % command)
    return kib


def case_many_threads():
    """2,000 at once: at most 20 MB more than without us, and nothing is lost. What the recorder has not read yet is more on a busy machine,
    so the best of three runs counts."""
    command, plain = [mt.program("threads"), "2000"], resident([mt.program("threads"), "2000"], mt.clean_env())
    for _ in range(3):
        output = os.path.join(mt.scratch("trace"), "t")
        traced = resident(command, mt.shim_env(output))
        if traced - plain < 20000:
            break
    mt.check(traced - plain < 20000, "%d KiB resident, %d without us" % (traced, plain))
    trace = mt.Trace(output)
    mt.check(trace.bytes() < 20 << 20, "%d bytes on the disk" % trace.bytes())
    trace.intact()
    mt.equal(mt.blocks_of(trace.sites(), "leave_one"), (200000, 2000))


@mt.variants(10000, 30000)
def case_threads_one_after_the_other(count):
    """They take what those before them have left: what is added is the ring, as large as it gets, however many they are."""
    command, output = [mt.program("threads"), str(count), "0", "apart"], os.path.join(mt.scratch("trace"), "t")
    plain, traced = resident(command, mt.clean_env()), resident(command, mt.shim_env(output))
    trace = mt.Trace(output).intact()
    mt.equal(trace.host["live_blocks"] >= count, True)
    mt.check(traced - plain < 20000, "%d KiB resident, %d without us" % (traced, plain))


@mt.variants(64, 2)
def case_many_children(limit):
    """300, one after the other, of a parent that does nothing meanwhile: the disk limit holds, and nobody is forgotten. Into 64 MiB all fits
    before anybody compresses it."""
    trace = mt.Trace(os.path.join(mt.scratch("trace"), "t"))
    child = subprocess.Popen([mt.program("children"), "300", "40", "200", "2"], cwd=mt.scratch(), stdout=subprocess.DEVNULL,
                             env=mt.shim_env(trace.path, MEMTRACE_LIMIT="%dM" % limit))
    most = 0
    while child.poll() is None:
        most = max(most, trace.bytes_now())
        time.sleep(0.02)
    mt.equal(child.returncode, 0)
    mt.check(most <= (limit << 20) * 1.1, "%d bytes where %d MiB are allowed" % (most, limit))
    unrecorded = trace.report["losses"]["unrecorded_processes"]
    mt.equal(len(trace.processes) + unrecorded, 301, "processes, recorded and not")
    if limit == 64:
        trace.intact()
        mt.check(not trace.files(".ring"), "nobody compressed them: %s" % trace.files(".ring")[:3])


def processor_time(frames):
    """Of 300,000 mallocs and frees below so many frames."""
    output = os.path.join(mt.scratch("trace"), "t")
    child = subprocess.Popen([mt.program("deep"), str(frames), "300000"], cwd=mt.scratch(), stdout=subprocess.DEVNULL, env=mt.shim_env(output))
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = status
    mt.equal(status, 0, "status")
    return usage.ru_utime + usage.ru_stime


def case_deeper_than_the_limit():
    """A stack of which only 1,024 frames are kept costs no more than one of so many: the least of runs by turns, as others run beside them."""
    most, *deeper = (min(took) for took in zip(*[[processor_time(frames) for frames in (1000, 2000, 4000)] for _ in range(3)]))
    mt.check(max(deeper) < 1.5 * most, "%s s below 2,000 and 4,000 frames, %s s below 1,000" % (deeper, most))


mt.main()
