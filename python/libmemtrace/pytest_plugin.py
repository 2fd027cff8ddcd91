"""pytest --memtrace: what each test needed, and tests that may need only so much. docs/python.md.

    @pytest.mark.limit_memory("24 MB")
    @pytest.mark.limit_leaks("1 MB")
    @pytest.mark.limit_device_memory("2 GB", device="cuda:0")

The markers of pytest-memray, and its words for sizes, where KB is 1024 bytes. Where nothing is recorded they do nothing. What a test starts
counts as well. Each test is a phase of the trace; the figures are those that `memtrace timeline` and `memtrace peak` print of it.
"""
import contextlib
import functools
import gc
import inspect
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest
from dataclasses import asdict, dataclass, field
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import pytest

from . import marks, trace

Json = Dict[str, Any]
AGAIN, FOLDER = "LIBMEMTRACE_PYTEST", "LIBMEMTRACE_PYTEST_FOLDER"  # in the environment, from one start to the next
UNITS = {"B": 0, "KB": 1, "MB": 2, "GB": 3, "TB": 4, "PB": 5}
MARKERS = (
    "limit_memory(limit): fail the test if it needs so much host memory or more, with what it starts",
    "limit_leaks(limit, *, filter_fn=None): fail the test if so much or more of one stack stays behind it",
    "limit_device_memory(limit, *, device=None): fail the test if it needs so much memory or more of a device",
)

try:
    wrapper: Any = pytest.hookimpl(wrapper=True, tryfirst=True)
except TypeError:  # a pytest before 7.4, which finds this plugin as well: no hook, no harm

    def wrapper(function: Any) -> None:
        return None


# ---- what a filter_fn gets ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StackFrame:
    function: str  # "???": not known, like the next one
    filename: str
    lineno: int  # 0: not known


@dataclass(frozen=True)
class Stack:
    frames: Tuple[StackFrame, ...]  # innermost first


LeaksFilterFunction = Callable[[Stack], bool]  # True: that leak counts


# ---- figures --------------------------------------------------------------------------------------------------


@dataclass
class Limit:
    """A marker of a test, and what came of it."""

    marker: str
    limit_bytes: int
    measured_bytes: Optional[int] = None
    exceeded: bool = False
    where: List[Tuple[int, Stack]] = field(default_factory=list)


@dataclass
class Test:
    nodeid: str
    phase: str
    worker: Optional[str] = None
    peak_bytes: Optional[int] = None  # None: nobody knows
    kept_bytes: Optional[int] = None
    devices: Dict[str, int] = field(default_factory=dict)
    subprocesses: List[Json] = field(default_factory=list)
    limits: List[Limit] = field(default_factory=list)


def size(text: Any) -> int:
    """"24 MB" in bytes."""
    found = re.fullmatch(r"\s*\+?(\d*\.\d+|\d+)\s*([KMGTP]?B)\s*", str(text), re.IGNORECASE)
    if not found:
        raise ValueError("not a size like '24 MB': %r" % text)
    return int(float(found[1]) * 1024 ** UNITS[found[2].upper()])


def shown(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024 or unit == "GiB":
            break
        count /= 1024
    return ("%d %s" if unit == "B" else "%.1f %s") % (count, unit)


def _run(*words: str) -> bytes:
    return subprocess.run([sys.executable, "-I", "-S", *words], env=trace.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=False).stdout


def _look(*words: str) -> Json:
    """What window.py says of this process, in a process of its own: what it needs for that is nothing of the tests'."""
    command, folder = trace.program(), trace.directory()
    if not command or not folder:
        return {}
    try:
        return dict(json.loads(_run(os.path.join(os.path.dirname(os.path.abspath(__file__)), "window.py"), command, folder, str(os.getpid()), *words)))
    except ValueError:
        return {}


def _settle() -> None:
    """Between tests we start processes. What that leaves in the interpreter is there before the first test, so that no test's figures depend on
    how many were before it: caches, and how large an instance of Popen is. CPython 3.11 to 3.13 give the first thirty of a class more room,
    eight bytes less to each."""
    _run("-c", "")
    for _ in range(30):
        subprocess.Popen.__new__(subprocess.Popen)


def _stack(frames: List[Json]) -> Stack:
    return Stack(tuple(StackFrame(_name(f), f.get("file") or f.get("library") or "???", f.get("line") or 0) for f in frames))


def _name(frame: Json) -> str:
    """Of Python its own name, without those of what it lies in."""
    name = frame.get("function") or "???"
    return str(name.rpartition(".")[2] if frame.get("language") == "python" else name)


# ---- markers --------------------------------------------------------------------------------------------------


def _places(sites: List[Any]) -> List[Tuple[int, Stack]]:
    return [(count, _stack(frames)) for count, frames in sites]


def limit_memory(phase: str, limit: Limit) -> None:
    said = _look("peak", phase, "host", str(limit.limit_bytes))
    limit.measured_bytes, limit.where = said.get("bytes"), _places(said.get("sites", []))
    limit.exceeded = limit.measured_bytes is not None and limit.measured_bytes >= limit.limit_bytes


def limit_device_memory(phase: str, limit: Limit, device: str = "") -> None:
    said = _look("peak", phase, device or "devices", str(limit.limit_bytes))
    limit.measured_bytes, limit.where = said.get("bytes"), _places(said.get("sites", []))
    limit.exceeded = limit.measured_bytes is not None and limit.measured_bytes >= limit.limit_bytes


def limit_leaks(phase: str, limit: Limit, filter_fn: Optional[LeaksFilterFunction] = None) -> None:
    said = _look("kept", phase, str(limit.limit_bytes))
    limit.measured_bytes = said.get("bytes")
    limit.where = [(count, stack) for count, stack in _places(said.get("sites", [])) if filter_fn is None or filter_fn(stack)]
    limit.exceeded = bool(limit.where)


CHECKS: Dict[str, Callable[..., None]] = {"limit_memory": limit_memory, "limit_leaks": limit_leaks, "limit_device_memory": limit_device_memory}
SAID = {
    "limit_memory": "Test was limited to %s of memory and needed %s",
    "limit_leaks": "Test may leave %s of one stack and left %s",
    "limit_device_memory": "Test was limited to %s of a device's memory and needed %s",
}


def _limit(marker: Any) -> Limit:
    text = marker.args[0] if marker.args else marker.kwargs.get("limit")
    if text is None:
        raise ValueError("%s needs a size like '24 MB'" % marker.name)
    return Limit(marker.name, size(text))


def _check(marker: Any, phase: str) -> Limit:
    limit = _limit(marker)
    CHECKS[marker.name](phase, limit, **{k: v for k, v in marker.kwargs.items() if k != "limit"})
    return limit


# ---- in the process that runs tests ---------------------------------------------------------------------------


class Recorded:
    """Tests as phases, and what their markers say."""

    def __init__(self, config: pytest.Config, everything: bool) -> None:
        self.config, self.everything = config, everything
        self.tests: List[Test] = []
        self.worker = os.environ.get("PYTEST_XDIST_WORKER")
        _settle()

    @wrapper
    def pytest_pyfunc_call(self, pyfuncitem: Any) -> Iterator[Any]:
        return (yield from self._measured(pyfuncitem))

    @wrapper
    def pytest_runtest_call(self, item: Any) -> Iterator[Any]:
        """A unittest.TestCase calls its methods itself, setUp() and tearDown() among them."""
        is_unittest = issubclass(getattr(item, "cls", None) or object, unittest.TestCase)
        return (yield from self._measured(item)) if is_unittest else (yield)

    def _measured(self, item: Any) -> Iterator[Any]:
        markers = [m for m in item.iter_markers() if m.name in CHECKS]
        if not markers and not self.everything:
            return (yield)
        test = Test(item.nodeid, "test %d.%d " % (os.getpid(), len(self.tests)), self.worker)
        self.tests.append(test)
        for marker in markers:
            _limit(marker)  # a wrong one is told before the test
        marks.start()  # --memtrace: with the first test
        name = (test.phase + test.nodeid).encode("utf-8", "surrogateescape")
        with _around(item, functools.partial(_phase, name)):
            result = yield
        if markers and trace.directory() is not None:
            test.limits = [_check(marker, test.phase) for marker in markers]
            failed = [limit for limit in test.limits if limit.exceeded or limit.measured_bytes is None]
            for limit in failed:
                item.add_report_section("call", "memtrace " + limit.marker, _section(limit))
            if failed:
                pytest.fail("\n".join(map(_said, failed)), pytrace=False)
        return result

    def figures(self) -> List[Json]:
        """Of all tests, of one pass over the trace; asked when the last one has ended."""
        said = _look("all", "test %d." % os.getpid()) if self.tests else {}
        for test in self.tests:
            for key, value in said.get(test.phase, {}).items():
                setattr(test, key, value)
        return [asdict(test) for test in self.tests]


@contextlib.contextmanager
def _phase(name: bytes) -> Iterator[None]:
    """It begins and ends without garbage, and without the freed objects that the interpreter keeps for the next of their kind: so a test's
    figures are the same behind whichever other tests. The name is bytes, so that nothing as long as it is made and freed for the marks."""
    gc.collect()
    marks.phase_begin(name)
    try:
        yield
        gc.collect()
    finally:
        marks.phase_end(name)


@contextlib.contextmanager
def _around(item: Any, phase: Callable[[], Any]) -> Iterator[None]:
    """The phase is the test's function alone: what pytest needs to call it is another size in a worker. But not of methods that unittest calls,
    nor of coroutines."""
    function = getattr(item, "obj", None)
    if issubclass(getattr(item, "cls", None) or object, unittest.TestCase) or not callable(function) or inspect.iscoroutinefunction(function):
        with phase():
            yield
        return

    @functools.wraps(function)
    def memtrace_measured(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        with phase():
            return function(*args, **kwargs)

    item.obj = memtrace_measured
    try:
        yield
    finally:
        item.obj = function


def _said(limit: Limit) -> str:
    """A check that could not look must not pass."""
    if limit.measured_bytes is None:
        return "%s can't be checked: the trace can't be read" % limit.marker
    return SAID[limit.marker] % (shown(limit.limit_bytes), shown(limit.measured_bytes))


def _section(limit: Limit) -> str:
    """What makes a hundredth of it, down to the test's function."""
    lines = []
    for count, stack in limit.where:
        if 100 * count >= (limit.measured_bytes or 0):
            python = [f for f in stack.frames if f.filename.endswith(".py") or f.filename.startswith("<")]
            own = list(itertools.takewhile(lambda f: f.function not in ("memtrace_measured", "pytest_pyfunc_call"), python or stack.frames))
            lines += ["%s allocated by" % shown(count), *("    %s:%d %s" % (f.filename, f.lineno, f.function) for f in own[:5])]
    return "\n".join(lines)


# ---- in the process that prints -------------------------------------------------------------------------------


class Summary:
    """Figures of all workers, or of this process; the table at the end, and the JSON."""

    def __init__(self, config: pytest.Config, recorded: Optional[Recorded], folder: Optional[str]) -> None:
        self.config, self.recorded, self.folder = config, recorded, folder
        self.tests: List[Json] = []
        self.lost: List[str] = []

    @pytest.hookimpl(optionalhook=True)  # xdist's
    def pytest_testnodedown(self, node: Any, error: Any) -> None:
        """A worker of xdist has ended."""
        output = getattr(node, "workeroutput", {})
        if "memtrace" in output:
            self.tests += output["memtrace"]
        else:
            self.lost.append(node.gateway.id)

    def collect(self) -> None:
        if self.recorded is not None and not self.tests:
            self.tests = self.recorded.figures()
        self.tests.sort(key=lambda test: test["nodeid"])

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        self.collect()
        path = self.config.getoption("memtrace_json")
        if path:
            with open(path, "w", encoding="utf-8") as file:
                json.dump(self.as_json(), file, indent=1)
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def as_json(self) -> Json:
        tests = [{k: v for k, v in test.items() if k != "phase"} for test in self.tests]
        return {"version": 1, "tests": tests, "workers_lost": self.lost, "totals": self.totals()}

    def totals(self) -> Json:
        known = [test for test in self.tests if test["peak_bytes"] is not None]
        return {"tests": len(self.tests), "peak_bytes": sum(t["peak_bytes"] for t in known), "kept_bytes": sum(t["kept_bytes"] for t in known),
                "subprocesses": sum(len(t["subprocesses"]) for t in known)}

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self.config.getoption("memtrace") or self.config.getoption("memtrace_quiet") or not self.tests:
            return
        terminalreporter.write_sep("=", "memtrace")
        total = self.totals()
        terminalreporter.write_line("%d tests: %s at the peaks of all together, %s kept, %d subprocesses" % (
            total["tests"], shown(total["peak_bytes"]), shown(total["kept_bytes"]), total["subprocesses"]))
        most = self.config.getoption("memtrace_most")
        known = sorted((t for t in self.tests if t["peak_bytes"] is not None), key=lambda t: -t["peak_bytes"])
        terminalreporter.write_line("%12s %12s  test" % ("peak", "kept"))
        for test in known[:most] if most else known:
            devices = "".join("  %s %s" % (name, shown(count)) for name, count in sorted(test["devices"].items()) if count)
            terminalreporter.write_line("%12s %12s  %s%s" % (shown(test["peak_bytes"]), shown(test["kept_bytes"]), test["nodeid"], devices))
        if any(test["kept_bytes"] < 0 for test in known):
            terminalreporter.write_line("kept is below 0 where a test frees more of what was there before it than it keeps itself")
        for worker in self.lost:
            terminalreporter.write_line("nothing is known of the tests of worker %s, which ended early" % worker)


# ---- how pytest finds all that --------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("memtrace")
    group.addoption("--memtrace", action="store_true", help="record the tests, and say what each needed")
    group.addoption("--memtrace-output", metavar="DIR", help="keep the trace there (workers of xdist: DIR-PID)")
    group.addoption("--memtrace-json", metavar="FILE", help="write the figures of each test there")
    group.addoption("--memtrace-most", metavar="N", type=int, default=5, help="tests that the summary shows; 0: all [5]")
    group.addoption("--memtrace-quiet", action="store_true", help="no summary")
    group.addoption("--memtrace-pymalloc", action="store_true", help="leave Python's allocator in place: faster, but limit_leaks sees only blocks above 512 bytes")


@wrapper
def pytest_load_initial_conftests(early_config: pytest.Config, parser: pytest.Parser, args: List[str]) -> Iterator[Any]:
    """Before pytest captures its output: starts the same command again, under memtrace."""
    options = early_config.known_args_namespace
    if getattr(options, "memtrace", False) and not marks.loaded():
        _start_again(options, early_config)
    return (yield)


def _start_again(options: Any, config: pytest.Config) -> None:
    command = trace.program() or os.path.join(os.path.dirname(sys.executable), "memtrace")
    if not os.access(command, os.X_OK):
        raise pytest.UsageError("--memtrace: the command memtrace is neither in PATH nor beside %s" % sys.executable)
    if list(config.invocation_params.args) != sys.argv[1:] or AGAIN in os.environ:
        raise pytest.UsageError("--memtrace: this pytest can't be started again; start it as memtrace run -- COMMAND")
    words = list(getattr(sys, "orig_argv", ())) or [sys.executable, "-m", "pytest", *sys.argv[1:]]
    folder = options.memtrace_output
    if not folder:
        os.environ[FOLDER] = tempfile.mkdtemp(prefix="memtrace-pytest-")
        folder = os.path.join(os.environ[FOLDER], "trace")
    python = [] if options.memtrace_pymalloc else ["--python-allocators"]
    told = subprocess.run([command, "env", "--paused", "--exclude", "memtrace", *python, "-o", os.path.abspath(folder)], stdout=subprocess.PIPE, check=True)
    for line in told.stdout.decode().splitlines():
        words_of_line = shlex.split(line.rstrip(";"), comments=True)
        if words_of_line[:1] == ["export"]:
            name, _, value = words_of_line[1].partition("=")
            os.environ[name] = value
    os.environ[AGAIN] = "1"
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, *words[1:]])


def pytest_configure(config: pytest.Config) -> None:
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    if not marks.loaded():
        return
    again = os.environ.pop(AGAIN, None)
    if again:
        os.environ.pop("MEMTRACE_PAUSED", None)  # what tests start is recorded from its beginning
    is_worker = hasattr(config, "workerinput")
    distributes = not is_worker and bool(getattr(config.option, "dist", "no") != "no" or getattr(config.option, "numprocesses", None))
    recorded = None if distributes else Recorded(config, config.getoption("memtrace"))
    if recorded is not None:
        config.pluginmanager.register(recorded, "memtrace recorded")
    if is_worker:
        config.pluginmanager.register(Worker(config, recorded), "memtrace worker")
        return
    if distributes:
        _let_workers_have_traces()
        if again:
            os.environ.update({AGAIN: again, "MEMTRACE_PAUSED": "1"})  # they as we: with the first test
    config.pluginmanager.register(Summary(config, recorded, os.environ.pop(FOLDER, None)), "memtrace summary")


class Worker:
    """Of xdist: hands its figures over when its last test has ended."""

    def __init__(self, config: pytest.Config, recorded: Optional[Recorded]) -> None:
        self.config, self.recorded = config, recorded

    def pytest_sessionfinish(self) -> None:
        if self.recorded is not None:
            self.config.workeroutput["memtrace"] = self.recorded.figures()


def _let_workers_have_traces() -> None:
    """Workers run at the same time, so each has a trace of its own: then what lies between two times in it is of its tests alone."""
    folder = trace.directory()
    if folder:
        os.environ.pop("MEMTRACE_SESSION", None)
        os.environ["MEMTRACE_OUTPUT"] = folder + "-%p"
