"""What one test of pytest needed, asked of the program memtrace. A script of its own, so that nothing that it holds is in the trace.

usage: window.py MEMTRACE DIR PID peak PHASE host|devices|DEVICE LIMIT
       window.py MEMTRACE DIR PID kept PHASE LIMIT
       window.py MEMTRACE DIR PID all PREFIX

Prints JSON: "bytes" and, if they reach the limit, the largest "sites", each [bytes, frames]; or the figures of each test by its phase.
"""
import json
import subprocess
import sys
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

Json = Dict[str, Any]
Sites = Dict[Tuple[str, Any, str], int]  # bytes by memory, device, stack

HOST = ("heap", "map", "pinned")
TRACKS = ("host", "map", "pinned")  # what phases call them
SHOWN = 10


def ask(*words: str) -> Json:
    done = subprocess.run([sys.argv[1], *words, "--json", sys.argv[2]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return dict(json.loads(done.stdout or b"{}")) if done.returncode == 0 else {}


def rows_of(prefix: str, *times: str) -> List[Json]:
    return [row for row in ask("timeline", "--by", "phase", "-n", "all", *times).get("phases", ())
            if row["pid"] == int(sys.argv[3]) and row["phase"].startswith(prefix)]


def times_of(phase: str) -> Optional[Tuple[float, float]]:
    """When it began and ended; None where the trace has nothing of it."""
    rows = rows_of(phase, "--from", "phase:" + phase, "--to", "phase:" + phase)
    return (min(row["start_s"] for row in rows), max(row["end_s"] for row in rows)) if rows else None


def at(seconds: float) -> Tuple[str, ...]:
    return "--at", "%.9f" % seconds


def between(start: float, end: float) -> Tuple[str, ...]:
    return "--from", "%.9f" % start, "--to", "%.9f" % end


def sums(said: Json) -> Dict[str, int]:
    """Of each memory. Of a device the blocks of a framework's pool, where there is one: they lie in what the driver gave."""
    found = {kind: (said.get(key) or {}).get("bytes", 0) for kind, key in zip(HOST, ("host", "map", "pinned"))}
    for device in said.get("devices", ()):
        found[device["name"]] = (device.get("pool") or {}).get("bytes") or (device.get("device") or {}).get("bytes", 0)
    return found


def by_stack(said: Json, memories: Sequence[str]) -> Sites:
    found: Sites = {}
    for site in said.get("sites", ()):
        if site["memory"] in memories:
            key = site["memory"], site.get("device"), json.dumps(site["stack"])
            found[key] = found.get(key, 0) + site["bytes"]
    return found


def grown(before: Sites, after: Sites) -> Sites:
    return {key: count - before.get(key, 0) for key, count in after.items() if count > before.get(key, 0)}


def largest(sites: Sites, least: int = 0) -> List[Any]:
    rows = sorted(((count, key[2]) for key, count in sites.items() if count >= least), key=lambda row: -row[0])
    return [[count, json.loads(frames)] for count, frames in rows]


def peak(phase: str, where: str, limit: str) -> Json:
    """What there was above what there had been before, at the highest point of each memory, added up."""
    times = times_of(phase)
    if times is None:
        return {}
    high, low = (sums(ask("peak", "--by", "process", "-n", "1", *when)) for when in (between(*times), at(times[0])))
    kinds = HOST if where == "host" else [k for k in high if k not in HOST and where in ("devices", k)]
    more = [max(0, high[kind] - low.get(kind, 0)) for kind in kinds]
    count = sum(more) if where == "host" else max(more, default=0)
    if count < int(limit):
        return {"bytes": count, "sites": []}
    memories = HOST if where == "host" else ("pool", "device")
    sites = grown(*(by_stack(ask("peak", "-n", "all", *when), memories) for when in (at(times[0]), between(*times))))
    return {"bytes": count, "sites": largest(sites)[:SHOWN]}


def is_arena(key: Tuple[str, Any, str]) -> bool:
    """Of Python's own allocator: what stays in one nobody sees."""
    return any(frame["function"] == "_PyObject_ArenaMmap" for frame in json.loads(key[2])[:4])


def kept(phase: str, limit: str) -> Json:
    """Of each stack what is more than before, and what processes left that began and ended meanwhile."""
    times = times_of(phase)
    if times is None:
        return {}
    sites = grown(*(by_stack(ask("peak", "-n", "all", *at(when)), HOST) for when in times))
    sites = {key: count for key, count in sites.items() if not is_arena(key)}
    for process in began(*times):
        said = ask("leaks", "-n", "all", "--process", str(process["pid"]))
        left = [site for site in said.get("sites", ()) if not site["benign"] and not said["in_use_bytes"]]
        for key, count in by_stack({"sites": left}, ("heap",)).items():
            sites[key] = sites.get(key, 0) + count
    return {"bytes": max(sites.values(), default=0), "sites": largest(sites, int(limit))}


def began(start: float, end: float, processes: Optional[List[Json]] = None) -> List[Json]:
    found = ask("report", "-n", "1").get("processes", ()) if processes is None else processes
    return [p for p in found if p["pid"] != int(sys.argv[3]) and start <= p["start_s"] <= end]


def every(prefix: str) -> Json:
    tests: Dict[str, List[Json]] = {}
    found: Json = {}
    for row in rows_of(prefix):
        tests.setdefault(" ".join(row["phase"].split(" ")[:2]) + " ", []).append(row)
    processes = ask("report", "-n", "1").get("processes", ())
    for name, rows in tests.items():
        host = [row for row in rows if row["track"] in TRACKS]
        devices: Dict[str, int] = {}
        for row in rows:
            device, _, part = row["track"].partition(" ")
            if row not in host and (part == "pool" or device not in devices):
                devices[device] = row["high_bytes"] - row["start_bytes"]
        meanwhile = began(min(row["start_s"] for row in rows), max(row["end_s"] for row in rows), processes)
        found[name] = {"peak_bytes": sum(row["high_bytes"] - row["start_bytes"] for row in host), "kept_bytes": sum(row["kept_bytes"] for row in host),
                       "devices": devices,
                       "subprocesses": [{"pid": p["pid"], "name": p["name"], "peak_bytes": p["host"]["peak_bytes"] + p["map"]["peak_bytes"]} for p in meanwhile]}
    return found


if __name__ == "__main__":
    ASKED: Dict[str, Callable[..., Json]] = {"peak": peak, "kept": kept, "all": every}
    print(json.dumps(ASKED[sys.argv[4]](*sys.argv[5:])))
