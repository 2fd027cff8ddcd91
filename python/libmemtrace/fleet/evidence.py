"""What the rules of verdicts look at: plain figures of the job's ranks, asked of the tables once. What nobody measured is None, never 0."""
import collections
import statistics
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from .members import Job, Member, rows

# How memtrace says that memory goes on growing; "fills", "stopped" and "passes" it does not.
GOES_ON = ("leaks", "grows", "backlog", "collected")
OF_A_MEMBER = "JOIN member m ON m.trace = s.trace AND m.rank IS NOT DISTINCT FROM s.rank"
KINDS_OF = {"device": ("device",), "reserved": ("device",), "heap": ("heap",), "map": ("map",), "pinned": ("pinned",), "rss": ("heap", "map")}


class Growth(NamedTuple):
    stack: str
    kind: str
    grown: int
    peak: int


class Share(NamedTuple):
    """What a stack had in one rank, and what it has in most of its peers."""

    stack: str
    kind: str
    bytes: int
    usual: int


class Space(NamedTuple):
    """What was left of a device, or of a control group, at the worst moment."""

    where: str
    left: int
    total: int
    activations: Optional[int]


class Evidence:
    def __init__(self, con: Any, job: Job) -> None:
        self.con, self.job = con, job
        self.fatal = self._fatal()
        self.verdicts = self._verdicts()
        self.growth = self._growth()
        self.spaces = self._spaces()
        self.failed: List[Tuple[str, str]] = [(r["path"], r["error"] or "") for r in rows(con, "SELECT path, error FROM trace WHERE state = 'failed' ORDER BY path")]
        self.names: Dict[str, str] = {}

    def _fatal(self) -> Dict[int, Dict[str, Any]]:
        """The last fatal failure of each member."""
        found = rows(self.con, "SELECT m.member, s.* FROM oom s %s WHERE s.outcome = 'fatal' ORDER BY s.at_ns" % OF_A_MEMBER)
        return {r["member"]: r for r in found}

    def _verdicts(self) -> Dict[int, List[Dict[str, Any]]]:
        found: Dict[int, List[Dict[str, Any]]] = collections.defaultdict(list)
        for r in rows(self.con, "SELECT m.member, s.* FROM verdict s %s ORDER BY m.member, s.confidence DESC" % OF_A_MEMBER):
            found[r["member"]].append(r)
        return found

    def _growth(self) -> Dict[int, List[Growth]]:
        found: Dict[int, List[Growth]] = collections.defaultdict(list)
        for r in rows(self.con, "SELECT m.member, s.stack, s.kind, sum(s.grown)::BIGINT AS grown, sum(s.peak)::BIGINT AS peak FROM site s %s WHERE s.outlook IN (%s) AND "
                      "s.certainty <> 'low' AND s.stack IS NOT NULL GROUP BY ALL ORDER BY grown DESC, stack" % (OF_A_MEMBER, ", ".join("'%s'" % w for w in GOES_ON))):
            found[r["member"]].append(Growth(r["stack"], r["kind"], r["grown"], r["peak"]))
        return found

    def _spaces(self) -> Dict[int, List[Space]]:
        """What a pool keeps and nobody uses is left, too: it can be given back."""
        found: Dict[int, List[Space]] = collections.defaultdict(list)
        for r in rows(self.con, "SELECT m.member, s.* FROM device s %s WHERE s.free IS NOT NULL AND s.total > 0" % OF_A_MEMBER):
            unused = max(0, r["reserved_peak"] - r["pool_peak"])
            parts = dict(zip(r["categories"] or (), r["category_bytes"] or ()))
            found[r["member"]].append(Space(r["device"], r["free"] + unused if not r["ooms"] else 0, r["total"], parts.get("activations")))
        for m in self.job.members:
            limit, used = m.run["memory_limit"], m.run["memory_used"]
            if limit and used is not None:
                found[m.number].append(Space("control group", max(0, limit - used), limit, None))
        return found

    def leaks(self, m: Member) -> bool:
        """memtrace report says so of it, and is not in doubt."""
        return any(v["kind"] == "leak" and v["certainty"] != "low" for v in self.verdicts.get(m.number, ()))

    # ---- stacks ----

    def site(self, stack: Optional[str]) -> str:
        """train.py:73 save"""
        if stack and stack not in self.names:
            found = self.con.execute("SELECT any_value(site) FROM stack WHERE stack = ?", [stack]).fetchone()
            self.names[stack] = (found and found[0]) or "stack " + stack
        return self.names.get(stack or "", "")

    def frames(self, stack: str) -> List[str]:
        found = self.con.execute("SELECT any_value(frames) FROM stack WHERE stack = ?", [stack]).fetchone()
        return list(found[0]) if found and found[0] else []

    def usual(self, members: Sequence[Member], stacks: Optional[Sequence[str]] = None, kinds: Sequence[str] = ()) -> Dict[Tuple[str, str], int]:
        """The median over these members of what a stack had at the peak; one that lacks it has 0."""
        if not members:
            return {}
        where = ["m.member IN (SELECT unnest(?))", "s.stack IS NOT NULL"]
        parameters: List[Any] = [[m.number for m in members]]
        if stacks is not None:
            where.append("s.stack IN (SELECT unnest(?))")
            parameters.append(list(stacks))
        if kinds:
            where.append("s.kind IN (SELECT unnest(?))")
            parameters.append(list(kinds))
        query = ("WITH own AS (SELECT m.member, s.stack, s.kind, sum(s.peak) AS bytes FROM site s %s WHERE %s GROUP BY ALL) "
                 "SELECT stack, kind, list_sort(list(bytes)) AS bytes FROM own GROUP BY ALL" % (OF_A_MEMBER, " AND ".join(where)))
        found = {}
        for stack, kind, values in self.con.execute(query, parameters).fetchall():
            zeros = len(members) - len(values)
            at = len(members) // 2 - zeros
            found[stack, kind] = int(values[at]) if at >= 0 else 0
        return found

    def shares(self, m: Member, peers: Sequence[Member], measure: str, most: int = 200) -> List[Share]:
        """Where the member has more than its peers, the largest difference first. Of many peers some stand for all."""
        step = max(1, len(peers) // most)
        kinds = KINDS_OF[measure]
        usual = self.usual([p for p in peers if p.number != m.number][::step], kinds=kinds)
        own = self.con.execute("SELECT s.stack, s.kind, sum(s.peak)::BIGINT FROM site s %s WHERE m.member = ? AND s.stack IS NOT NULL AND s.kind IN (SELECT unnest(?)) GROUP BY ALL"
                               % OF_A_MEMBER, [m.number, list(kinds)]).fetchall()
        found = [Share(stack, kind, int(b), usual.get((stack, kind), 0)) for stack, kind, b in own]
        return sorted(found, key=lambda s: (s.usual - s.bytes, s.stack))

    def at_stack(self, stack: str, kind: str) -> Dict[int, int]:
        """{member: bytes at the peak}"""
        return dict(self.con.execute("SELECT m.member, sum(s.peak)::BIGINT FROM site s %s WHERE s.stack = ? AND s.kind = ? GROUP BY ALL" % OF_A_MEMBER, [stack, kind]).fetchall())


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def deviation(values: Sequence[float], middle: float) -> float:
    """Median absolute deviation, as a normal distribution's standard deviation."""
    return 1.4826 * statistics.median(abs(v - middle) for v in values)
