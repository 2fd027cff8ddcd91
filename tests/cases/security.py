#!/usr/bin/env python3
"""Nobody else's files, nothing in secure-execution mode, nothing opened behind a seccomp filter."""
import os
import shutil
import stat
import subprocess
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

BUSY = [mt.program("busy"), "100000", "1000", "300"]


def case_files_are_private():
    old = os.umask(0)
    try:
        trace = mt.same(BUSY)
    finally:
        os.umask(old)
    mt.equal(stat.S_IMODE(os.stat(trace.path).st_mode), 0o700, "mode of the directory")
    wrong = [f for f in trace.files() if stat.S_IMODE(os.lstat(os.path.join(trace.path, f)).st_mode) != 0o600]
    mt.check(trace.files() and not wrong, "not 0600: %s" % wrong)


def case_private_while_running():
    """The raw files too, before the recorder tidied up."""
    old = os.umask(0)
    try:
        trace = mt.shimmed([mt.program("exits"), "kill"]).trace
    finally:
        os.umask(old)
    names = trace.files()
    mt.check(any(f.endswith(".ring") for f in names), "files are %s" % names)
    mt.equal({oct(stat.S_IMODE(os.lstat(os.path.join(trace.path, f)).st_mode)) for f in names}, {"0o600"})


@mt.variants("dangling", "directory", "file")
def case_output_is_a_symlink(kind):
    folder = mt.scratch()
    link, target = os.path.join(folder, "link"), os.path.join(folder, "target")
    if kind == "directory":
        os.mkdir(target)
    elif kind == "file":
        open(target, "w").close()
    os.symlink(target, link)
    mt.compare(mt.plain(BUSY), mt.shimmed(BUSY, output=link))
    if kind == "dangling":
        mt.check(not os.path.lexists(target), "the link was followed")
    elif kind == "directory":
        mt.equal(os.listdir(target), [], "files behind the link")
    else:
        mt.equal(os.path.getsize(target), 0)
    mt.Trace(link + ".2").intact()


@mt.variants("info", "ring", "nodes")
def case_planted_symlink(ending):
    """The names of a process's files are guessed before it makes them."""
    folder = mt.scratch()
    target = os.path.join(folder, "victim")
    with open(target, "w") as file:
        file.write("precious")
    plant = "ln -s %s $MEMTRACE_SESSION/$$-1.%s; exec %s" % (target, ending, " ".join(BUSY))
    want = mt.plain(BUSY)
    got = mt.shimmed(["sh", "-c", plant])
    mt.compare(want, got)
    with open(target) as file:
        mt.equal(file.read(), "precious")


def case_planted_session():
    """A session somebody else has prepared for us."""
    folder = mt.scratch()
    victim = os.path.join(folder, "victim")
    with open(victim, "w") as file:
        file.write("precious" * 1000)
    os.symlink(victim, os.path.join(folder, "session"))
    mt.compare(mt.plain(BUSY), mt.shimmed(BUSY, env={"MEMTRACE_SESSION": folder}))
    with open(victim) as file:
        mt.equal(file.read(), "precious" * 1000)
    mt.equal(sorted(os.listdir(folder)), ["session", "victim"])


def case_secure_execution():
    """A set-uid program that is linked with the shim, so that even the loader's own care doesn't matter."""
    mt.need_root()
    folder = mt.scratch("suid")
    os.chmod(os.path.dirname(folder), 0o755)
    os.chmod(folder, 0o777)
    shim, binary = shutil.copy(mt.SHIM, folder), os.path.join(folder, "busy")
    source = os.path.join(mt.TOP, "tests/programs/busy.c")
    made = mt.plain(["cc", "-D_GNU_SOURCE", "-I" + mt.TOP, "-fno-builtin", source, "-o", binary, shim, "-Wl,--no-as-needed",
                     "-Wl,-rpath," + folder])
    mt.equal(made.status, 0, made.err)
    os.chmod(shim, 0o755)
    run = lambda output: mt.plain(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", binary] + BUSY[1:],
                                  cwd=folder, env={"MEMTRACE_OUTPUT": output})
    output = os.path.join(folder, "t")
    os.chmod(binary, 0o755)
    mt.equal(run(output).status, 7)
    mt.check(os.path.isdir(output), "not even the plain program is recorded")
    os.chmod(binary, 0o4755)
    if os.statvfs(folder).f_flag & os.ST_NOSUID:
        mt.skip("%s is mounted nosuid" % folder)
    mt.equal(run(output + "-secure").status, 7)
    mt.check(not os.path.exists(output + "-secure"), "a set-uid program was recorded")


@mt.variants("early", "late")
def case_seccomp_filter(when):
    want = mt.plain([mt.program("seccomped"), when, "100000"])
    if want.status != 6:
        mt.skip("no seccomp here: %s" % want)
    got = mt.shimmed([mt.program("seccomped"), when, "100000"])
    mt.compare(want, got)
    got.trace.settle()
    host, lost = got.trace.host, got.trace.report["losses"]["events"]
    total = 200000 + (0 if when == "early" else 40000)
    mt.between(total, host["allocations"] + host["frees"] + lost, total + 10, "operations known")


def case_seccomp_before_threads():
    """Rings for threads that begin behind the filter are there; what does not fit into what was reserved is lost for that reason."""
    command = [mt.program("seccomped"), "threads", "10000"]
    want = mt.plain(command)
    if want.status != 6:
        mt.skip("no seccomp here: %s" % want)
    got = mt.shimmed(command)
    mt.compare(want, got)
    trace = got.trace.settle()
    lost = trace.report["losses"]
    mt.check(trace.host["allocations"] + lost["events"] >= 90000 and trace.host["allocations"] >= 60000, "%s, %s" % (trace.host, lost))
    mt.equal(lost["events_why"], ["seccomp"] if lost["events"] else [])


def case_seccomp_strict():
    want = mt.plain([mt.program("seccomped"), "strict", "200000"])
    if want.status != 6:
        mt.skip("no seccomp here: %s" % want)
    got = mt.shimmed([mt.program("seccomped"), "strict", "200000"])
    mt.compare(want, got)
    got.trace.settle()
    # The kernel takes away the clock: recording ends there, and the report says so.
    mt.between(20001, got.trace.host["allocations"], 220003, "allocations")
    if got.trace.host["allocations"] < 220001:
        mt.equal(got.trace.report["complete"], False, "complete")
        mt.check("turned itself off" in got.trace.tool("report").out, "the report doesn't say that recording ended")


mt.main()
