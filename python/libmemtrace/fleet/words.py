"""Numbers and lists as people read them."""
import datetime
from typing import Any, List, Optional, Sequence


def size(n: Optional[float]) -> str:
    """12.3 MiB, as memtrace's other commands print it."""
    if n is None:
        return "?"
    value, unit = float(n), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if abs(value) < 1000 or unit == "PiB":
            break
        value /= 1024
    return "%d B" % n if unit == "B" else "%.*f %s" % (2 if abs(value) < 10 else 1, value, unit)


def count(n: int) -> str:
    return format(n, ",")


def some(n: int, what: str) -> str:
    return "%s %s%s" % (count(n), what, "" if n == 1 else "s")


def seconds(ns: float) -> str:
    s = ns / 1e9
    if s >= 3600:
        return "%.1f h" % (s / 3600)
    return "%.1f min" % (s / 60) if s >= 100 else "%.1f s" % s if s >= 1 else "%.0f ms" % (1000 * s)


def moment(ns: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(ns / 1e9, datetime.timezone.utc)


def wall(ns: int) -> str:
    """12:03:04.123"""
    return moment(ns).strftime("%H:%M:%S.%f")[:-3]


def day(ns: int) -> str:
    return moment(ns).strftime("%Y-%m-%d %H:%M")


def names_of(members: Sequence[Any], most: int = 5) -> str:
    """rank 3; ranks 3, 17, 20-31 and 9 more. Members without a rank have their names."""
    ranks = sorted(m.rank for m in members if m.rank is not None)
    if len(ranks) < len(members):
        return ", ".join(m.name for m in members[:most]) + (" and %d more" % (len(members) - most) if len(members) > most else "")
    runs: List[List[int]] = []
    for r in ranks:
        if runs and runs[-1][1] == r - 1:
            runs[-1][1] = r
        else:
            runs.append([r, r])
    said = ["%d" % a if a == b else "%d, %d" % (a, b) if b == a + 1 else "%d-%d" % (a, b) for a, b in runs[:most]]
    rest = sum(b - a + 1 for a, b in runs[most:])
    return "rank%s %s%s" % ("" if len(ranks) == 1 else "s", ", ".join(said), " and %d more" % rest if rest else "")


def printable(text: str) -> str:
    """Names are a trace's, so a stranger's: what a terminal would not show is a ?."""
    return "".join(c if c.isprintable() else "?" for c in text)
