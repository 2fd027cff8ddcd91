"""What the cases share: run a command with and without the shim, compare, and read what was recorded.

    import mt
    def case_malloc():
        trace = mt.same([mt.program("busy"), "100"])      # output and status equal a plain run's
        mt.equal(trace.host["allocations"], 100)
    mt.main()

Each function case_* is one check: it passes unless it raises. mt.fail() and mt.equal() raise with the why, mt.skip() ends it as skipped.
Every run gets a fresh working directory; the trace goes next to it.
"""
import concurrent.futures
import contextlib
import functools
import json
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(TOP, os.environ.get("B", "build"))
INDEX = os.path.abspath(os.environ["INDEX"]) if os.environ.get("INDEX") else "0"  # INDEX=FOLDER tests/run NAME: an index of each trace that is read
SHIM = os.path.join(BUILD, "libmemtrace.so")
MEMTRACE = os.path.join(BUILD, "memtrace")
VENV = os.path.join(TOP, os.environ.get("VENV", "build/venv"))
WAIT = 300  # seconds after which a command hangs, beside a machine that is busy
DISMISSES = True  # recorders that only linger; that they go by themselves: recorder.py
BEGINS_WITHIN = 1  # seconds, in which a recorder says that it is there


class Fail(Exception):
    pass


class Skip(Exception):
    pass


def fail(why):
    raise Fail(why)


def skip(why):
    raise Skip(why)


def equal(got, want, what=""):
    if got != want:
        fail("%s%s%r, not %r" % (what, " is " if what else "", got, want))


def check(truth, why):
    if not truth:
        fail(why)


def between(low, value, high, what=""):
    if not low <= value <= high:
        fail("%s is %r, not within %r and %r" % (what or "value", value, low, high))


# ---- running --------------------------------------------------------------------------------------------------


def program(name):
    path = os.path.join(BUILD, "tests/programs", name)
    if not os.path.exists(path):
        fail("%s is not built" % path)
    return path


def library(name):
    """Full path of a shared library of this machine, or skip."""
    listing = subprocess.run(["/sbin/ldconfig", "-p"], stdout=subprocess.PIPE, text=True).stdout
    for line in listing.splitlines():
        words = line.split()
        if words and words[0] == name and "x32" not in line:
            return words[-1]
    skip("%s is not installed" % name)


def need(command):
    found = shutil.which(command) or shutil.which(command, path="/usr/sbin:/sbin:/usr/bin:/bin")
    if not found:
        skip("%s is not installed" % command)
    return found


def need_root():
    if os.geteuid() != 0:
        skip("needs root")


def python():
    """A real python binary (not a wrapper script), that of the virtual environment when there is one."""
    for path in (os.path.join(VENV, "bin/python"), sys.executable):
        if os.path.exists(path):
            return path
    skip("no python")


@functools.lru_cache(None)
def has_module(name):
    return subprocess.run([python(), "-c", "import " + name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


class Scratch:
    """One temporary directory for the whole test, removed at its end."""
    root, lock = None, threading.Lock()

    @classmethod
    def dir(cls, prefix="run"):
        with cls.lock:
            if cls.root is None:
                cls.root = tempfile.mkdtemp(prefix="memtrace-test-")
        return tempfile.mkdtemp(prefix=prefix + "-", dir=cls.root)

    @classmethod
    def remove(cls):
        if cls.root is not None:
            shutil.rmtree(cls.root, ignore_errors=True)


def scratch(prefix="run"):
    return Scratch.dir(prefix)


def clean_env(**more):
    """Without what would change a run, or what is printed where there is no terminal."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("MEMTRACE") and k not in ("LD_PRELOAD", "COLUMNS", "LINES")}
    if os.environ.get("RECORD"):  # all of a file's cases in another mode: RECORD=young tests/run NAME
        env["MEMTRACE_RECORD"] = os.environ["RECORD"]
    if os.environ.get("SAMPLE"):
        env["MEMTRACE_SAMPLE"] = os.environ["SAMPLE"]
    env.update({k: v for k, v in more.items() if v is not None})
    return env


def reads(command):
    return command[0] == MEMTRACE and command[1:2] not in (["run"], ["start"], ["record"])


def asking_env(command, **more):
    """Of a command that reads traces: names that another one looked up are kept, which is most of what a small trace costs. That they are the same
    without: symbol_cache.py."""
    return clean_env(**({"MEMTRACE_SYMBOL_CACHE": os.path.join(BUILD, "tests/symbols")} if reads(command) else {}), **more)


def shim_env(output, preload=(), shim=None, **more):
    """The environment of `LD_PRELOAD=libmemtrace.so MEMTRACE_OUTPUT=... command`."""
    return clean_env(LD_PRELOAD=" ".join([shim or SHIM, *preload]), MEMTRACE_OUTPUT=output, **more)


class Done:
    """A finished command."""

    def __init__(self, command, status, out, err):
        self.command, self.status, self.out, self.err = command, status, out, err

    def __repr__(self):
        return "%s: status %d, stdout %r, stderr %r" % (self.command, self.status, self.out[-600:], self.err[-600:])


def execute(command, env=None, cwd=None, stdin=None, timeout=WAIT, **popen):
    """Output goes to files: a recorder or stray child that kept a pipe open would make us wait."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, tempfile.TemporaryFile() as given:
        if stdin is not None:
            given.write(stdin)
            given.seek(0)
        begin = time.monotonic(), processor_seconds()
        env = dict(env or asking_env(list(command)))
        if reads(list(command)):
            env.setdefault("MEMTRACE_INDEX", INDEX)
        child = subprocess.Popen(command, env=env, cwd=cwd or scratch(), stdin=given, stdout=out,
                                 stderr=err, start_new_session=True, **popen)
        try:
            status = child.wait(timeout)
        except subprocess.TimeoutExpired:
            where = stuck(child.pid)
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            err.seek(0)
            fail("%s hangs (%s) after printing to stderr %r" % (command, where, err.read()[-400:]))
        out.seek(0)
        err.seek(0)
        timed(" ".join(map(str, command)), begin)
        return Done(command, status, out.read().decode(errors="replace"), err.read().decode(errors="replace"))


def stuck(pid):
    """Where a hanging process stands, as far as the kernel tells."""
    try:
        with open("/proc/%d/wchan" % pid) as file:
            return "wchan " + file.read()
    except OSError as error:
        return str(error)


def plain(command, preload=(), env=None, **options):
    more = dict(env or {})
    if preload:
        more["LD_PRELOAD"] = " ".join(preload)
    return execute(command, env=clean_env(**more), **options)


def shimmed(command, preload=(), env=None, output=None, shim=None, **options):
    """Runs under the shim; the result has .trace (whose directory may not exist if nothing could be recorded)."""
    output = output or os.path.join(scratch("trace"), "t")
    done = execute(command, env=shim_env(output, preload, shim, **(env or {})), **options)
    done.trace = Trace(output)
    return done


def supervised(command, *options, env=None, **more):
    """`memtrace run`; its own report goes to stderr after the command's output."""
    output = os.path.join(scratch("trace"), "t")
    done = execute([MEMTRACE, "run", "-o", output, *options, "--", *command], env=clean_env(**(env or {})), **more)
    done.trace = Trace(output)
    return done


def compare(want, got):
    for what in ("status", "out", "err"):
        a, b = getattr(want, what), getattr(got, what)
        if a != b:
            fail("%s under the shim is %r, without it %r (%s)" % (what, clip(b), clip(a), got))


def clip(value):
    return value if not isinstance(value, str) or len(value) < 600 else value[:200] + " ... " + value[-400:]


def same(command, preload=(), env=None, intact=True, **options):
    """Output and exit status are what they are without the shim; returns the trace, which must be intact."""
    want = plain(command, preload=preload, env=env, **options)
    got = shimmed(command, preload=preload, env=env, **options)
    compare(want, got)
    if intact:
        got.trace.intact()
    return got.trace


# ---- traces ---------------------------------------------------------------------------------------------------

def check_shares(screen):
    """A share is of something that holds it, whatever the screen is about."""
    for found in re.finditer(r" %(?=\s|$)", screen):  # begins with what is rare: some screens have a million lines
        share = re.search(r"(?<![\w.-])\d+(?:\.\d+)?$", screen[max(0, found.start() - 40):found.start()])
        check(not share or float(share[0]) <= 100, "a share above 100 %%: %s" % screen[max(0, found.start() - 200):found.end()])


def check_healthy(path, screen):
    """Nothing is said not to grow where a kind of memory did: agree.py."""
    if "nothing goes on growing" in screen:
        import agree  # which needs all of this
        agree.check_nothing(path, screen)


class Trace:
    def __init__(self, path):
        self.path = path
        self.patience = None
        self._asked = {}

    def exists(self):
        return os.path.isdir(self.path)

    def files(self, ending=""):
        return sorted(f for f in os.listdir(self.path) if f.endswith(ending)) if self.exists() else []

    def bytes(self):
        """Disk the trace takes."""
        return sum(os.lstat(os.path.join(self.path, f)).st_blocks * 512 for f in self.files())

    def bytes_now(self):
        """The same while files come and go."""
        total = 0
        for entry in os.scandir(self.path) if self.exists() else ():
            try:
                total += entry.stat(follow_symlinks=False).st_blocks * 512
            except FileNotFoundError:
                pass
        return total

    def recorder(self):
        """Pid of the recorder at work, or 0."""
        try:
            with open(os.path.join(self.path, "session"), "rb") as file:
                head = file.read(4096)
        except OSError:
            return 0
        if len(head) < 4096:
            return 0  # is just being made
        pid = struct.unpack_from("<I", head, session_offset("recorder_pid"))[0]
        return pid if pid and alive(pid) else 0

    def is_new(self):
        """A recorder may be about to begin: none has begun, or ended, yet, and one was started, or a process is left that
        may start one."""
        with contextlib.suppress(OSError, struct.error), open(os.path.join(self.path, "session"), "rb") as file:
            head = file.read(4096)
            pid, ended, beat = (struct.unpack_from(form, head, session_offset(field))[0] for form, field in
                                (("<I", "recorder_pid"), ("<Q", "ended_ticks"), ("<Q", "recorder_beat_ns")))
            return not pid and not ended and (beat != 0 or self.has_processes())
        return False

    def where(self):
        """The folder of what is not compressed yet."""
        with open(os.path.join(self.path, "session"), "rb") as file:
            return file.read(4096)[session_offset("ring_dir"):].split(b"\0", 1)[0].decode() or self.path

    def has_processes(self):
        """Are there such as write to it? Of one that has just been forked only its environment tells."""
        known = [int(found[1]) for found in map(re.compile(r"(\d+)-\d+\.info$").search, os.listdir(self.where())) if found]
        path = self.path.encode()
        return any(map(alive, known)) or any(path in environment_of(pid) for pid in filter(str.isdigit, os.listdir("/proc")))

    def dismiss(self):
        """Ends a recorder that has nothing left to do but to wait a second for another process."""
        with contextlib.suppress(OSError, struct.error), open(os.path.join(self.path, "session"), "rb") as file:
            head = file.read(4096)
            pid, limit, used = (struct.unpack_from(form, head, session_offset(field))[0] for form, field in
                                (("<I", "recorder_pid"), ("<Q", "limit_bytes"), ("<Q", "used_bytes")))
            with open("/proc/%d/cmdline" % pid, "rb") as file:
                is_it = file.read().split(b"\0")[1:3] == [b"record", self.path.encode()]
            left = [name for name in os.listdir(self.where()) + self.files() if name.endswith((".info", ".ring", ".nodes", ".fold"))]
            if is_it and not left and (not limit or used < limit // 2) and not self.has_processes():
                os.kill(pid, signal.SIGTERM)

    def settle(self, seconds=40):
        """Waits until no recorder works on it any more, also where it begins behind the program's end. (One that can't write what is left takes
        long to give up: set .patience to read what there is after so many seconds.)"""
        begins = time.monotonic() + BEGINS_WITHIN
        end = time.monotonic() + min(seconds, self.patience or seconds)
        while self.recorder() or (self.is_new() and time.monotonic() < begins):
            if time.monotonic() > end:
                check(self.patience, "the recorder %d of %s goes on %d s after the last process ended" %
                      (self.recorder(), self.path, seconds))
                break
            if DISMISSES:
                self.dismiss()
            time.sleep(0.02)
        return self

    def tool(self, *arguments, timeout=WAIT):
        """A report is the full one: summary() is the other."""
        command, *options = arguments
        if command == "report" and "--json" not in options:
            options = ["--all", *options]
        done = execute([MEMTRACE, command, *options, self.path], timeout=timeout)
        check_healthy(self.path, done.out)
        if command in ("report", "peak", "leaks", "live", "frag", "timeline", "whatif"):
            check_shares(done.out)
        return done

    def summary(self, *options, columns=None, rows=None):
        """The text of `memtrace report`, at a terminal of that size."""
        size = {"COLUMNS": columns and str(columns), "LINES": rows and str(rows)}
        command = [MEMTRACE, "report", *options, self.path]
        done = execute(command, env=asking_env(command, **size))
        check(done.status == 0, "the report failed: %s" % done)
        check_healthy(self.path, done.out)
        check_shares(done.out)
        return done.out

    def json(self, *arguments):
        done = self.tool(*arguments, "--json")
        if done.status != 0:
            fail("memtrace failed: %s" % done)
        try:
            return json.loads(done.out)
        except ValueError as error:
            fail("memtrace %s printed no JSON: %s: %r" % (" ".join(arguments), error, done.out[:300]))

    def asked(self, *arguments):
        """The JSON of a trace that changes no more, made once."""
        if arguments not in self._asked:
            self.settle()
            self._asked[arguments] = self.json(*arguments)
            # tests/long/agreement.py; of what still runs each command has more than the one before
            if arguments == ("report",) and os.environ.get("AGREE") and all(p["state"] != "running" for p in self._asked[arguments]["processes"]):
                import agree
                agree.check_all(self.path, page=False)
        return self._asked[arguments]

    @property
    def report(self):
        return self.asked("report")

    @property
    def text(self):
        """Of the full report."""
        if "text" not in self._asked:
            self.settle()
            self._asked["text"] = self.tool("report").out
        return self._asked["text"]

    @property
    def host(self):
        return self.report["host"]

    @property
    def processes(self):
        return self.report["processes"]

    def process(self, name=None, pid=None):
        found = [p for p in self.processes if name in (None, p["name"]) and pid in (None, p["pid"])]
        if len(found) != 1:
            fail("%d processes are %s/%s: %s" % (len(found), name, pid, [(p["pid"], p["name"]) for p in self.processes]))
        return found[0]

    def losses(self):
        return {k: v for k, v in self.report["losses"].items() if v}

    def intact(self):
        """`memtrace check` has no complaint and nothing was lost."""
        check(self.exists(), "there is no trace at %s" % self.path)
        self.settle()
        done = self.tool("check")
        check(done.status == 0, "memtrace check complains: %s" % done)
        lost = {k: v for k, v in self.losses().items() if k != "truncated_stacks"}
        check(not lost, "something was lost: %s" % lost)
        return self

    def sites(self, command="leaks"):
        return self.json(command, "-n", "100000")["sites"]


def fold(trace):
    """As if the limit were near: a recorder comes, folds what is there, and goes."""
    size = sum(os.path.getsize(os.path.join(trace.path, f)) for f in trace.files(".trace"))
    for field, value in (("limit_bytes", 4 * size), ("used_bytes", 4 * size - size * 11 // 10), ("trace_bytes", size)):
        with open(os.path.join(trace.path, "session"), "r+b") as file:
            file.seek(session_offset(field))
            file.write(struct.pack("<Q", value))
    done = execute([MEMTRACE, "record", trace.path])
    equal((done.status, done.out, done.err), (0, "", ""), "memtrace record")
    trace._asked = {}
    return trace


def tally(text):
    """The numbers of a program's TALLY line (tests/programs/tally.h)."""
    for line in text.splitlines():
        if line.startswith("TALLY "):
            words = line.split()[1:]
            return {k: int(v) for k, v in zip(words[::2], words[1::2])}
    fail("no TALLY in %r" % text[-300:])


def match(figures, wanted, overhead=None):
    """The report's figures are the tally (plus what the same program does without the operations counted)."""
    wrong = {k: (figures[k], v + (overhead or {}).get(k, 0)) for k, v in wanted.items()
             if figures[k] != v + (overhead or {}).get(k, 0)}
    check(not wrong, "report, tally: %s" % wrong)


def blocks_of(sites, function, library=None):
    """Live (bytes, blocks) of all stacks that go through a function."""
    rows = [s for s in sites if any(f["function"] == function and library in (None, os.path.basename(f["library"] or ""))
                                    for f in s["stack"])]
    return sum(s["bytes"] for s in rows), sum(s["blocks"] for s in rows)


def alive(pid):
    """A process is alive while one of its threads is: the first thread of a killed one may be a zombie before the others end."""
    def runs(task):
        with contextlib.suppress(OSError), open("/proc/%d/task/%s/stat" % (pid, task)) as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"

    try:
        return any(map(runs, os.listdir("/proc/%d/task" % pid)))
    except OSError:
        return False


def environment_of(pid):
    """Nothing, where it may not be read."""
    with contextlib.suppress(OSError), open("/proc/%s/environ" % pid, "rb") as file:
        return file.read()
    return b""


def until(truth, what, pause=0.02, seconds=WAIT):
    """Waits until truth() is true, and returns what it was."""
    end = time.monotonic() + seconds
    while True:
        value = truth()
        if value:
            return value
        check(time.monotonic() < end, "waited %d s for %s" % (seconds, what))
        time.sleep(pause)


def of_group(group):
    """Pids of the processes alive in a process group; a child that its parent's end left behind stays in it."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % pid) as file:
                words = file.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(words[2]) == group and words[0] not in "ZX":
            found.append(int(pid))
    return found


@functools.lru_cache(None)
def session_offset(field):
    return offsets("struct mt_session", field)


@functools.lru_cache(None)
def offsets(struct_name, field):
    """The offset of a field, asked of the compiler so that format.h stays the only place that knows: once for each
    format.h, for all tests."""
    header = os.path.join(TOP, "format/format.h")
    name = re.sub(r"\W+", "_", "%s %s %d" % (struct_name, field, os.stat(header).st_mtime_ns))
    kept = os.path.join(BUILD, "tests/offsets", name)
    with contextlib.suppress(OSError, ValueError), open(kept, encoding="ascii") as file:
        return int(file.read())
    source = '#include <stdio.h>\n#include <stddef.h>\n#include "format/format.h"\n' \
             'int main(void) { printf("%%zu", offsetof(%s, %s)); }' % (struct_name, field)
    binary = os.path.join(scratch("offset"), "a")
    subprocess.run(["cc", "-I" + TOP, "-x", "c", "-", "-o", binary], input=source.encode(), check=True)
    offset = int(subprocess.run([binary], stdout=subprocess.PIPE, check=True).stdout)
    with contextlib.suppress(OSError):
        os.makedirs(os.path.dirname(kept), exist_ok=True)
        with open("%s-%d" % (kept, os.getpid()), "w", encoding="ascii") as file:
            file.write(str(offset))
        os.replace(file.name, kept)
    return offset


# ---- main -----------------------------------------------------------------------------------------------------


def say(line):
    sys.stdout.write(line + "\n")  # at once: other cases may be at work
    sys.stdout.flush()


def processor_seconds():
    """Of this test and the commands that it ran, without recorders."""
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def timed(what, begin):
    if os.environ.get("TIMES"):
        say("# %6.1f s, %6.1f s of processor time  %s" % (time.monotonic() - begin[0], processor_seconds() - begin[1], what[-120:].replace("\n", " ")))


def run_case(name, function, arguments=()):
    begin = time.monotonic(), processor_seconds()
    good = tried(name, function, arguments)
    timed(name, begin)
    return good


def tried(name, function, arguments):
    try:
        function(*arguments)
        say("ok - " + name)
        return True
    except Skip as why:
        say("skip - %s: %s" % (name, why))
        return True
    except Fail as why:
        say("not ok - %s: %s" % (name, why))
    except Exception as error:  # a case that breaks is a failed case, the others still run
        where = traceback.extract_tb(error.__traceback__)
        say("not ok - %s: %s: %s at %s" % (name, type(error).__name__, error,
                                           ", ".join("%s:%d" % (os.path.basename(f.filename), f.lineno) for f in where[-4:])))
    return False


def main(prefix="case_", at_once=1):
    """Runs the functions case_* of the test's module (those named on the command line) and exits. Where they mostly wait, some may
    run AT_ONCE. What is marked as long runs where it is named, or under tests/run --long."""
    module = sys.modules["__main__"]
    wanted = sys.argv[1:]
    base = os.path.splitext(os.path.basename(module.__file__))[0]
    cases = []
    for name, function in vars(module).items():
        short = name[len(prefix):]
        if name.startswith(prefix) and callable(function) and (not wanted or short in wanted):
            every = getattr(function, "variants", [()])
            if short in wanted or os.environ.get("LONG"):
                every = every + getattr(function, "long_variants", [])
            cases += [(" ".join([base, short.replace("_", " ")] + [str(a) for a in arguments]), function, arguments)
                      for arguments in every]
    if not cases:
        sys.exit("no case is called %s" % " or ".join(wanted) if wanted else "no case but long ones")
    try:
        if at_once > 1:
            with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
                good = all(list(pool.map(lambda case: run_case(*case), cases)))
        else:
            good = all([run_case(*case) for case in cases])
    finally:
        say("# %.1f s of processor time" % processor_seconds())
        Scratch.remove() if not os.environ.get("KEEP") else print("# kept " + str(Scratch.root))
    sys.exit(0 if good else 1)


def commands():
    """Those that memtrace --help lists; two may share a line."""
    listed = execute([MEMTRACE, "--help"], env=clean_env())
    return [name for names in re.findall(r"^  ([\w|]+) +\S", listed.out, re.M) for name in names.split("|")]


def once(function):
    """Of the same arguments one call, for all cases that want it, also those that run at the same time, and where it fails."""
    calls, lock = {}, threading.Lock()

    @functools.wraps(function)
    def kept(*arguments, **named):
        with lock:
            call = calls.setdefault((arguments, *sorted(named.items())), [threading.Lock()])
        with call[0]:
            if len(call) == 1:
                try:
                    call += [function(*arguments, **named), None]
                except Exception as error:
                    call += [None, error]
        if call[2]:
            raise call[2]
        return call[1]
    return kept


def variants(*tuples, long=()):
    """Runs the case once per tuple of arguments; for those of LONG in check-long alone."""
    def mark(function):
        function.variants, function.long_variants = ([t if isinstance(t, tuple) else (t,) for t in some] for some in (tuples, long))
        return function
    return mark


def long(function):
    """A case of check-long."""
    return variants(long=[()])(function)
