"""Two fleets side by side: before and after."""
import argparse
import collections
import json
import sys
import textwrap
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from . import members, verdicts
from .evidence import Evidence, median
from .members import MEASURES, Job
from .screen import columns
from .store import Fleet
from .words import count, printable, size, some

ROWS = 10
LEAST_PART = 0.01  # of the larger one: less is no change that anybody asks about


class Change(NamedTuple):
    name: str
    measure: str
    ranks: Tuple[int, int]
    before: Optional[int]
    after: Optional[int]

    def bytes(self) -> int:
        return (self.after or 0) - (self.before or 0)


def middle(values: List[Optional[int]]) -> Optional[int]:
    known = [v for v in values if v is not None]
    return int(median(known)) if known else None


def roles(before: Job, after: Job) -> List[Change]:
    """The median of each measure in each role; a role that only one has has None."""
    a, b = before.by_role(), after.by_role()
    found = []
    for role in sorted(set(a) | set(b)):
        for measure in MEASURES:
            values = [middle([m.bytes[measure] for m in side.get(role, [])]) for side in (a, b)]
            if any(values):
                found.append(Change(role, measure, (len(a.get(role, [])), len(b.get(role, []))), *values))
    return found


def usual(e: Evidence, most: int = 400) -> Dict[Tuple[str, str], Tuple[int, str]]:
    """{(stack without lines, kind): (bytes in the median rank, the stack's name)}. Of many ranks some stand for all."""
    step = max(1, len(e.job.members) // most)
    medians = e.usual(e.job.members[::step])
    lineless = dict(e.con.execute("SELECT stack, any_value(stack_lineless) FROM stack GROUP BY stack").fetchall())
    found: Dict[Tuple[str, str], Tuple[int, str]] = {}
    for (stack, kind), b in medians.items():
        key = lineless.get(stack, stack), kind
        known = found.get(key, (0, stack))
        found[key] = known[0] + b, stack if b > known[0] else known[1]
    return found


def stacks(before: Evidence, after: Evidence) -> List[Change]:
    a, b = usual(before), usual(after)
    found = []
    for key in set(a) | set(b):
        x, y = a.get(key), b.get(key)
        name = after.site(y[1]) if y else before.site(x[1] if x else None)
        found.append(Change(name, key[1], (len(before.job.members), len(after.job.members)), x[0] if x else 0, y[0] if y else 0))
    return sorted((c for c in found if c.bytes()), key=lambda c: (-abs(c.bytes()), c.name))


def came_and_went(a: List[verdicts.Finding], b: List[verdicts.Finding]) -> List[Tuple[str, str, int]]:
    """(kind, "gone", "new" or "stays", how many)"""
    x, y = (collections.Counter(f.kind for f in side) for side in (a, b))
    return [(kind, "stays" if x[kind] and y[kind] else "gone" if x[kind] else "new", y[kind] or x[kind]) for kind in sorted(set(x) | set(y))]


def side(fleet: Fleet, o: argparse.Namespace) -> Tuple[Evidence, List[verdicts.Finding]]:
    con = fleet.connect()
    e = Evidence(con, members.find(con, o.job, o.role.split(",") if o.role else None))
    return e, verdicts.find(e)


def signed(n: int) -> str:
    return ("+" if n > 0 else "-") + size(abs(n))


def bytes_or_none(n: Optional[int]) -> str:
    return "none" if n is None else size(n)


def notable(c: Change) -> bool:
    return abs(c.bytes()) >= LEAST_PART * max(c.before or 0, c.after or 0)


def as_text(paths: Tuple[str, str], changes: List[Change], of_stacks: List[Change], news: List[Tuple[str, str, int]], everything: bool) -> List[str]:
    lines = ["memtrace fleet diff %s %s" % paths]
    said = ", ".join("%s %s" % (kind.replace("_", " "), what) for kind, what, _ in news) or "none in either"
    lines += textwrap.wrap("FINDINGS  " + said, columns(), subsequent_indent=" " * 10)
    shown = [c for c in changes if everything or notable(c)]
    if not shown:
        lines.append("MEDIANS   no role needs another amount, within 1 %")
    else:
        lines.append("%-34s %11s %12s %12s" % ("MEDIANS, OF A RANK", "before", "after", "change"))
        for c in sorted(shown, key=lambda c: -abs(c.bytes()))[:None if everything else 6]:
            lines.append("  %-32.32s %11s %12s %12s" % (printable(c.name) + "  " + MEASURES[c.measure], bytes_or_none(c.before), bytes_or_none(c.after), signed(c.bytes())))
    top = of_stacks if everything else of_stacks[:ROWS]
    lines.append("%-34s %11s %12s %12s" % ("STACKS, OF THE MEDIAN RANK", "before", "after", "change") if top else "STACKS    none changed in the median rank")
    for c in top:
        lines.append("  %-32.32s %11s %12s %12s" % (printable(c.name), bytes_or_none(c.before), bytes_or_none(c.after), signed(c.bytes())))
    if len(of_stacks) > len(top):
        lines.append("  %s more: --all" % some(len(of_stacks) - len(top), "stack"))
    return [line[:max(columns(), 80)] for line in lines]


def show(before: Fleet, after: Fleet, o: argparse.Namespace) -> int:
    (a, was), (b, now) = side(before, o), side(after, o)
    changes, of_stacks, news = roles(a.job, b.job), stacks(a, b), came_and_went(was, now)
    if o.json:
        said: Dict[str, Any] = {
            "version": 1, "before": before.path, "after": after.path, "ranks": [len(a.job.members), len(b.job.members)],
            "findings": [{"kind": kind, "change": what, "count": n} for kind, what, n in news],
            "roles": [{"role": c.name, "measure": c.measure, "ranks": list(c.ranks), "before_bytes": c.before, "after_bytes": c.after} for c in changes],
            "stacks": [{"site": c.name, "kind": c.measure, "before_bytes": c.before, "after_bytes": c.after} for c in of_stacks]}
        json.dump(said, sys.stdout, indent=2)
        print()
        return 0
    lines = as_text((before.path, after.path), changes, of_stacks, news, o.all)
    lines.insert(1, "%s before, %s after" % (some(len(a.job.members), "rank"), count(len(b.job.members))))
    print("\n".join(line.rstrip() for line in lines))
    return 0
