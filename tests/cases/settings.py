#!/usr/bin/env python3
"""MEMTRACE_* and the options that are the same: what can't be read is said, once, and never means something else."""
import functools
import os
import struct
import subprocess
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

BUSY = [mt.program("busy"), "2000", "100", "300"]
LIMIT = 48  # offset of limit_bytes in the session


@functools.lru_cache(None)
def trace():
    return mt.same(BUSY)


def limit_of(trace):
    with open(os.path.join(trace.path, "session"), "rb") as file:
        return struct.unpack_from("<Q", file.read(4096), LIMIT)[0]


@mt.variants(("1.5G", 3 << 29), ("2GiB", 2 << 30), ("300mb", 300 << 20), ("0.5T", 1 << 39), ("0", 0))
def case_one_reader_of_sizes(text, bytes_):
    mt.equal(limit_of(mt.same(BUSY, env={"MEMTRACE_LIMIT": text})), bytes_, "read by the shim")
    done = mt.supervised(BUSY, "--no-report", "--limit", text)
    mt.equal((done.status, limit_of(done.trace)), (7, bytes_), "given to run")


WRONG = [("MEMTRACE_LIMIT", "1.5X", "is no number of bytes (512K, 1.5G); it is 4G now"), ("MEMTRACE_KEEP_FREE", "-1", "is no number of bytes (512K, 1.5G); it is 1G now"),
         ("MEMTRACE_SAMPLE", "1e3", "is no number of bytes (512K, 1.5G); it is 512K now"), ("MEMTRACE_SAMPLE_SEED", "x", "is no whole number; it is 0 now"),
         ("MEMTRACE_DEPTH", "10K", "is not between 1 and 4096; it is 1024 now"), ("MEMTRACE_DEPTH", "\033[31m", "is not between 1 and 4096; it is 1024 now"),
         ("MEMTRACE_STACKS", "loudly", "is not all, sample or none; it is all now"), ("MEMTRACE_CHILDREN", "2", "is not 0 or 1; it is 1 now"),
         ("MEMTRACE_RECORD", "some", "is not all, young, auto or sampled; it is auto now"), ("MEMTRACE_PAUSED", "maybe", "is not 0 or 1; it is 0 now")]


@mt.variants(*WRONG)
def case_shim_says_so_and_goes_on(name, value, why):
    """The first process of a session, not its children nor the next command of a script."""
    script = ["sh", "-c", "%s; %s; exit 7" % (" ".join(BUSY), " ".join(BUSY))]
    got = mt.shimmed(script, env={name: value})
    mt.equal((got.status, got.out), (7, mt.plain(script).out), "status and output")
    mt.equal(got.err, "memtrace: %s: '%s' %s\n" % (name, value.replace("\033", "?"), why), "stderr")
    mt.equal(got.trace.intact().host["allocations"] >= 4000, True, "it is recorded")
    mt.equal(limit_of(got.trace), 4 << 30)


@mt.variants("closed", "broken", "full")
def case_nobody_is_waited_for(how):
    """Who should read stderr has gone, or does not: the line is dropped, and the program neither waits nor is killed."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while how == "full" and os.write(writer, bytes(4096)):
            pass
    except BlockingIOError:
        os.set_blocking(writer, True)
    if how != "full":
        os.close(reader)
    output = os.path.join(mt.scratch("trace"), "t")
    done = subprocess.run(BUSY, env=mt.shim_env(output, MEMTRACE_LIMIT="x"), stdout=subprocess.PIPE, stderr=writer, timeout=20,
                          preexec_fn=(lambda: os.close(2)) if how == "closed" else None)
    mt.equal(done.returncode, 7)
    mt.Trace(output).intact()


@mt.variants(*WRONG)
def case_program_refuses(name, value, why):
    """Whether the option says it or the environment: before the command starts, in one line."""
    why = why[:why.rindex(";")]
    made = os.path.join(mt.scratch(), "made")
    done = mt.supervised(["touch", made], env={name: value})
    mt.equal((done.status, done.out, done.err.count("\n")), (2, "", 1), str(done))
    mt.check("%s: '" % name in done.err and why in done.err, done.err)
    option = "--" + name[9:].lower().replace("_", "-")
    if option not in ("--sample-seed", "--paused"):
        done = mt.supervised(["touch", made], "%s=%s" % (option, value))
        mt.equal((done.status, done.out, done.err.count("\n")), (2, "", 1), str(done))
        mt.check(option + ": " in done.err and "'" in done.err, done.err)
        done = mt.execute([mt.MEMTRACE, "env", "%s=%s" % (option, value)])
        mt.equal((done.status, done.out), (2, ""), "env")
    mt.check(not os.path.exists(made), "the command was started")


def case_switches_have_names_too():
    trace = mt.same(BUSY, env={"MEMTRACE_PAUSED": "yes", "MEMTRACE_CHILDREN": "off"})
    mt.equal(trace.host["allocations"], 0)


@mt.variants(("0.0", True), ("0s", True), ("0.0001ms", True), ("0h", True), *((t, False) for t in ("nan", "inf", "1e3", "0x10", "-1", "1.5G", "", "9999999999")))
def case_times(text, is_one):
    """Of --from; what --at and --to take is the same."""
    done = trace().tool("report", "--from", text)
    mt.equal((done.status, "is no time" in done.err), (0, False) if is_one else (2, True), str(done))


@mt.variants("0", "0.5", "500ms", "1X")
def case_every(text):
    done = trace().tool("live", "--every", text)
    mt.equal((done.status, done.err.count("\n")), (2, 1), str(done))


@mt.variants("nan%", "inf%", "0x10%", "1e1%", "%")
def case_percent(text):
    for command in (["live", "--alert", text], ["diff", "--fail-over", text, trace().path]):
        mt.equal(trace().tool(*command).status, 2, "status of %s" % command)


@mt.variants(("*" * 40 + "x", True), ("*a" * 30 + "b", True), ("b*y", False), ("?us?", False), ("*b*u*s*y*", False), ("busy*", False), ("bus", True),
             ("busyy", True), ("x,*:busy", False), ("", True))
def case_names_to_leave_out(globs, recorded):
    """However many stars: matching used to be exponential, before main."""
    longest = "a" * 200 + "busy"
    folder = mt.scratch("names")
    os.symlink(BUSY[0], os.path.join(folder, longest))
    mt.equal(mt.shimmed(BUSY, env={"MEMTRACE_EXCLUDE": globs}, timeout=10).trace.exists(), recorded)
    mt.equal(mt.shimmed([os.path.join(folder, longest), *BUSY[1:]], env={"MEMTRACE_EXCLUDE": globs}, timeout=10).status, 7)


@mt.variants(("MEMTRACE_OUPUT", "; did you mean MEMTRACE_OUTPUT?"), ("MEMTRACE_RINGDIR", "; did you mean MEMTRACE_RING_DIR?"),
             ("MEMTRACE_COLOUR_OF_SKY", " and has no effect"), ("MEMTRACE_", " and has no effect"), ("MEMTRACE_LIMIT", None), ("MEMTRACE_STANDIN_LOG", None),
             ("MEMTRACE_FILTERS", None), ("MEMTRACE_READ_MEMORY", None),
             ("MEMTRACES", None))
def case_names_that_nobody_reads(name, hint):
    """Said by who starts and who reports, not by the recorded program."""
    want = "memtrace: %s is no setting%s\n" % (name, hint) if hint else ""
    env = {name: "1G"}
    got = mt.shimmed(BUSY, env=env)
    mt.equal((got.status, got.err), (7, ""), "under the shim")
    got.trace.settle()
    mt.equal(mt.execute([mt.MEMTRACE, "report", got.trace.path], env=mt.clean_env(**env)).err, want, "report")
    mt.equal(mt.execute([mt.MEMTRACE, "env"], env=mt.clean_env(**env)).err, want, "env")
    err = mt.supervised(BUSY, env=env).err
    mt.equal((err.count("is no setting"), err.startswith(want)), (1 if hint else 0, True), "run: %s" % err[:200])


mt.main()
