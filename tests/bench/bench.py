"""Measuring: tracers, runs that count every process a tracer leaves behind, medians, and a table of ratios."""
import ctypes
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.path.join(TOP, os.environ.get("B", "build")))
VENV = os.path.abspath(os.path.join(TOP, os.environ.get("VENV", "build/venv")))
PYTHON = os.path.join(VENV, "bin/python")
MEMTRACE = os.path.join(BUILD, "memtrace")
SHIM = os.path.join(BUILD, "libmemtrace.so")
CHURN = os.path.join(BUILD, "tests/bench/churn")
THROUGH = os.path.join(BUILD, "tests/bench/through")
PROGRAMS = os.path.join(BUILD, "tests/programs")
HERE = os.path.join(TOP, "tests/bench")
SETTLE = 120  # seconds that a recorder may work on after its target ended

PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans():
    """A recorder is an orphan in a session of its own: as its adoptive parent we learn what CPU time it took."""
    if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError("prctl")


class Tracer:
    """How a command is run under something: preloaded, or behind a prefix."""

    def __init__(self, name, prefix=(), env=None, python_only=False, shim=None):
        self.name, self.prefix, self.env, self.python_only, self.shim = name, prefix, env, python_only, shim or SHIM

    def command(self, command, folder):
        if self.python_only:
            assert command[0] == PYTHON
            command = command[1:]
        return [p.replace("@", os.path.join(folder, "t")) for p in self.prefix] + command

    def environment(self, folder):
        env = {k: v for k, v in os.environ.items() if not k.startswith("MEMTRACE") and k != "LD_PRELOAD"}
        if self.env is not None:
            env.update(self.env, LD_PRELOAD=self.shim, MEMTRACE_OUTPUT=os.path.join(folder, "t"))
        return env


NONE = Tracer("none")
STACKS = Tracer("memtrace", env={})
SAMPLE = Tracer("sample", env={"MEMTRACE_STACKS": "sample"})
NATIVE = Tracer("native", env={"MEMTRACE_PYTHON": "0"})
ALWAYS = Tracer("always", env={"MEMTRACE_RECORD": "sampled"})
NO_STACKS = Tracer("no stacks", env={"MEMTRACE_STACKS": "none"})
HOLDERS = Tracer("holders", env={"MEMTRACE_HOLDERS": "1"})
WITHOUT_HOLDERS = Tracer("without", env={}, shim=os.path.join(os.path.dirname(SHIM), "without-holders/libmemtrace.so"))
PAUSED = Tracer("paused", env={"MEMTRACE_PAUSED": "1"})
HEAPTRACK = Tracer("heaptrack", ["heaptrack", "-o", "@"])
MEMRAY = Tracer("memray", [PYTHON, "-m", "memray", "run", "--native", "-q", "-f", "-o", "@"], python_only=True)


def find_library(name):
    for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib", "/usr/lib64"):
        if os.path.exists(os.path.join(folder, name)):
            return os.path.join(folder, name)
    return None


class Allocator(Tracer):
    """Another malloc, with its heap profiler or without."""

    def __init__(self, name, library, env):
        super().__init__(name)
        self.library, self.settings = library, env

    def environment(self, folder):
        env = super().environment(folder)
        env.update({k: v.replace("@", os.path.join(folder, "t")) for k, v in self.settings.items()}, LD_PRELOAD=self.library)
        return env


def profilers():
    """(without, with) for each allocator that is installed and has a sampled heap profiler; one sample in 512 KiB, as memtrace."""
    found = []
    jemalloc, tcmalloc = find_library("libjemalloc.so.2"), find_library("libtcmalloc.so.4")
    if jemalloc:
        found.append((Allocator("jemalloc", jemalloc, {}),
                      Allocator("jemalloc prof", jemalloc, {"MALLOC_CONF": "prof:true,lg_prof_sample:19,prof_final:true,prof_prefix:@"})))
    if tcmalloc:
        found.append((Allocator("tcmalloc", tcmalloc, {}), Allocator("tcmalloc sampled", tcmalloc, {"TCMALLOC_SAMPLE_PARAMETER": "524288"})))
    return found


def peers():
    found = []
    if shutil.which("heaptrack"):
        usage = subprocess.run(["heaptrack", "--help"], stdout=subprocess.PIPE, text=True, check=False).stdout
        if "--record-only" in usage:  # newer ones print their analysis otherwise
            HEAPTRACK.prefix.insert(1, "--record-only")
        found.append(HEAPTRACK)
    has_memray = subprocess.run([PYTHON, "-c", "import memray"], stderr=subprocess.DEVNULL, check=False).returncode == 0
    return found + ([MEMRAY] if has_memray else [])


class Run:
    """One finished run: what it printed as `bench NAME VALUE`, its wall time, and CPU seconds with and without helpers."""

    def __init__(self, folder, status, wall, own, total, rss, values):
        self.folder, self.status, self.wall, self.own, self.total, self.rss = folder, status, wall, own, total, rss
        self.values = values

    def __getitem__(self, name):
        return self.values[name]

    @property
    def trace(self):
        return os.path.join(self.folder, "t")

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)


def cpu(usage):
    return usage.ru_utime + usage.ru_stime


def reap(pid):
    """Waits for the command and then for every orphan it left; returns status, end time, CPU of it and of all, and its peak RSS in KiB."""
    status = end = own = rss = None
    total, deadline = 0.0, None
    while True:
        try:
            done, code, usage = os.wait4(-1, 0 if end is None else os.WNOHANG)
        except ChildProcessError:
            return status, end, own, total, rss
        if done == 0:
            if time.monotonic() > deadline:
                raise TimeoutError("a process outlives its target by %d s" % SETTLE)
            time.sleep(0.01)
            continue
        total += cpu(usage)
        if done == pid:
            status, end, own, rss = code, time.monotonic(), cpu(usage), usage.ru_maxrss
            deadline = end + SETTLE


def parse(text):
    words = (line.split() for line in text.splitlines() if line.startswith("bench "))
    return {w[1]: float(w[2]) for w in words if len(w) == 3}


def weighed(tracer, command, folder, to):
    """What a process was before exec counts as its own memory, and Python is large: a small program starts the command, and writes what it took."""
    settings = ["%s=%s" % v for v in tracer.environment(folder).items()]
    return [os.path.join(PROGRAMS, "weighs"), str(to), "1000000", "/usr/bin/env", "-i", *settings, *tracer.command(command, folder)]


def run(tracer, command, scratch, weigh=False):
    folder = tempfile.mkdtemp(prefix="run-", dir=scratch)
    with open(os.path.join(folder, "output"), "w+b") as output:
        start = time.monotonic()
        whole, env = tracer.command(command, folder), tracer.environment(folder)
        if weigh:
            whole, env = weighed(tracer, command, folder, output.fileno()), None
        child = subprocess.Popen(whole, env=env, cwd=folder, pass_fds=[output.fileno()] if weigh else [],
                                 stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        status, end, own, total, rss = reap(child.pid)
        child.returncode = status  # reaped behind its back
        output.seek(0)
        text = output.read().decode(errors="replace")
    if status != 0:
        raise RuntimeError("%s under %s: status %d: %s" % (command, tracer.name, status, text[-400:]))
    if weigh:
        status, _, rss = map(int, text.splitlines()[-1].split())
        if status != 0:
            raise RuntimeError("%s under %s: status %d: %s" % (command, tracer.name, status, text[-400:]))
    return Run(folder, status, end - start, own, total, rss, parse(text))


def answer(run_, command, index="0"):
    """The JSON of a command on a run's trace."""
    done = subprocess.run([MEMTRACE, command, "--json", run_.trace], stdout=subprocess.PIPE, check=True, env=dict(os.environ, MEMTRACE_INDEX=index))
    return json.loads(done.stdout)


def report(run_):
    return answer(run_, "report")


def host_events(figures):
    """Events of the host heap and of mappings; an event is an allocation, a free, or one that failed."""
    return sum(figures[kind].get(key, 0) for kind in ("host", "map") for key in ("allocations", "frees", "failed"))


def disk_bytes(folder):
    """Raw files are sparse."""
    files = [os.lstat(os.path.join(folder, name)) for name in os.listdir(folder)]
    return sum(min(file.st_size, file.st_blocks * 512) for file in files)


class Samples:
    """Values of one cell."""

    def __init__(self, values):
        self.values = sorted(values)

    @property
    def median(self):
        return statistics.median(self.values)

    def ratio(self, base):
        """Against the median of the base, with the spread of its own values."""
        low, mid, high = (v / base.median for v in (self.values[0], self.median, self.values[-1]))
        spread = " (%.2f-%.2f)" % (low, high) if len(self.values) > 1 else ""
        return "%.2fx%s" % (mid, spread)


class Table:
    """Rows as they come: a long run shows what it has."""

    COLUMNS = ["none", "memtrace", "sample", "no stacks", "heaptrack", "memray"]

    def __init__(self, out):
        self.out, self.top, self.rows = out, "", {}  # rows: (heading, name) -> cells, medians or texts by tracer
        self.line("", self.COLUMNS, "target")

    def keep(self, name, cells):
        self.top = self.top if name.startswith(" ") else name
        self.rows[self.top, name.strip()] = cells

    def line(self, name, cells, target=""):
        print("%-44s %11s" % (name, cells[0]) + "".join(" %19s" % c for c in cells[1:]) + "   " + target, file=self.out, flush=True)

    def ratios(self, name, cells, unit, target="", scale=1.0):
        """cells: tracer name -> Samples; the first column is the plain run's figure, the others are multiples of it."""
        self.keep(name, cells)
        base = cells["none"]
        row = ["%.4g %s" % (base.median * scale, unit)]
        row += [cells[c].ratio(base) if c in cells else "-" for c in self.COLUMNS[1:]]
        self.line(name, row, target)

    def figures(self, name, cells, target=""):
        """cells: tracer name -> text."""
        self.keep(name, cells)
        self.line(name, [cells.get(c, "-") for c in self.COLUMNS], target)
