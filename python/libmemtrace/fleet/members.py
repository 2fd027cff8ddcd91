"""Which of the runs are the ranks of the job that is asked about, and who is whose peer.

A rank that was started several times counts as it was last. Ranks are compared with those of the same role: the same program, and the same
MEMTRACE_TAGS but for keys that only number replicas.
"""
import collections
import re
import statistics
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from .errors import USAGE, FleetError

REPLICA_KEYS = ("dp", "ddp", "fsdp", "hsdp", "replica", "data", "rank", "node")
INNER_KEYS = ("tp", "cp", "sp", "ep")
MOST_WORLD = 1_000_000
LEAST_PEERS = 4  # of the usual role; below that keys are left out
Tags = Dict[str, str]

# Measures, by what the user can change first.
MEASURES = {"device": "device memory", "reserved": "reserved by the pool", "heap": "heap", "map": "mappings", "pinned": "pinned memory", "rss": "resident"}


class Member(NamedTuple):
    number: int  # in the list
    trace: int
    rank: Optional[int]
    name: str  # "rank 17"; without ranks "node3 pid 4711"
    host: str
    local_rank: Optional[int]
    role: str
    run: Dict[str, Any]  # the row of the table
    bytes: Dict[str, Optional[int]]  # by measure


class Job(NamedTuple):
    members: List[Member]
    job: Optional[str]
    world: Optional[int]
    missing: List[int]
    earlier: int  # runs of the same ranks before
    others: Dict[str, int]  # ranks of other jobs
    role_keys: Tuple[str, ...]

    def by_role(self) -> Dict[str, List[Member]]:
        found: Dict[str, List[Member]] = collections.defaultdict(list)
        for m in self.members:
            found[m.role].append(m)
        return dict(found)


def tags_of(text: Optional[str]) -> Tags:
    """pp=3,tp=1; what is no key and value is one key by itself."""
    pairs = [part.partition("=") for part in re.split(r"[,;\s]+", text or "") if part]
    return {key: value for key, _, value in pairs}


def role_of(program: str, tags: Tags, keys: Sequence[str]) -> str:
    own = ",".join("%s=%s" % (k, tags[k]) if tags[k] else k for k in keys if k in tags)
    return own or program


def role_keys(runs: List[Dict[str, Any]], wanted: Optional[Sequence[str]]) -> Tuple[str, ...]:
    """The keys of tags that tell roles apart: as few ranks in each as makes no comparison are too few."""
    tags = [tags_of(r["tags"]) for r in runs]
    every: Set[str] = {k for t in tags for k in t}
    if wanted:
        unknown = [k for k in wanted if k not in every]
        if unknown:
            raise FleetError("--role: no tag '%s'; there are %s" % (unknown[0], ", ".join(sorted(every)) or "none"), USAGE)
        return tuple(wanted)
    keys = sorted(every - set(REPLICA_KEYS))
    for drop in ((), INNER_KEYS, keys):
        chosen = tuple(k for k in keys if k not in drop)
        sizes = collections.Counter(tuple(t.get(k) for k in chosen) for t in tags)
        if not sizes or statistics.median(sizes.values()) >= LEAST_PEERS:
            return chosen
    return ()


SELECT = """
SELECT r.*, d.device_peak, d.reserved_peak FROM run r LEFT JOIN
  (SELECT trace, rank, sum(peak) AS device_peak, sum(reserved_peak) AS reserved_peak FROM device GROUP BY ALL) d
  ON d.trace = r.trace AND d.rank IS NOT DISTINCT FROM r.rank
WHERE NOT r.launcher
"""


def measure(run: Dict[str, Any]) -> Dict[str, Optional[int]]:
    return {"device": run["device_peak"], "reserved": run["reserved_peak"], "heap": run["heap_peak"], "map": run["map_peak"],
            "pinned": run["pinned_peak"], "rss": run["rss_peak"]}


def rows(con: Any, query: str, parameters: Sequence[Any] = ()) -> List[Dict[str, Any]]:
    cursor = con.execute(query, list(parameters))
    names = [d[0] for d in cursor.description]
    return [dict(zip(names, values)) for values in cursor.fetchall()]


def pick_job(runs: List[Dict[str, Any]], wanted: Optional[str]) -> Tuple[Optional[str], Dict[str, int]]:
    """The one that was named, else the one with most ranks, and of these the latest."""
    counts: Dict[Optional[str], int] = collections.Counter(r["job"] for r in runs)
    latest = {j: max(r["start_ns"] for r in runs if r["job"] == j) for j in counts}
    if wanted is not None and wanted not in counts:
        raise FleetError("--job: no job '%s'; there are %s" % (wanted, ", ".join(sorted(str(j) for j in counts if j)) or "none"), USAGE)
    chosen = wanted if wanted is not None else max(counts, key=lambda j: (counts[j], latest[j])) if counts else None
    return chosen, {str(j or "without a job"): n for j, n in counts.items() if j != chosen}


def find(con: Any, job: Optional[str] = None, role: Optional[Sequence[str]] = None) -> Job:
    runs = rows(con, SELECT)
    chosen, others = pick_job(runs, job)
    runs = [r for r in runs if r["job"] == chosen]
    last: Dict[Any, Dict[str, Any]] = {}
    for n, r in enumerate(sorted(runs, key=lambda r: (r["start_ns"], r["trace"]))):
        last[r["rank"] if r["rank"] is not None else ("run", n)] = r
    kept = sorted(last.values(), key=lambda r: (r["rank"] is None, r["rank"] or 0, r["host"] or "", r["pid"]))
    keys = role_keys(kept, role)
    members = []
    for n, r in enumerate(kept):
        name = "rank %d" % r["rank"] if r["rank"] is not None else "%s pid %s" % (r["host"], r["pid"])
        members.append(Member(n, r["trace"], r["rank"], name, r["host"] or "?", r["local_rank"], role_of(r["program"] or "?", tags_of(r["tags"]), keys), r, measure(r)))
    worlds = collections.Counter(r["world_size"] for r in kept if r["world_size"] and r["rank"] is not None)
    world = worlds.most_common(1)[0][0] if worlds else None
    seen = {m.rank for m in members}
    missing = [n for n in range(world) if n not in seen] if world and world <= MOST_WORLD else []
    con.execute("CREATE OR REPLACE TABLE member(member BIGINT, trace BIGINT, rank BIGINT, name VARCHAR, host VARCHAR, role VARCHAR)")
    if members:
        con.execute("INSERT INTO member SELECT unnest(?), unnest(?), unnest(?), unnest(?), unnest(?), unnest(?)",
                    [list(c) for c in zip(*((m.number, m.trace, m.rank, m.name, m.host, m.role) for m in members))])
    return Job(members, chosen, world, missing, len(runs) - len(kept), others, keys)
