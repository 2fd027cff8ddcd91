"""memtrace fleet: the command. The program memtrace has its help and checks its options; then it becomes this."""
import argparse
import json
import os
import shutil
import sys
import time
from typing import Any, Dict, List, Optional, Sequence, Tuple

from . import engines, members, screen, verdicts
from .errors import USAGE, FleetError, need
from .evidence import Evidence
from .store import Fleet, find
from .words import printable, size, some

DEFAULT = "memtrace-fleet"


def arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="memtrace fleet", add_help=False, allow_abbrev=False)
    parser.add_argument("-o", "--output")
    for name in ("engine", "scheduler", "slurm", "role", "job", "html", "sql"):
        parser.add_argument("--" + name)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--timeout", type=int, default=3600)
    for flag in ("again", "json", "all"):
        parser.add_argument("--" + flag, action="store_true")
    parser.add_argument("-q", "--quiet", action="store_true")
    parser.add_argument("words", nargs="*")
    return parser.parse_intermixed_args(list(words))


REDUCING = ("output", "engine", "scheduler", "slurm", "workers", "again", "timeout")
ASKING = ("role", "job", "html", "sql", "all")


def refuse(o: argparse.Namespace, names: Sequence[str], where: str) -> None:
    for name in names:
        if getattr(o, name) not in (None, False, 0, 3600):
            raise FleetError("--%s: not with %s" % (name, where), USAGE)


class Progress:
    """On a terminal, when it takes longer than a second."""

    def __init__(self, quiet: bool) -> None:
        self.shown, self.began, self.last = not quiet and sys.stderr.isatty(), time.monotonic(), 0.0

    def say(self, text: str) -> None:
        now = time.monotonic()
        if self.shown and now - self.began > 1 and now - self.last > 0.1:
            sys.stderr.write("\r\x1b[K" + text[:79])
            sys.stderr.flush()
            self.last = now

    def end(self) -> None:
        if self.shown and self.last:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def pairs(text: Optional[str]) -> Dict[str, str]:
    found = [part.partition("=") for part in (text or "").split(",") if part]
    wrong = [key for key, equals, _ in found if not equals]
    if wrong:
        raise FleetError("--slurm: '%s' is no KEY=VALUE" % wrong[0], USAGE)
    return {key: value for key, _, value in found}


def program() -> str:
    path = os.environ.get("MEMTRACE_FLEET_PROGRAM") or shutil.which("memtrace")
    if not path:
        raise FleetError("the program memtrace is not in PATH")
    return path


def remark(text: str) -> None:
    sys.stderr.write("memtrace: %s\n" % printable(text))


def reduce_all(o: argparse.Namespace, fleet: Fleet, progress: Progress) -> None:
    """Those that are new or have changed; then all are in the tables."""
    traces = find(o.words, fleet.path)
    fleet.keep_only(traces)
    progress.say("looking at %s ..." % some(len(traces), "trace"))
    stale = fleet.stale(traces, o.again)
    engine = engines.choose(o.engine, o.scheduler)
    if stale and engine == "local" and o.engine is None and not o.quiet and len(stale) > 100:
        remark("Dask is not installed, so this machine alone reduces: %s -m pip install 'dask[distributed]'" % sys.executable)
    if stale:
        options = engines.Options(o.workers, o.scheduler, fleet.path, pairs(o.slurm))
        done = failed = 0
        for result in engines.ENGINES[engine]([fleet.task(t, o.timeout) for t in stale], options):
            fleet.note(result)
            done, failed = done + 1, failed + (result["state"] == "failed")
            progress.say("reducing %d of %d%s ... %d %%" % (done, len(stale), " (%d failed)" % failed if failed else "", 100 * done // len(stale)))
            fleet.save(seldom=True)
    fleet.load(lambda n, all_: progress.say("loading %d of %d ..." % (n, all_)))
    fleet.save()
    progress.end()
    if not o.quiet:
        ready, broken = fleet.counts()
        remark("%s: %s, %d reduced now by %s, %d failed; the tables are in %s" % (fleet.path, some(ready + broken, "trace"), len(stale), engine, broken, fleet.path))


def opened(path: str) -> Fleet:
    return Fleet(path, program())


def evidence(fleet: Fleet, o: argparse.Namespace) -> Tuple[Any, Evidence, List[verdicts.Finding]]:
    con = fleet.connect()
    job = members.find(con, o.job, [k for k in o.role.split(",") if k] if o.role else None)
    e = Evidence(con, job)
    return con, e, verdicts.find(e)


def tell(fleet: Fleet, o: argparse.Namespace) -> int:
    con, e, findings = evidence(fleet, o)
    if o.sql is not None:
        return ask(con, o)
    if o.html:
        from . import page  # pylint: disable=import-outside-toplevel
        page.write(o.html, fleet.path, e, findings)
        print(o.html)
        return 0
    if o.json:
        json.dump(screen.as_json(fleet.path, e, findings), sys.stdout, indent=2)
        print()
    else:
        sys.stdout.write(screen.report(fleet.path, e, findings, o.all))
    return 0


def ask(con: Any, o: argparse.Namespace) -> int:
    """A query of the user's; - reads it from stdin. Nothing in the fleet can be changed by it."""
    duckdb = need("duckdb", "duckdb", "--sql")
    query = sys.stdin.read() if o.sql == "-" else o.sql
    try:
        cursor = con.execute(query)
        names = [d[0] for d in cursor.description or ()]
        if o.json:
            print("[" + ",\n ".join(json.dumps(dict(zip(names, row)), default=str) for row in cursor.fetchall()) + "]")
            return 0
        print("\t".join(names))
        for row in iter(cursor.fetchone, None):
            print("\t".join(printable("" if v is None else str(v)) for v in row))
    except duckdb.Error as e:
        raise FleetError("--sql: %s" % " ".join(str(e).split())[:500], USAGE) from None
    return 0


def command(o: argparse.Namespace) -> int:
    word = o.words[0] if o.words else None
    if word == "report":
        refuse(o, REDUCING, "fleet report")
        if len(o.words) > 2:
            raise FleetError("fleet report takes one fleet", USAGE)
        return tell(opened(o.words[1] if len(o.words) > 1 else DEFAULT), o)
    if word == "diff":
        from . import compare  # pylint: disable=import-outside-toplevel
        refuse(o, REDUCING + ("html", "sql"), "fleet diff")
        if len(o.words) != 3:
            raise FleetError("fleet diff takes two fleets", USAGE)
        return compare.show(opened(o.words[1]), opened(o.words[2]), o)
    if not o.words:
        raise FleetError("fleet: which traces? see memtrace fleet --help", USAGE)
    fleet = Fleet(o.output or DEFAULT, program(), create=True)
    try:
        reduce_all(o, fleet, Progress(o.quiet))
        return tell(fleet, o)
    finally:
        fleet.close()


def main(words: Sequence[str]) -> int:
    try:
        return command(arguments(words))
    except FleetError as e:
        remark(str(e))
        return e.status
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        remark("interrupted; what was reduced stays, and the same command goes on")
        return 130


__all__ = ["main", "size"]
