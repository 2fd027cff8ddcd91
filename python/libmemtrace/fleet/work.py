"""Reduces one trace. A worker may be a bare Python on another machine: this module is sent to it by value, and needs the standard library and
the program memtrace alone."""
import os
import shutil
import subprocess
import time
from typing import Any, Dict, List

REDUCTION = "reduced.ndjson.gz"
TRIES = 3
CACHE = "MEMTRACE_SYMBOL_CACHE"
Task = Dict[str, Any]  # trace, out (where it goes if the trace's folder can't be written), program, timeout_s, symbols (folder that keeps names)
Result = Dict[str, Any]  # trace, state ("reduced" or "failed"), reduction, bytes, newest_ns (of the trace's files), seconds, error


def newest_ns(trace: str) -> int:
    """When the trace last changed; 0: there is none. The second level of a folder is never looked at."""
    newest = 0
    try:
        if not os.path.isdir(trace):
            return os.stat(trace).st_mtime_ns
        with os.scandir(trace) as entries:
            for entry in entries:
                if not entry.name.startswith(REDUCTION):
                    newest = max(newest, entry.stat(follow_symlinks=False).st_mtime_ns)
    except OSError:
        pass
    return newest


def place(task: Task) -> str:
    """Where the reduction goes: into the trace, if that is a folder in which one may write."""
    trace = str(task["trace"])
    return os.path.join(trace, REDUCTION) if os.path.isdir(trace) and os.access(trace, os.W_OK) else str(task["out"])


def program(task: Task) -> str:
    """The one of the machine that asks, where this one has it, too; else that of PATH."""
    path = str(task["program"])
    return path if os.access(path, os.X_OK) else shutil.which("memtrace") or path


def last_line(text: bytes) -> str:
    lines = text.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:500] if lines else ""


def attempt(task: Task, out: str) -> "subprocess.CompletedProcess[bytes]":
    env = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "MEMTRACE_SESSION")}
    env.setdefault(CACHE, str(task["symbols"]))
    command = [program(task), "reduce", "--quiet", "-o", out, str(task["trace"])]
    return subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=task["timeout_s"], check=False)


def reduce_one(task: Task) -> Result:
    """Never raises for what is wrong with the trace: that is a row like others."""
    began, out = time.monotonic(), place(task)
    result: Result = {"trace": task["trace"], "state": "failed", "reduction": None, "bytes": None, "newest_ns": newest_ns(str(task["trace"])), "error": None}
    for tries in range(1, TRIES + 1):
        try:
            os.makedirs(os.path.dirname(out) or ".", exist_ok=True)
            done = attempt(task, out)
        except subprocess.TimeoutExpired:
            result["error"] = "took longer than %d s" % task["timeout_s"]
            break
        except OSError as e:
            result["error"] = "%s: %s" % (e.filename or task["program"], e.strerror)
            break
        if done.returncode == 0:
            result.update(state="reduced", reduction=out, bytes=os.path.getsize(out), error=None)
            break
        result["error"] = last_line(done.stderr) or "memtrace reduce: exit status %d" % done.returncode
        if done.returncode > 0:
            break
        result["error"] = "memtrace reduce was ended by signal %d, %d times" % (-done.returncode, tries)
    result["seconds"] = time.monotonic() - began
    return result


def reduce_many(tasks: List[Task]) -> List[Result]:
    return [reduce_one(task) for task in tasks]
