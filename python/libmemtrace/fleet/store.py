"""The folder of a fleet: fleet.json says which traces are in it and what became of them, tables/TABLE/N.parquet are their rows.

Rows are only ever added. A trace that is reduced again has its rows in another part, and the views show of each trace the part that is its own.
Who is interrupted loses nothing that was reduced: a reduction that is newer than its trace is taken as it is.
"""
import concurrent.futures
import fcntl
import glob
import hashlib
import json
import os
import shutil
import subprocess
import time
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

from . import work
from .errors import USAGE, FleetError, need
from .work import Result, Task

VERSION = 1
BATCH_FILES, BATCH_BYTES = 64, 24 << 20  # of reductions that are loaded at once; a byte of these takes some 15 in memory
MEMORY = "600MB"
SQL_TYPES = {"INT": "BIGINT", "REAL": "DOUBLE", "TEXT": "VARCHAR", "BOOL": "BOOLEAN", "INTS": "BIGINT[]", "TEXTS": "VARCHAR[]"}
DEEP = 4  # folders below what is named, in which traces are looked for
Entry = Dict[str, Any]
Schema = Dict[str, Dict[str, str]]


class Progress(NamedTuple):
    say: Callable[[str], None]
    every_s: float = 0.2


def quote(text: str) -> str:
    return "'%s'" % text.replace("'", "''")


def schema_of(program: str) -> Schema:
    """{table: {column: SQL's type}}, as the program has it."""
    try:
        text = subprocess.run([program, "reduce", "--columns"], stdout=subprocess.PIPE, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as e:
        raise FleetError("%s: %s" % (program, e)) from None
    return {table: {c["name"]: SQL_TYPES[c["type"]] for c in columns} for table, columns in json.loads(text)["tables"].items()}


# ---- which traces --------------------------------------------------------------------------------------------------------------------


def is_trace(path: str) -> bool:
    if not os.path.isdir(path):
        return path.endswith((".ndjson.gz", ".tar.zst"))
    if os.path.exists(os.path.join(path, "session")) or os.path.exists(os.path.join(path, work.REDUCTION)):
        return True
    try:  # one that is damaged, or that just begins
        return any(name.endswith((".trace", ".ring", ".info")) for name in os.listdir(path))
    except OSError:
        return False


def below(path: str, deep: int) -> Iterator[str]:
    if is_trace(path):
        yield path
    elif deep and os.path.isdir(path):
        try:
            for entry in sorted(os.scandir(path), key=lambda e: e.name):
                if entry.is_dir(follow_symlinks=False) or is_trace(entry.path):
                    yield from below(entry.path, deep - 1)
        except OSError:
            return


def find(patterns: Iterable[str], apart: str) -> List[str]:
    """The traces that the patterns mean, without what lies in the folder `apart`."""
    found: Dict[str, None] = {}
    for pattern in patterns:
        paths = [pattern] if os.path.exists(pattern) else sorted(glob.glob(pattern, recursive=True))
        traces = [os.path.abspath(t) for path in paths for t in below(path, DEEP)]
        inside = os.path.abspath(apart) + os.sep
        traces = [t for t in traces if not (t + os.sep).startswith(inside)]
        if not traces:
            raise FleetError("%s: no trace is there" % pattern)
        found.update(dict.fromkeys(traces))
    return list(found)


# ---- the folder ----------------------------------------------------------------------------------------------------------------------


class Fleet:
    def __init__(self, path: str, program: str, create: bool = False) -> None:
        self.path, self.program = path, program
        self.entries: Dict[str, Entry] = {}
        self.parts = self.next_id = 0
        self._lock: Any = None
        self._saved = 0.0
        file = os.path.join(path, "fleet.json")
        if os.path.exists(file):
            self._read(file)
        elif not create:
            raise FleetError("%s: no fleet is here; memtrace fleet TRACES... makes one" % path)
        if create:
            self._make()
        self.schema = schema_of(program)

    def _read(self, file: str) -> None:
        try:
            with open(file, encoding="utf-8") as source:
                saved = json.load(source)
            if saved["version"] != VERSION:
                raise FleetError("%s: was written by another version" % file)
            self.entries, self.parts, self.next_id = saved["traces"], saved["parts"], saved["next_id"]
        except (OSError, ValueError, KeyError, TypeError) as e:
            raise FleetError("%s: can't be read (%s)" % (file, e)) from None

    def _make(self) -> None:
        try:
            os.makedirs(self.path, exist_ok=True)
            others = [n for n in os.listdir(self.path) if n not in ("lock", "dask", "slurm", "symbols")]
            if others and not os.path.exists(os.path.join(self.path, "fleet.json")):
                raise FleetError("%s: is there and no fleet; name another folder with --output" % self.path, USAGE)
            self._lock = open(os.path.join(self.path, "lock"), "w", encoding="utf-8")  # pylint: disable=consider-using-with
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FleetError("%s: another memtrace fleet is at work there" % self.path) from None
        except OSError as e:
            raise FleetError("%s: can't be written (%s)" % (self.path, e.strerror)) from None

    def close(self) -> None:
        if self._lock:
            self._lock.close()

    def save(self, seldom: bool = False) -> None:
        if seldom and time.monotonic() - self._saved < 5:
            return
        file = os.path.join(self.path, "fleet.json")
        with open(file + ".new", "w", encoding="utf-8") as target:
            json.dump({"version": VERSION, "parts": self.parts, "next_id": self.next_id, "traces": self.entries}, target)
        os.replace(file + ".new", file)
        self._saved = time.monotonic()

    def entry(self, trace: str) -> Entry:
        if trace not in self.entries:
            self.entries[trace] = {"id": self.next_id, "state": "new", "reduction": None, "bytes": None, "newest_ns": 0, "error": None, "part": None, "loaded_ns": 0}
            self.next_id += 1
        return self.entries[trace]

    # ---- what there is to do ----

    def task(self, trace: str, timeout_s: int) -> Task:
        name = "%s-%s.ndjson.gz" % (os.path.basename(trace)[:80], hashlib.sha256(trace.encode("utf-8", "surrogateescape")).hexdigest()[:12])
        symbols = os.environ.get(work.CACHE, os.path.abspath(os.path.join(self.path, "symbols")))
        return {"trace": trace, "out": os.path.abspath(os.path.join(self.path, "reductions", name)), "program": self.program, "timeout_s": timeout_s,
                "symbols": symbols}

    def settle(self, trace: str) -> bool:
        """Whether the trace has a reduction that is newer than it; then that is its entry's."""
        entry = self.entry(trace)
        if trace.endswith(".ndjson.gz"):
            entry.update(state="reduced", reduction=trace, bytes=os.path.getsize(trace), newest_ns=work.newest_ns(trace), error=None)
            return True
        newest = work.newest_ns(trace)
        for path in (place for place in (entry["reduction"], os.path.join(trace, work.REDUCTION), self.task(trace, 0)["out"]) if place):
            try:
                status = os.stat(path)
            except OSError:
                continue
            known = entry["state"] == "reduced" and entry["reduction"] == path
            if status.st_mtime_ns >= newest and (not known or entry["newest_ns"] == newest) and not (known and entry.get("running")):
                entry.update(state="reduced", reduction=path, bytes=status.st_size, newest_ns=newest, error=None)
                return True
        return False

    def stale(self, traces: List[str], again: bool) -> List[str]:
        """Those to be reduced. Looking takes long on a file system of the network: many at once."""
        for trace in traces:
            self.entry(trace)
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            fresh = list(pool.map(self.settle, traces))
        return [t for t, is_fresh in zip(traces, fresh) if not is_fresh or (again and not t.endswith(".ndjson.gz"))]

    def note(self, result: Result) -> None:
        entry = self.entry(str(result["trace"]))
        entry.update({k: result[k] for k in ("state", "reduction", "bytes", "newest_ns", "error", "seconds")})

    def keep_only(self, traces: List[str]) -> None:
        """What is not named any more is no part of the fleet."""
        wanted = set(traces)
        self.entries = {t: e for t, e in self.entries.items() if t in wanted}

    # ---- tables ----

    def unloaded(self) -> List[str]:
        found = []
        for trace, e in self.entries.items():
            if e["state"] != "reduced":
                e["part"] = None
                continue
            try:
                changed = os.stat(e["reduction"]).st_mtime_ns
            except OSError as error:
                e.update(state="failed", error="%s: %s" % (e["reduction"], error.strerror), part=None)
                continue
            if e["part"] is None or e["loaded_ns"] != changed:
                e["loading_ns"] = changed
                found.append(trace)
        return found

    def batches(self) -> List[List[str]]:
        lists: List[List[str]] = []
        room = 0
        for trace in self.unloaded():
            room -= self.entries[trace]["bytes"]
            if not lists or room < 0 or len(lists[-1]) >= BATCH_FILES:
                lists.append([])
                room = BATCH_BYTES - self.entries[trace]["bytes"]
            lists[-1].append(trace)
        return lists

    def load(self, tell: Callable[[int, int], None]) -> None:
        """All reductions that are not in the tables yet."""
        self._compact()
        batches, done = self.batches(), 0
        con = self._open() if batches else None
        for batch in batches:
            self._load_batch(con, batch)
            done += len(batch)
            tell(done, sum(map(len, batches)))
            self.save(seldom=True)
        self.save()

    def _compact(self) -> None:
        """Where most rows would be of what is gone or was reduced again, all are loaded anew."""
        current = {e["part"] for e in self.entries.values() if e["part"] is not None}
        if self.parts > 8 and len(current) * 2 < self.parts:
            shutil.rmtree(os.path.join(self.path, "tables"), ignore_errors=True)
            self.parts = 0
            for e in self.entries.values():
                e["part"] = None

    def _open(self) -> Any:
        duckdb = need("duckdb", "duckdb", "memtrace fleet")
        con = duckdb.connect()
        con.execute("SET memory_limit = '%s'; SET threads = %d; SET preserve_insertion_order = false; SET enable_progress_bar = false; "
                    "SET temp_directory = %s" % (MEMORY, min(4, len(os.sched_getaffinity(0))), quote(os.path.join(self.path, "tmp"))))
        return con

    def _part(self, table: str, part: Optional[int] = None) -> str:
        return os.path.join(self.path, "tables", table, "*.parquet" if part is None else "%06d.parquet" % part)

    def _load_batch(self, con: Any, batch: List[str]) -> None:
        part = self.parts
        try:
            self._write_part(con, part, batch)
        except Exception as e:  # pylint: disable=broad-except
            if len(batch) > 1:  # one of them is damaged
                half = len(batch) // 2
                self._load_batch(con, batch[:half])
                self._load_batch(con, batch[half:])
                return
            self.entries[batch[0]].update(state="failed", part=None, error="its reduction can't be read: %s" % str(e).strip().splitlines()[0][:300])
            return
        self.parts += 1
        for trace in batch:
            self.entries[trace].update(part=part, loaded_ns=self.entries[trace].pop("loading_ns"))
        running = {row[0] for row in con.execute("SELECT trace FROM read_parquet(%s) WHERE state = 'running'" % quote(self._part("run", part))).fetchall()}
        for trace in batch:
            self.entries[trace]["running"] = self.entries[trace]["id"] in running

    def _write_part(self, con: Any, part: int, batch: List[str]) -> None:
        names = [self.entries[t]["reduction"] for t in batch]
        con.execute("CREATE OR REPLACE TEMP TABLE files AS SELECT unnest(?) AS path, unnest(?) AS trace", [names, [self.entries[t]["id"] for t in batch]])
        columns: Dict[str, str] = {"t": "VARCHAR"}
        for table in self.schema.values():
            columns.update(table)
        source = "read_ndjson([%s], columns = {%s}, filename = 'path_', compression = 'gzip', maximum_object_size = 33554432)" % (
            ", ".join(map(quote, names)), ", ".join("%s: %s" % (quote(c), quote(t)) for c, t in columns.items() if c != "frames"))
        con.execute("CREATE OR REPLACE TEMP TABLE raw AS SELECT f.trace, r.* EXCLUDE path_ FROM %s r JOIN files f ON r.path_ = f.path" % source)
        lacking = con.execute("SELECT count(*) FROM files WHERE trace NOT IN (SELECT trace FROM raw WHERE t = 'reduction' AND version <= 1)").fetchone()[0]
        if lacking:
            raise ValueError("no reduction, or of another version of memtrace")
        for name, own in self.schema.items():
            if name != "stack":
                self._copy(con, "SELECT trace, %s FROM raw WHERE t = %s ORDER BY trace" % (", ".join('"%s"' % c for c in own), quote(name)), name, part)
        self._copy_stacks(con, part, names)
        con.execute("DROP TABLE raw")

    def _copy(self, con: Any, query: str, table: str, part: int) -> None:
        path = self._part(table, part)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        con.execute("COPY (%s) TO %s (FORMAT parquet, COMPRESSION zstd)" % (query, quote(path + ".new")))
        os.replace(path + ".new", path)

    def _copy_stacks(self, con: Any, part: int, names: List[str]) -> None:
        """Those that no part has yet: ranks have nearly all of them in common."""
        known = glob.glob(self._part("stack"))
        source = "read_ndjson([%s], columns = {'t': 'VARCHAR', %s}, compression = 'gzip', maximum_object_size = 33554432)" % (
            ", ".join(map(quote, names)), ", ".join("%s: %s" % (quote(c), quote(t)) for c, t in self.schema["stack"].items()))
        others = "AND stack NOT IN (SELECT stack FROM read_parquet([%s]))" % ", ".join(map(quote, known)) if known else ""
        self._copy(con, "SELECT stack, any_value(stack_lineless) AS stack_lineless, any_value(site) AS site, any_value(frames) AS frames FROM %s "
                   "WHERE t = 'stack' %s GROUP BY stack" % (source, others), "stack", part)

    def connect(self) -> Any:
        """DuckDB with a view of each table, and `trace`: what became of each."""
        con = self._open()
        rows = [(e["id"], t, e["state"], e["error"], e["bytes"], e["part"], e.get("seconds")) for t, e in self.entries.items()]
        con.execute("CREATE TABLE trace(trace BIGINT, path VARCHAR, state VARCHAR, error VARCHAR, bytes BIGINT, part BIGINT, seconds DOUBLE)")
        if rows:
            con.execute("INSERT INTO trace SELECT unnest(?), unnest(?), unnest(?), unnest(?), unnest(?), unnest(?), unnest(?)", [list(c) for c in zip(*rows)])
        for table, columns in self.schema.items():
            files = glob.glob(self._part(table))
            if not files:
                con.execute("CREATE TABLE %s(%s)" % (table, ", ".join(["trace BIGINT"] * (table != "stack") + ['"%s" %s' % c for c in columns.items()])))
            elif table == "stack":
                con.execute("CREATE VIEW stack AS SELECT * FROM read_parquet(%s, union_by_name = true)" % quote(self._part(table)))
            else:
                con.execute("CREATE VIEW %s AS SELECT r.* EXCLUDE filename FROM read_parquet(%s, union_by_name = true, filename = true) r JOIN trace c "
                            "ON r.trace = c.trace AND r.filename[-14:] = printf('%%06d.parquet', c.part)" % (table, quote(self._part(table))))
        return con

    def counts(self) -> Tuple[int, int]:
        """(reduced, failed)"""
        states = [e["state"] for e in self.entries.values()]
        return states.count("reduced"), states.count("failed")
