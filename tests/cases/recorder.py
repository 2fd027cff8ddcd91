#!/usr/bin/env python3
"""The recorder: missing, killed, not allowed, refused; and that it leaves a complete, small trace when it is there."""
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

mt.DISMISSES = False
BUSY = [mt.program("busy"), "300000", "2000", "300", "1500"]
COUNT = 600000
WAYS = ["waitpid", "waitpid WNOHANG", "wait4 __WCLONE", "wait3", "waitid", "waitid WNOWAIT", "syscall wait4", "syscall waitid"]


def complete(trace, count=COUNT):
    trace.intact()
    mt.equal((trace.host["allocations"], trace.host["live_blocks"]), (count, 2000))


def case_present():
    trace = mt.same(BUSY)
    complete(trace)
    mt.check(not trace.files(".ring") and len(trace.files(".trace")) == 1, "left over: %s" % trace.files())
    mt.check(trace.bytes() < 32 * COUNT, "%d bytes for %d events" % (trace.bytes(), 2 * COUNT))


def case_missing():
    alone = os.path.join(mt.scratch(), "libmemtrace.so")
    shutil.copy(mt.SHIM, alone)
    want, got = mt.plain(BUSY), mt.shimmed(BUSY, shim=alone)
    mt.compare(want, got)
    mt.check(got.trace.files(".ring") and not got.trace.files(".trace"), "files are %s" % got.trace.files())
    complete(got.trace)


def case_run_supervises():
    want, got = mt.plain(BUSY), mt.supervised(BUSY)
    mt.equal(got.status, want.status)
    mt.equal(got.out, want.out, "output")
    complete(got.trace)


def case_stopped_and_killed():
    """The target doesn't wait for a recorder that hangs, and survives its end."""
    output = os.path.join(mt.scratch("trace"), "t")
    trace = mt.Trace(output)
    child = subprocess.Popen(BUSY, env=mt.shim_env(output), cwd=mt.scratch(), stdout=subprocess.PIPE)
    recorder = mt.until(trace.recorder, "a recorder", pause=0.01)
    os.kill(recorder, signal.SIGSTOP)
    out = child.communicate(timeout=mt.WAIT)[0]
    mt.equal((child.returncode, out.decode()), (7, mt.plain(BUSY).out))
    os.kill(recorder, signal.SIGKILL)
    mt.until(lambda: not mt.alive(recorder), "the end of the recorder")
    complete(trace)


def case_pid_1():
    mt.need_root()
    unshare = [mt.need("unshare"), "-p", "-f", "--mount-proc"]
    probe = mt.plain(unshare + ["true"])
    if probe.status:
        mt.skip("unshare -p: %s" % probe.err.strip())
    output = os.path.join(mt.scratch("trace"), "t")
    # env sets LD_PRELOAD inside, so that unshare itself isn't the first process
    inner = unshare + ["env", "LD_PRELOAD=" + mt.SHIM, "MEMTRACE_OUTPUT=" + output, mt.program("waits")]
    want, got = mt.plain(unshare + [mt.program("waits")]), mt.plain(inner)
    mt.compare(want, got)
    trace = mt.Trace(output)
    trace.intact()
    mt.check(trace.files(".ring"), "PID 1 got a recorder: %s" % trace.files())
    mt.check(trace.host["allocations"] >= 100000, "allocations: %s" % trace.host)


def case_read_while_it_runs():
    output = os.path.join(mt.scratch("trace"), "t")
    trace = mt.Trace(output)
    child = subprocess.Popen([mt.program("busy"), "200000", "2000", "300", "600000"], env=mt.shim_env(output),
                             cwd=mt.scratch(), stdout=subprocess.PIPE)
    child.stdout.readline()  # all are made, and it idles
    time.sleep(0.05)  # what is younger than 10 ms is left out
    host = trace.json("report")["host"]
    child.kill()
    child.communicate()
    mt.equal((host["allocations"], host["live_blocks"]), (200000, 2000))


def case_trace_made_again_in_its_place():
    """The first one's recorder lingers for a second; the second one's processes are not its."""
    output = os.path.join(mt.scratch("trace"), "t")
    mt.shimmed(BUSY, output=output)
    mt.until(lambda: shutil.rmtree(output, ignore_errors=True) or not os.path.exists(output), "the removal of what it writes")
    complete(mt.shimmed(BUSY, output=output).trace)


def case_ends_though_others_were_killed_while_they_started():
    """Their files say nothing of them; the number of one is somebody's who lives."""
    output = os.path.join(mt.scratch("trace"), "t")
    trace = mt.Trace(output)
    child = subprocess.Popen([mt.program("busy"), "100000", "2000", "300", "2000"], env=mt.shim_env(output), cwd=mt.scratch(), stdout=subprocess.DEVNULL)
    mt.until(trace.recorder, "a recorder", pause=0.01)
    for pid, bytes_ in ((os.getpid(), 0), (os.getpid() + 1, 0), (os.getppid(), 196608), (os.getppid() + 1, 196608)):
        with open(os.path.join(output, "%d-7.info" % pid), "wb") as file:
            file.truncate(bytes_)
    child.wait()
    trace.settle(5)
    done = trace.tool("check")
    mt.equal(done.status, 0, "check: %s" % done)


def case_stays_a_while_after_a_long_round():
    """What it did then was no idling: who comes a moment later finds it at work."""
    output = os.path.join(mt.scratch("trace"), "t")
    trace = mt.Trace(output)
    child = subprocess.Popen(BUSY, env=mt.shim_env(output), cwd=mt.scratch(), stdout=subprocess.DEVNULL)
    recorder = mt.until(trace.recorder, "a recorder", pause=0.01)
    time.sleep(0.5)  # it has begun
    os.kill(recorder, signal.SIGSTOP)
    child.wait()
    time.sleep(1.5)
    os.kill(recorder, signal.SIGCONT)
    mt.until(lambda: not trace.files(".info"), "the end of what it has to do", pause=0.01)
    time.sleep(0.5)
    mt.check(trace.recorder(), "it has gone at once")


def few(value):
    resource.setrlimit(resource.RLIMIT_NOFILE, (value, value))


@mt.variants((8, 1, 1), (40, 60, 100))
def case_ends_with_few_descriptors(limit, count, width):
    """Fewer than it could use; the trace is whole."""
    command = [mt.program("children"), str(count), str(width), "200", "2"]
    options = {"preexec_fn": lambda: few(limit)}
    want, got = mt.plain(command, **options), mt.supervised(command, "--no-report", **options)
    mt.equal((got.status, got.out), (want.status, want.out))
    got.trace.settle(5)
    mt.equal(len(got.trace.processes), count + 1, "processes")
    got.trace.intact()
    mt.check(not got.trace.files(".ring"), "left over: %s" % got.trace.files())


def case_run_goes_on_without_a_recorder_that_was_stopped():
    output = os.path.join(mt.scratch("trace"), "t")
    trace = mt.Trace(output)
    child = subprocess.Popen([mt.MEMTRACE, "run", "-o", output, "--no-report", "--", *BUSY], env=mt.clean_env(), cwd=mt.scratch(),
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    recorder = mt.until(trace.recorder, "a recorder", pause=0.01)
    os.kill(recorder, signal.SIGSTOP)
    out, err = child.communicate(timeout=20)
    mt.equal((child.returncode, out.decode()), (7, mt.plain(BUSY).out))
    mt.check(b"the recorder (%d) was stopped" % recorder in err, "stderr: %r" % err)
    mt.check(not mt.alive(recorder), "it is still there")
    complete(trace)


def case_is_not_the_first_of_a_namespace():
    """Whose children are in another namespace of pids: its own next child is PID 1 there."""
    command = [mt.program("namespaces"), "1500"]
    if "no namespaces" in mt.plain([*command[:1], "0"]).out:
        mt.skip("unshare of pids is forbidden")
    trace = mt.same(command)
    mt.equal(len(trace.processes), 1, "processes")
    mt.check(trace.host["allocations"] >= 10000, "allocations: %s" % trace.host)


@mt.variants(*WAYS)
def case_nobody_can_wait_for_it(way):
    """What starts it is a child for a moment, and other threads wait for any child of whatever kind."""
    for _ in range(8):
        output = os.path.join(mt.scratch("trace"), "t")
        done = mt.shimmed([mt.program("meets"), str(WAYS.index(way))], output=output)
        mt.equal((done.status, done.out), (0, "met 0\n"))
        mt.check(done.trace.recorder() or done.trace.files(".trace"), "no recorder was started")


@mt.variants("strace -f", "strace -ff, of a tree")
def case_is_out_of_a_tracers_reach(how):
    """strace waits for whatever it follows, and the recorder for strace, which is recorded."""
    log = os.path.join(mt.scratch("strace"), "log")
    tree = "{0} >{1} & {0}; wait; cat {1}".format(" ".join(BUSY), log + ".out")  # one prints behind the other
    command = ["strace", "-f", "-o", log, *BUSY] if how == "strace -f" else ["strace", "-ff", "-o", log, "sh", "-c", tree]
    if "ptrace" in mt.plain([mt.need("strace"), "true"]).err:
        mt.skip("strace can't trace here")
    done = mt.shimmed(command, timeout=40)
    mt.compare(mt.plain(command), done)
    done.trace.settle(10)
    ran = [process["name"].split()[0] for process in done.trace.intact().processes]
    mt.equal((ran.count("strace"), ran.count("busy")), (1, 1 if how == "strace -f" else 2), ran)
    mt.check(not done.trace.files(".ring"), "left over: %s" % done.trace.files())


def case_run_keeps_its_descriptors_to_itself():
    """Who reads from a pipe waits until nobody has its other end."""
    output = os.path.join(mt.scratch("trace"), "t")
    trace = mt.Trace(output)
    ours, theirs = os.pipe()
    child = subprocess.Popen([mt.MEMTRACE, "run", "-o", output, "--no-report", "--", *BUSY], env=mt.clean_env(), cwd=mt.scratch(),
                             stdout=theirs, stderr=theirs, pass_fds=[theirs])
    recorder = mt.until(trace.recorder, "a recorder", pause=0.01)
    names = [os.readlink("/proc/%d/fd/%s" % (recorder, fd)) for fd in os.listdir("/proc/%d/fd" % recorder)]
    os.close(theirs)
    child.wait()
    mt.check(not [name for name in names if name.startswith("pipe")], "the recorder has %s" % names)
    os.close(ours)


mt.main()
