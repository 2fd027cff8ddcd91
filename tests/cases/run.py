#!/usr/bin/env python3
"""memtrace run and env: flags are the variables, the command is what it is, and nothing starts that would not be recorded."""
import json
import os
import shutil
import signal
import subprocess
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

BUSY = [mt.program("busy"), "20000", "1000", "300"]
TOUCH = "started"


def where(trace):
    """What run ends with."""
    return "memtrace: the trace is in %s\n" % trace.path


def refused(command, cwd, tool=mt.MEMTRACE, status=3):
    """Nothing is started, one line says why."""
    done = mt.execute([tool, "run", "--", *command], cwd=cwd)
    mt.equal(done.status, status, "exit status of %s" % done)
    mt.equal(len(done.err.splitlines()), 1, "lines in %r" % done.err)
    mt.check(not os.path.exists(os.path.join(cwd, TOUCH)), "it was started all the same")
    mt.equal([f for f in os.listdir(cwd) if f.startswith("memtrace-")], [], "traces left behind")


def build_c(folder, *flags):
    path = os.path.join(folder, "program")
    source = '#include <fcntl.h>\nint main(void) { return open("%s", O_CREAT | O_WRONLY, 0600) < 0; }' % TOUCH
    made = mt.execute(["cc", "-x", "c", "-", "-o", path, *flags], stdin=source.encode())
    if made.status:
        mt.skip("cc %s: %s" % (" ".join(flags), made.err.strip().splitlines()[-1]))
    return path


def case_missing_command():
    """As of a shell: 127."""
    refused(["/nonexistent/program"], mt.scratch(), status=127)
    refused(["/etc/passwd/program"], mt.scratch(), status=127)
    refused(["nosuchcommandatall"], mt.scratch(), status=127)


def case_command_that_is_none():
    """As of a shell: 126."""
    refused(["/etc/passwd"], mt.scratch(), status=126)
    refused(["/etc"], mt.scratch(), status=126)


def case_no_command():
    mt.equal(mt.execute([mt.MEMTRACE, "run"]).status, 2)


def case_static_program():
    cwd = mt.scratch()
    refused([build_c(cwd, "-static")], cwd)


def case_setuid_program():
    cwd = mt.scratch()
    path = build_c(cwd)
    os.chmod(path, 0o4755)
    if os.geteuid() == 0:
        os.chown(path, 65534, 65534)
        os.chmod(path, 0o4755)
    else:
        mt.skip("the program would be set-uid to ourselves: needs root")
    refused([path], cwd)


def case_library_is_missing():
    cwd = mt.scratch()
    tool = shutil.copy(mt.MEMTRACE, mt.scratch())
    refused([build_c(cwd)], cwd, tool)


def case_script():
    cwd = mt.scratch()
    path = os.path.join(cwd, "script")
    with open(path, "w") as file:
        file.write("#!/bin/sh\nexec %s\n" % " ".join(BUSY))
    os.chmod(path, 0o755)
    done = mt.supervised([path])
    mt.equal((done.status, done.trace.process("busy")["host"]["allocations"]), (7, 20000))


def case_flags():
    done = mt.supervised(BUSY, "--depth=3", "--no-report")
    mt.equal((done.status, done.err), (7, where(done.trace)))
    mt.between(2, max(len([f for f in s["stack"] if not f["inlined"]]) for s in done.trace.sites()), 3, "frames")
    done = mt.supervised(["sh", "-c", " ".join(BUSY)], "--exclude", "busy", "--stacks", "none")
    mt.equal([p["name"] for p in done.trace.processes], ["sh"])


def case_says_where_the_trace_is():
    """As it can be named from here: at the end, and at the start if it is not the name that was asked for or --verbose."""
    cwd = mt.scratch()
    run = lambda *options: mt.execute([mt.MEMTRACE, "run", "--no-report", *options, "--", *BUSY], cwd=cwd).err.splitlines()
    path = os.path.join(cwd, "t")
    mt.equal(run("-o", "t"), ["memtrace: the trace is in t"])
    mt.equal(run("-o", "t"), ["memtrace: %s exists: recording to %s.2" % (path, path), "memtrace: the trace is in t.2"])
    lines = run("-o", "u", "-v")
    mt.equal((lines[0], lines[-1]), ("memtrace: recording to %s" % os.path.join(cwd, "u"), "memtrace: the trace is in u"))
    mt.check(run("-o", "/tmp/%s/t" % os.path.basename(cwd))[-1].endswith("/tmp/%s/t" % os.path.basename(cwd)), "elsewhere")
    shutil.rmtree("/tmp/" + os.path.basename(cwd))


@mt.variants("file", "a/file")
def case_output_is_a_file(name):
    cwd = mt.scratch()
    path = os.path.join(cwd, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, "w").close()
    done = mt.execute([mt.MEMTRACE, "run", "-o", name, "--", "touch", TOUCH], cwd=cwd)
    mt.equal((done.status, done.out), (2, ""))
    mt.check(len(done.err.splitlines()) == 1 and path in done.err and "is no directory" in done.err, done.err)
    mt.equal(sorted(os.listdir(cwd)), [name.split("/")[0]])


def case_streams():
    """Standard input reaches the command, its output is not mixed with the report."""
    done = mt.supervised(["sh", "-c", "cat; echo oops >&2"], stdin=b"given\n")
    mt.equal((done.status, done.out), (0, "given\n"))
    mt.check(done.err.startswith("oops\n") and "HOST MEMORY" in done.err, "stderr is %r" % done.err)


@mt.variants("TERM", "HUP", "USR1")
def case_signals_are_passed_on(name):
    path = os.path.join(mt.scratch("trace"), "t")
    cwd = mt.scratch()
    script = "trap 'echo got it; exit 5' %s; : > ready; while :; do sleep 0.05; done" % name
    child = subprocess.Popen([mt.MEMTRACE, "run", "-o", path, "--no-report", "--", "sh", "-c", script], cwd=cwd,
                             env=mt.clean_env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    mt.until(lambda: os.path.exists(os.path.join(cwd, "ready")), "the command")
    child.send_signal(getattr(signal, "SIG" + name))
    out, err = child.communicate(timeout=mt.WAIT)
    mt.equal((child.returncode, out, err.decode()), (5, b"got it\n", where(mt.Trace(path))))


def case_default_signals():
    """The command's own SIGINT and SIGQUIT work as usual."""
    for sig in ("INT", "QUIT", "PIPE"):
        want = mt.plain(["sh", "-c", "ulimit -c 0; kill -%s $$; echo alive" % sig])
        got = mt.supervised(["sh", "-c", "ulimit -c 0; kill -%s $$; echo alive" % sig], "--no-report")
        mt.equal((got.status, got.out), (128 - want.status, want.out), sig)


def case_the_command_may_leave_children():
    """`memtrace run` ends with the command; what goes on is recorded on."""
    done = mt.supervised(["sh", "-c", "(sleep 0.7; %s) >/dev/null & echo left" % " ".join(BUSY)], "--no-report")
    mt.equal((done.status, done.out), (0, "left\n"))
    ended = lambda: [p for p in mt.Trace(done.trace.path).processes if p["name"] == "busy" and p["exit"]["kind"] == "exit"]
    mt.equal(mt.until(ended, "the end of what was left")[0]["host"]["allocations"], 20000)


def case_what_has_ended_is_whole():
    """Whoever reads while a process ends is not told of its end before its last events."""
    folder = mt.scratch("trace")

    def ended(path):
        done = mt.execute([mt.MEMTRACE, "report", "--json", path])
        found = json.loads(done.out)["processes"] if done.status == 0 else []
        return [p for p in found if p["exit"]["kind"] == "exit"]

    for attempt in range(40):
        path = os.path.join(folder, str(attempt))  # a recorder may still be at work in the last one
        with subprocess.Popen(BUSY, env=mt.shim_env(path), stdout=subprocess.DEVNULL) as child:
            mt.equal(mt.until(lambda: ended(path), "the end", pause=0)[0]["host"]["allocations"], 20000, "attempt %d" % attempt)
        mt.equal(child.returncode, 7)


def case_env():
    path = os.path.join(mt.scratch("trace"), "it's a trace")
    script = 'eval "$(%s env -o "$1" --depth 4)"; shift; "$@"; echo $?' % mt.MEMTRACE
    done = mt.plain(["sh", "-c", script, "sh", path, *BUSY])
    mt.equal(done.out.splitlines()[-1], "7")
    mt.equal(mt.Trace(path).intact().process("busy")["host"]["allocations"], 20000)


def case_bad_options():
    for bad in (["--stacks=some"], ["--limit=lots"], ["--nonsense"], ["--depth=0"]):
        done = mt.execute([mt.MEMTRACE, "run", *bad, "--", "true"])
        mt.equal((done.status, len(done.err.splitlines())), (2, 1), " ".join(bad))


mt.main()
