#!/usr/bin/env python3
"""Where nothing can be written, or too little: the program runs as without the shim, and the report says what is missing."""
import os
import resource
import shutil
import subprocess
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

BUSY = [mt.program("busy"), "400000", "3000", "300"]
COUNT = 400000


def run(output=None, env=None, command=BUSY, **options):
    want = mt.plain(command, **options)
    got = mt.shimmed(command, output=output, env=env, **options)
    mt.compare(want, got)
    got.trace.patience = 2
    return got.trace


def known(trace):
    """Heap events in the trace, and lost ones. (The report's frees leave out those of blocks whose allocation was lost.) A recorder that
    came late finds the limit near and folds: then blocks are two events each."""
    lines = trace.tool("dump", "--events").out.splitlines()
    folded = trace.report["folded"]
    return sum(line.startswith(("alloc ", "free ")) for line in lines) + (2 * folded["blocks"] if folded else 0), trace.report["losses"]["events"]


def lossy(trace, count=COUNT, surely=True):
    """Every operation is in the trace or counted as lost. Unless SURELY a recorder that keeps up with a slowed program may make all of it fit."""
    trace.settle()
    events, lost = known(trace)
    mt.check(lost > 0 or not surely, "nothing is said to be missing: %s" % trace.report["losses"])
    mt.equal(trace.report["complete"], lost == 0, "complete")
    # A few lost slots are no events of the program's: which thread owns a ring.
    mt.between(2 * count - 3000, events + lost, 2 * count - 2990, "%d in the trace, %d lost: the sum" % (events, lost))
    text = trace.tool("report").out
    mt.check(not lost or "lost" in text.lower(), "the report does not say so: %s" % text)


class Mounted:
    """A small file system of its own."""

    def __init__(self, kind, bytes_, read_only=False):
        mt.need_root()
        self.path = mt.scratch("mount")
        options = "ro" if read_only else "rw"
        if kind == "tmpfs":
            command = ["mount", "-t", "tmpfs", "-o", "size=%d,%s" % (bytes_, options), "none", self.path]
        else:
            image = os.path.join(mt.scratch(), "image")
            with open(image, "wb") as file:
                file.truncate(bytes_)
            made = mt.plain([mt.need("mkfs.ext4"), "-q", "-F", "-m", "0", image])
            mt.equal(made.status, 0, made.err)
            command = ["mount", "-o", "loop," + options, image, self.path]
        done = mt.plain(command)
        if done.status:
            mt.skip("mount: %s" % done.err.strip())

    def __enter__(self):
        return self.path

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", self.path])


@mt.variants(("tmpfs", 2 << 20), ("tmpfs", 300 << 10), ("tmpfs", 8 << 10), ("ext4", 2 << 20))
def case_disk_full(kind, bytes_):
    with Mounted(kind, bytes_) as path:
        trace = run(os.path.join(path, "t"), {"MEMTRACE_KEEP_FREE": "0"}, timeout=60)
        trace.settle()
        if trace.files(".info") or trace.files(".trace"):
            lossy(trace, surely=bytes_ < 4 << 20)


@mt.variants(64, 80, 96, 112, 144, 176)
def case_disk_full_of_children(kib):
    """Whatever file of a child is the one that does not fit: what is there is reported, and the rest counted."""
    with Mounted("tmpfs", kib << 10) as path:
        trace = run(os.path.join(path, "t"), {"MEMTRACE_KEEP_FREE": "0"}, [mt.program("children"), "4", "4", "3000"])
        trace.patience = 3
        count = len(trace.settle().processes) + trace.report["losses"]["unrecorded_processes"]
        mt.equal(count, 5, "processes, recorded and not")
        mt.check(trace.tool("check").status in (0, 1), "check: %s" % trace.tool("check"))


def fill(path):
    """To the last byte."""
    with open(path, "wb", buffering=0) as file:
        for size in (65536, 1):
            try:
                while file.write(bytes(size)) == size:
                    pass
            except OSError:
                pass


def case_other_files_fill_the_disk():
    """The free space goes away while chunks are being written to blocks, and there is none for more."""
    with Mounted("tmpfs", 40 << 20) as path:
        command, trace = [*BUSY, "1800"], mt.Trace(os.path.join(path, "t"))
        child = subprocess.Popen(command, env=mt.shim_env(trace.path, MEMTRACE_KEEP_FREE="0"), stdout=subprocess.PIPE)
        out = child.stdout.readline()
        fill(os.path.join(path, "fill"))
        out += child.communicate()[0]
        want = mt.plain(command)
        mt.equal((child.returncode, out.decode()), (want.status, want.out), "status, output")
        trace.patience = 2
        done = trace.settle().tool("check")
        mt.check(done.status in (0, 1), str(done))
        mt.check(trace.process("busy")["host"]["allocations"] >= COUNT, "what fitted is not there")


def case_keep_free():
    with Mounted("tmpfs", 64 << 20) as path:
        lossy(run(os.path.join(path, "t"), {"MEMTRACE_KEEP_FREE": "63M"}))


def case_disk_limit():
    trace = run(env={"MEMTRACE_LIMIT": "1M"})
    trace.patience = None
    lossy(trace)
    mt.check(trace.bytes() <= 2 << 20, "%d bytes where 1 MiB was allowed" % trace.bytes())


@mt.variants((17, True), long=[(20, False)])
def case_call_tree_at_the_limit(depth, fits):
    """It has what rings don't need, not half of that; what does not fit is said."""
    trace = run(env={"MEMTRACE_LIMIT": "16M"}, command=[mt.program("branches"), str(depth)])
    lost, text = trace.report["losses"], trace.tool("report").out
    mt.equal(lost["truncated_stacks"], lost["unplaced_stacks"], "stacks that were cut")
    mt.equal(lost["unplaced_stacks"] == 0, fits, "all stacks are whole: %s" % lost)
    mt.equal("no room for the call tree; record with a larger --limit" in text, not fits, text)
    mt.check("no room for the call tree" in trace.summary() or fits, trace.summary())


@mt.variants("mount", "directory")
def case_read_only(what):
    if what == "mount":
        with Mounted("tmpfs", 1 << 20, read_only=True) as path:
            mt.check(not run(os.path.join(path, "t")).exists(), "a trace on a read-only mount?")
    else:
        mt.check(not run("/proc/nothing/t").exists(), "a trace in /proc?")


def case_output_is_a_file():
    path = os.path.join(mt.scratch(), "file")
    open(path, "w").close()
    run(path)
    mt.equal(os.path.getsize(path), 0)
    mt.Trace(path + ".2").intact()


def limited(what, value):
    def set_limit():
        resource.setrlimit(what, (value, value))
    return set_limit


@mt.variants(0, 4096, 100000, 1 << 20)
def case_rlimit_fsize(value):
    """Growing a file past the limit would raise SIGXFSZ."""
    trace = mt.Trace(os.path.join(mt.scratch("trace"), "t"))
    trace.patience = 2
    # Our own capture files obey the limit too: 4 KiB of output at most, so print little (busy does).
    preexec = limited(resource.RLIMIT_FSIZE, value)
    want = subprocess.run(BUSY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=preexec, env=mt.clean_env())
    got = subprocess.run(BUSY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=preexec,
                         env=mt.shim_env(trace.path), timeout=60)
    mt.equal((got.returncode, got.stdout, got.stderr), (want.returncode, want.stdout, want.stderr))
    trace.settle()
    if trace.files(".info") or trace.files(".trace"):
        lossy(trace)
    else:
        mt.check(value < 1 << 20, "nothing was recorded: %s" % trace.files())


@mt.variants(3, 4, 5, 8)
def case_rlimit_nofile(value):
    def preexec():
        os.closerange(3, 256)
        resource.setrlimit(resource.RLIMIT_NOFILE, (value, value))
    run_with = lambda env: subprocess.run([BUSY[0]] + BUSY[1:], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env,
                                          close_fds=False, preexec_fn=preexec, timeout=60)
    trace = mt.Trace(os.path.join(mt.scratch("trace"), "t"))
    trace.patience = 2
    # The loader needs descriptors itself: link time decides whether it runs at all.
    want, got = run_with(mt.clean_env()), run_with(mt.shim_env(trace.path))
    if want.returncode != 7:
        mt.skip("the loader itself needs more than %d descriptors" % value)
    mt.equal((got.returncode, got.stdout), (want.returncode, want.stdout))
    if b"cannot be preloaded" not in got.stderr:
        mt.equal(got.stderr, want.stderr)
    if trace.files(".info") or trace.files(".trace"):
        trace.settle()
        mt.equal(trace.tool("check").status in (0, 1), True)


def case_descriptors_run_out_later():
    command = ["sh", "-c", "ulimit -n 6; exec " + " ".join(BUSY)]
    trace = run(command=command)
    trace.settle()
    mt.equal(trace.process("busy")["host"]["allocations"] + trace.report["losses"]["events"] >= COUNT, True)


@mt.variants(60, 100, 200)
def case_rlimit_as(mib):
    """Address space that is too small for what the shim would like to have."""
    preexec = limited(resource.RLIMIT_AS, mib << 20)
    trace = run(preexec_fn=preexec)
    trace.settle()
    mt.between(2 * COUNT - 3000, sum(known(trace)), 2 * COUNT - 2990, "operations known")


def case_writable_segment():
    """It counts against RLIMIT_DATA before the program has begun: large tables are mapped when recording begins."""
    headers = mt.plain(["readelf", "-lW", mt.SHIM]).out
    sizes = [int(line.split()[5], 16) for line in headers.splitlines() if line.split()[:1] == ["LOAD"] and " RW " in line]
    mt.check(len(sizes) == 1 and sizes[0] <= 384 << 10, "bytes of the writable segments: %s" % sizes)


@mt.variants(1, 2, 4, 64)
def case_rlimit_data(mib):
    command = [BUSY[0], "2000", "100", "300"]
    trace = run(command=command, preexec_fn=limited(resource.RLIMIT_DATA, mib << 20))
    if mib >= 4:
        mt.equal((trace.settle().tool("check").status, sum(known(trace))), (0 if mib > 4 else 1, 3900), "operations recorded or lost")
        return
    done = trace.tool("report")
    mt.check(done.status == 3 and "1 process had no memory for being recorded" in done.err, str(done))


def as_nobody(command):
    return [mt.need("setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups", "--", *command]


def reachable(path):
    """Can nobody get there? If not, what is needed is copied to a place where it can."""
    return mt.plain(as_nobody(["test", "-r", path])).status == 0


def case_unprivileged():
    mt.need_root()
    folder = mt.scratch("open")
    for name in (mt.SHIM, mt.MEMTRACE, BUSY[0]):
        if os.path.exists(name):
            shutil.copy(name, folder)
    os.chmod(folder, 0o777)
    os.chmod(os.path.dirname(folder), 0o755)
    command = as_nobody([os.path.join(folder, "busy")] + BUSY[1:])
    shim, output = os.path.join(folder, "libmemtrace.so"), os.path.join(folder, "t")
    if not reachable(shim):
        mt.skip("nobody can't reach %s" % folder)
    want = mt.plain(command, cwd=folder)
    # Preloaded into the program alone: its first process is nobody's.
    got = mt.plain(["env", *as_nobody([])[:-1], "--", "env", "LD_PRELOAD=" + shim, "MEMTRACE_OUTPUT=" + output,
                    os.path.join(folder, "busy")] + BUSY[1:], cwd=folder)
    mt.compare(want, got)
    trace = mt.Trace(output)
    trace.intact()
    mt.equal(trace.process("busy")["host"]["allocations"], COUNT)
    mt.equal({os.stat(os.path.join(output, f)).st_uid for f in trace.files()}, {65534})


@mt.variants("on", "exec", "fork")
def case_rights_are_given_up(what):
    """It is recorded on by what it has; who comes after it and can't be is counted, with the reason."""
    mt.need_root()
    if what == "exec" and not reachable(mt.SHIM):
        mt.skip("nobody can't reach %s" % mt.SHIM)
    trace = run(command=[mt.program("drops"), "200000", what][:3 if what != "on" else 2])
    trace.patience = None
    trace.settle()
    mt.check(trace.process("drops")["host"]["allocations"] >= 400001, "lost: %s" % trace.report["losses"])
    lost = trace.report["losses"]
    mt.equal((lost["events"], lost["unrecorded_processes"], lost["unrecorded_why"]), (0, 0, []) if what == "on" else (0, 1, ["rights"]))
    if what != "on":
        mt.check("no rights to the trace directory any more" in trace.tool("report").out, "the report does not say so")


def case_ring_is_cut_off():
    """What can't be read any more is a loss, and said to be damage."""
    alone = os.path.join(mt.scratch(), "libmemtrace.so")
    shutil.copy(mt.SHIM, alone)
    trace = mt.shimmed(BUSY, shim=alone).trace
    os.truncate(os.path.join(trace.path, trace.files(".ring")[0]), 20 << 18)
    mt.execute([mt.MEMTRACE, "record", trace.path])
    lost = trace.report["losses"]
    events = sum(known(trace))
    mt.equal(lost["events_why"], ["damage"])
    # How many there were in the last chunk, nobody knows.
    mt.between(2 * COUNT - 3000 - 8190, events, 2 * COUNT, "events, read and lost")


def case_privileges_are_dropped():
    """root starts it, the rest runs as nobody, who may not write to the session."""
    mt.need_root()
    if not reachable(BUSY[0]) or not reachable(mt.SHIM):
        mt.skip("nobody can't reach %s" % BUSY[0])
    trace = run(command=as_nobody(BUSY))
    mt.check(trace.exists(), "no trace")


mt.main()
