#!/usr/bin/env python3
"""Nobody else's files, nothing in secure-execution mode, nothing opened behind a seccomp filter."""
import os
import re
import shutil
import stat
import struct
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


NOBODY = 65534


def raw_files(rings):
    """Of one session: folder, names without ending."""
    found = [(folder, name[:-5]) for folder, _, names in os.walk(rings) for name in names if name.endswith(".info")]
    mt.equal(len(found), 1, "processes in %s" % rings)
    return found[0]


@mt.variants("fifo", "garbage", "link", "directory")
def case_planted_in_ring_directory(what):
    """Others may write there, and the names are easily guessed: neither the recorder nor a reader is held up or led astray."""
    mt.need_root()
    rings = mt.scratch("rings")
    trace = mt.shimmed([mt.program("exits"), "kill"], env={"MEMTRACE_RING_DIR": rings}).trace
    folder, name = raw_files(rings)
    os.chmod(folder, 0o1777)
    planted = os.path.join(folder, name.rsplit(".", 1)[0] + ".4242-0")
    with open(os.path.join(folder, name + ".info"), "rb") as file:
        info = bytearray(file.read())
    struct.pack_into("<I", info, 16, 4242)  # its pid
    with open(planted + ".info", "wb") as file:
        file.write(info if what == "fifo" else os.urandom(len(info)) if what == "garbage" else b"")
    if what in ("link", "directory"):
        os.unlink(planted + ".info")
    if what == "link":
        os.symlink("/etc/passwd", planted + ".info")
    elif what == "directory":
        os.mkdir(planted + ".info")
    os.mkfifo(planted + ".nodes")
    os.mkfifo(planted + ".ring")
    for ending in (".info", ".nodes", ".ring"):
        os.chown(planted + ending, NOBODY, NOBODY, follow_symlinks=False)
    mt.equal(trace.tool("report", timeout=20).status, 0, "report before it is compressed")
    done = trace.tool("check", timeout=20)
    mt.check(done.status == 0 and done.out.count("is somebody else's or no regular file") == 1, "check: %s" % done)
    mt.equal(mt.execute([mt.MEMTRACE, "record", trace.path], timeout=20).status, 0)
    mt.equal((trace.intact().host["allocations"], len(trace.processes)), (1000, 1))
    mt.equal(sorted(f for f in os.listdir(folder) if name in f), [], "files of the session that were left")
    mt.check(os.path.lexists(planted + ".info"), "somebody else's file was removed")


@mt.variants("nodes", "ring", "info")
def case_fifo_in_the_trace(ending):
    trace = mt.shimmed([mt.program("exits"), "kill"]).trace
    path = os.path.join(trace.path, trace.files("." + ending)[0])
    os.unlink(path)
    os.mkfifo(path)
    mt.equal(mt.execute([mt.MEMTRACE, "record", trace.path], timeout=20).status, 0)
    mt.check(trace.tool("report", "--force", timeout=20).status in (0, 3), "report")


@mt.variants("directory", "files")
def case_ring_directory_is_exchanged(what):
    """Where others may rename it: nothing is written to what they put in its place, and the report counts who was not recorded."""
    mt.need_root()
    rings = mt.scratch("rings")
    script = ("export LD_PRELOAD=; d=$(echo {0}/memtrace-*); mv $d {0}/old; mkdir $d; chown {1}:{1} $d; "
              "LD_PRELOAD={2} exec " + " ".join(BUSY)).format(rings, NOBODY, mt.SHIM)
    if what == "files":
        script = script.replace("chown", "chmod 777 $d; ln {0}/old/*.info $d; chown".format(rings))
    command = ["sh", "-c", script]
    got = mt.shimmed(command, env={"MEMTRACE_RING_DIR": rings})
    mt.equal((got.status, got.out, got.err), (mt.plain(BUSY).status, mt.plain(BUSY).out, ""))
    own = [f for f in os.listdir(rings) if f != "old"]
    mt.equal(len([f for f in os.listdir(os.path.join(rings, own[0])) if "-1." in f]), 0, "files of ours in the other's directory")
    theirs = os.path.join(rings, own[0])
    os.rename(theirs, theirs + ".theirs")
    os.rename(os.path.join(rings, "old"), theirs)
    lost = got.trace.report["losses"]
    mt.equal((lost["unrecorded_processes"], lost["unrecorded_why"]), (1, ["rights"]))


@mt.variants("file", "directory")
def case_session_of_somebody_else(what):
    """Where others may rename the trace's directory: their session is not joined, what it says is not followed."""
    mt.need_root()
    theirs = mt.shimmed([mt.program("exits"), "kill"]).trace.path
    with open(os.path.join(theirs, "session"), "rb") as file:
        before = file.read()
    os.chown(os.path.join(theirs, "session"), NOBODY, NOBODY)
    if what == "directory":
        os.chown(theirs, NOBODY, NOBODY)
    names = sorted(os.listdir(theirs))
    got = mt.shimmed(BUSY, env={"MEMTRACE_SESSION": theirs})
    mt.equal((got.status, got.err), (7, ""))
    mt.equal(got.trace.intact().host["allocations"], 100000, "in a trace of its own")
    mt.equal(sorted(os.listdir(theirs)), names)
    with open(os.path.join(theirs, "session"), "rb") as file:
        mt.check(file.read() == before, "the other's session was written to")


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


def case_landlock():
    """No file can be opened afterwards; what was mapped before is filled without, where the kernel can do that."""
    command = [mt.program("landlocked"), "100000"]
    if mt.plain(command).status != 6:
        mt.skip("no landlock here")
    trace = mt.same(command, intact=False)
    lost = trace.settle().report["losses"]["events"]
    mt.between(199000, trace.host["allocations"] + trace.host["frees"] + trace.host["unknown_frees"] + lost, 199010, "operations known")
    fills = tuple(int(n) for n in re.findall(r"\d+", os.uname().release)[:2]) >= (5, 14)
    mt.check(lost == 0 or not fills, "%d events were lost" % lost)


@mt.variants("early", "late", "called")
def case_seccomp_filter(when):
    want = mt.plain([mt.program("seccomped"), when, "100000"])
    if want.status != 6:
        mt.skip("no seccomp here: %s" % want)
    got = mt.shimmed([mt.program("seccomped"), when, "100000"])
    mt.compare(want, got)
    got.trace.settle()
    host, lost = got.trace.host, got.trace.report["losses"]["events"]
    total = 200000 + (0 if when == "early" else 40000)
    mt.between(total, host["allocations"] + host["frees"] + host["unknown_frees"] + lost, total + 10, "operations known")


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
