"""The trace of this process, and what `memtrace` says of it. All of it is None where nothing is recorded."""
import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from typing import IO, Any, Dict, List, Optional

Json = Dict[str, Any]


def _mapped(name: str) -> Optional[str]:
    """The first file of that name (a regular expression) that this process has mapped."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
            for line in maps:
                at = line.find("/")
                path = line[at:].rstrip("\n")
                if at > 0 and re.fullmatch(name, path.rpartition("/")[2]):
                    return path
    except OSError:
        pass
    return None


def directory() -> Optional[str]:
    """The directory of the trace that this process is recorded to; None: it is not recorded."""
    session = _mapped("session")
    return os.path.dirname(session) if session and _mapped(r"libmemtrace.*\.so") else None


def program() -> Optional[str]:
    """The command memtrace: the one that belongs to the loaded library, else that of PATH."""
    library = _mapped(r"libmemtrace.*\.so")
    folder = os.path.dirname(library or "")
    for place in ("../bin/memtrace", "../../bin/memtrace", "memtrace"):
        path = os.path.normpath(os.path.join(folder, place))
        if library and os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    return shutil.which("memtrace")


def attach() -> Optional[str]:
    """Opens the library in this process, which was not started under it, and so begins to record: None, or why not."""
    command = shutil.which("memtrace")
    beside = os.path.join(os.path.dirname(sys.executable), "memtrace")
    here = os.path.dirname(os.path.abspath(__file__))
    folders = [os.path.join(here, "lib"), here] + [os.path.join(os.path.dirname(os.path.realpath(c)), up) for c in (command, beside) if c for up in ("", "../lib")]
    for folder in folders:
        path = os.path.join(folder, "libmemtrace.so")
        if os.path.exists(path):
            break
    else:
        return "libmemtrace.so was not found"
    os.environ.setdefault("MEMTRACE_OUTPUT", "memtrace-notebook-%p")
    try:
        ctypes.CDLL(os.path.realpath(path))
    except OSError as error:
        return str(error)
    return None if directory() else "no trace directory could be made here"


def environment() -> Dict[str, str]:
    """For the command, which wants neither to be recorded nor another allocator. An empty list says that it is no program's child that was lost."""
    return {k: "" if k == "LD_PRELOAD" else v for k, v in os.environ.items() if k != "PYTHONMALLOC"}


def run(*words: str) -> Optional["subprocess.CompletedProcess[bytes]"]:
    """The command, of the trace of this process, with what it printed."""
    folder, command = directory(), program()
    if not folder or not command:
        return None
    try:
        return subprocess.run([command, *words, folder], env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              check=False)
    except OSError:
        return None


def text(*words: str) -> Optional[str]:
    """What a command prints about the trace of this process: text("peak", "-n", "5"). None: it failed."""
    done = run(*words)
    return done.stdout.decode("utf-8", "replace") if done is not None and done.returncode == 0 else None


def ask(*words: str) -> Optional[Json]:
    """The same as JSON: ask("peak", "-n", "5")."""
    said = text(*words, "--json")
    try:
        answer = json.loads(said or "null")
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None


def page(path: str) -> Optional[str]:
    """Writes the report as one HTML file (`memtrace html`). Returns the path, or None."""
    return path if text("html", "-o", path) is not None and os.path.exists(path) else None


class Live:
    """What `memtrace live` says of this process and those that it started, about once a second: .latest is the last look, None before the
    first. The command runs beside the program, at low priority, until close(); it is never recorded."""

    def __init__(self) -> None:
        self.latest: Optional[Json] = None
        self.peaks: Dict[str, float] = {}
        self._child: Optional["subprocess.Popen[bytes]"] = None
        folder, command = directory(), program()
        if not folder or not command:
            return
        try:
            self._child = subprocess.Popen(["nice", "-n", "10", command, "live", "--json", folder], env=environment(), stdin=subprocess.DEVNULL,
                                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        except OSError:
            return
        threading.Thread(target=self._read, args=(self._child.stdout,), name="memtrace live", daemon=True).start()

    def _read(self, lines: IO[bytes]) -> None:
        for line in lines:
            try:
                look = json.loads(line)
            except ValueError:
                continue
            for key, value in _figures(look).items():
                if key.endswith("_bytes"):
                    self.peaks[key] = max(value, self.peaks.get(key, 0))
            self.latest = look
        lines.close()

    def metrics(self) -> Dict[str, float]:
        """Numbers for a logger: what is in use, the highest that any look has seen (`peak_`), how full each device is, fragmentation and
        forecast where there are any. Bytes but for `_percent` and `_step`. Empty where nothing is known yet."""
        look = self.latest
        if look is None:
            return {}
        numbers = _figures(look)
        numbers.update({"peak_" + key: value for key, value in self.peaks.items() if key in numbers})
        return {"memtrace/" + key: value for key, value in numbers.items()}

    def close(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.terminate()
            child.wait()


def _figures(look: Json) -> Dict[str, float]:
    kinds: List[str] = ["heap", "map", "pinned", "device", "pool", "pool_reserved", "resident"]
    numbers = {kind + "_bytes": float(look[kind + "_bytes"]) for kind in kinds if look.get(kind + "_bytes")}
    for gauge in look.get("gauges", ()):
        if gauge.get("total_bytes"):
            numbers["used_percent/" + gauge["name"].replace(" ", "_")] = 100.0 * gauge["used_bytes"] / gauge["total_bytes"]
    if look.get("pool_reserved_bytes"):
        numbers["fragmentation_percent"] = 100.0 * (1 - look["pool_bytes"] / look["pool_reserved_bytes"])
    for key in ("growth_bytes_per_step", "growth_bytes_per_s", "runs_out_at_step", "runs_out_at_s"):
        if look.get(key) is not None:
            numbers[key] = float(look[key])
    return numbers
