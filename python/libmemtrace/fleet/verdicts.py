"""What is wrong with a fleet. Each rule looks at the evidence alone, and returns findings that have theirs in words; of a healthy fleet none.

first_death      who died first, and who only followed: a collective that timed out, a launcher that ended the rest
outlier          a rank that has far more than its peers of the same role, and the stack that it has it from
stage_imbalance  a role, node or local rank that needs more than the others
growth_everywhere, growth_in_few    memory goes on growing in nearly all ranks, or in some; whose
common_growth    one stack grows in most ranks that grow
headroom         the rank that came closest to the end of its memory, though nothing failed
coverage         ranks that are missing, can't be read, were cut off or lost events
"""
import collections
import signal
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from .evidence import Evidence, Growth, deviation, median
from .members import MEASURES, Job, Member
from .words import names_of, seconds, size, some, wall

# The numbers that decide. Clocks of nodes agree to SKEW_NS; who ended without a word did so within LATE_NS of its last sign of life.
SKEW_NS, LATE_NS = 1_000_000_000, 2_000_000_000
LEAST_PEERS = 5
OUTLIER_Z, OUTLIER_PART, OUTLIER_BYTES = 6.0, 0.10, 1 << 20
NOISE_PART, NOISE_BYTES = 0.01, 64 << 10  # a spread below that is taken for that
MOST_OUTLIERS = 0.05  # of a role; where there are more it is wide, and nobody is an outlier
HEAVY_PART, LEAST_GROUP = 0.10, 3
EVERYWHERE = 0.8
LEAST_HEADROOM = 0.05
ENDED = ("SIGTERM", "SIGINT", "SIGHUP")
OWN_SIGNALS = ("SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE")


class Finding(NamedTuple):
    kind: str
    bytes: int  # that it is about; 0: it is about no bytes
    certainty: str  # high, medium, low
    members: List[Member]  # whom it names
    evidence: str
    advice: str
    stack: Optional[str] = None
    figures: Optional[Dict[str, Any]] = None


# ---- who died ------------------------------------------------------------------------------------------------------------------------


class Death(NamedTuple):
    member: Member
    at_ns: int
    late_ns: int  # it may have been so much later
    how: str
    own: Optional[str]  # what it died of, if not of the others


def how_ended(run: Dict[str, Any]) -> str:
    if run["exit_kind"] == "signal":
        try:
            return signal.Signals(run["exit_code"]).name
        except ValueError:
            return "signal %d" % run["exit_code"]
    return "exit %d" % run["exit_code"] if run["exit_kind"] == "exit" else "no word"


def own_cause(how: str, run: Dict[str, Any], fatal: Optional[Dict[str, Any]]) -> Optional[str]:
    if fatal:
        return "out of memory on %s, asked %s" % (fatal["device"], size(fatal["requested"]))
    if run["oom_killed"] in ("yes", "likely"):
        return "killed by the kernel as memory ran out"
    return how if how in OWN_SIGNALS else None


def only_cut(e: Evidence, m: Member) -> bool:
    """It ended without a word as far as its trace goes, but that is not all of it: files are damaged, or the others ended well without it."""
    if lossy(m):
        return True
    well = [x for x in e.job.members if how_ended(x.run) == "exit 0" and x.run["end_ns"] > m.run["end_ns"]]
    return 2 * len(well) > len(e.job.members)


def deaths_of(e: Evidence) -> List[Death]:
    found = []
    for m in e.job.members:
        run, how, fatal = m.run, how_ended(m.run), e.fatal.get(m.number)
        if run["state"] == "running" or how == "exit 0" or (how == "no word" and not fatal and only_cut(e, m)):
            continue
        at = min(run["end_ns"], fatal["at_ns"]) if fatal else run["end_ns"]
        exact = fatal is not None or run["end_error_ns"] is not None
        found.append(Death(m, at, 0 if exact else LATE_NS, how, own_cause(how, run, fatal)))
    return sorted(found, key=lambda d: (d.at_ns, d.member.number))


def apart_ns(a: Death, b: Death) -> int:
    """Within which nobody can tell who of the two was first."""
    return max(a.late_ns, b.late_ns) + (0 if a.member.host == b.member.host else SKEW_NS)


def weight(d: Death) -> int:
    """How little a death looks like one that follows."""
    return 3 if d.own else 2 if d.how in ("SIGKILL", "no word") else 0 if d.how in ENDED else 1


def first_death(e: Evidence) -> List[Finding]:
    deaths = deaths_of(e)
    if not deaths or all(d.how in ENDED for d in deaths):
        return []
    candidates = [d for d in deaths if d.at_ns <= deaths[0].at_ns + apart_ns(deaths[0], d)]
    first = max(candidates, key=lambda d: (weight(d), -d.at_ns))
    rivals = [d for d in candidates if weight(d) == weight(first)]
    own = [d for d in deaths if d.own and d is not first]
    followers = [d for d in deaths if d is not first and not d.own]
    certain = "high" if len(rivals) == 1 else "medium" if len(rivals) <= 3 else "low"
    verdict = [v for v in e.verdicts.get(first.member.number, ())][:1]
    text = "%s on %s died first, at %s: %s" % (first.member.name, first.member.host, wall(first.at_ns), first.own or first.how)
    if verdict:
        text += " (%s: %s)" % (verdict[0]["kind"].replace("_", " "), verdict[0]["evidence"])
    if followers:
        hows = collections.Counter(d.how for d in followers).most_common(3)
        after = max(d.at_ns for d in followers) - first.at_ns
        text += "; %s only followed within %s: %s" % (some(len(followers), "rank"), seconds(max(0, after)), ", ".join("%s %d" % h for h in hows))
    if own:
        text += "; by themselves died, too: %s" % names_of([d.member for d in own])
    if len(rivals) > 1:
        text += "; clocks can't tell it from %s" % names_of([d.member for d in rivals if d is not first])
    advice = verdict[0]["advice"] if verdict and verdict[0]["advice"] else "memtrace report of its trace says why; the others' are not needed"
    figures = {"rank": first.member.rank, "at_ns": first.at_ns, "how": first.own or first.how, "followers": [d.member.rank for d in followers]}
    return [Finding("first_death", 0, certain, [first.member], text, advice, None, figures)]


# ---- who is different ------------------------------------------------------------------------------------------------------------------


def known(members: Sequence[Member], measure: str) -> List[Tuple[Member, int]]:
    return [(m, b) for m in members for b in [m.bytes[measure]] if b is not None]


def odd_ones(members: Sequence[Member], measure: str) -> List[Tuple[Member, int, int, float]]:
    """(member, bytes, what its peers have, z), by median and median absolute deviation."""
    have = known(members, measure)
    if len(have) < LEAST_PEERS:
        return []
    values = [b for _, b in have]
    middle = median(values)
    scale = max(deviation(values, middle), NOISE_PART * middle, NOISE_BYTES)
    odd = [(m, b, int(middle), (b - middle) / scale) for m, b in have
           if b - middle >= max(OUTLIER_PART * middle, OUTLIER_BYTES) and (b - middle) / scale >= OUTLIER_Z]
    return odd if len(odd) <= max(2, MOST_OUTLIERS * len(have)) else []


def outliers(e: Evidence, apart: Sequence[Member]) -> List[Finding]:
    """`apart`: what they have more is explained already."""
    explained = {m.number for m in apart}
    worst: Dict[int, Tuple[Member, str, int, int, float]] = {}
    for members in e.job.by_role().values():
        for measure in MEASURES:
            for m, b, usual, z in odd_ones(members, measure):
                before = worst.get(m.number)
                if m.number not in explained and (before is None or b - usual > 1.05 * (before[2] - before[3])):
                    worst[m.number] = (m, measure, b, usual, z)
    found: List[Finding] = []
    for m, measure, b, usual, z in sorted(worst.values(), key=lambda w: w[3] - w[2]):
        shares = e.shares(m, e.job.by_role()[m.role], measure) if len(found) < 8 else []
        text = "%s on %s has %s of %s, its peers%s %s (z %.1f)" % (m.name, m.host, size(b), MEASURES[measure], " (%s)" % m.role if len(e.job.by_role()) > 1 else "",
                                                                size(usual), z)
        top = shares[0] if shares and shares[0].bytes - shares[0].usual > 0.1 * (b - usual) else None
        if top:
            text += "; %d %% of that is %s: %s, usually %s" % (round(100 * min(1.0, (top.bytes - top.usual) / (b - usual))), e.site(top.stack), size(top.bytes), size(top.usual))
        advice = "look what %s does for this rank alone" % e.site(top.stack) if top else "compare its trace with a peer's: memtrace diff"
        found.append(Finding("outlier", b - usual, "high" if z >= 2 * OUTLIER_Z else "medium", [m], text, advice, top.stack if top else None,
                             {"rank": m.rank, "measure": measure, "bytes": b, "peers": usual, "z": round(z, 2), "role": m.role}))
    return found


def quantile(values: Sequence[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


Groups = Dict[str, List[Tuple[Member, float]]]


def heavy_groups(groups: Groups) -> List[Tuple[str, float, float]]:
    """(group, its median, that of the others): those that lie above all others."""
    large = {g: [v for _, v in members] for g, members in groups.items() if len(members) >= LEAST_GROUP}
    found: List[Tuple[str, float, float]] = []
    if len(large) < 2:
        return []
    middles = {g: median(v) for g, v in large.items()}
    for g, values in large.items():
        rest = [v for other, list_ in large.items() if other != g and middles[other] < middles[g] / (1 + HEAVY_PART) for v in list_]
        if len(rest) * 2 < sum(len(v) for other, v in large.items() if other != g):
            continue  # it is one of the many
        other = median(rest)
        if middles[g] >= (1 + HEAVY_PART) * other and quantile(values, 0.1) > quantile(rest, 0.9):
            found.append((g, middles[g], other))
    return found


def groupings(job: Job, measure: str) -> List[Tuple[str, str, Groups]]:
    """(what, what bytes are relative to, groups). Within a node or local rank roles differ, so that is taken out."""
    roles: Groups = collections.defaultdict(list)
    hosts: Groups = collections.defaultdict(list)
    locals_: Groups = collections.defaultdict(list)
    usual = {role: median([b for _, b in known(members, measure)] or [0]) for role, members in job.by_role().items()}
    programs = collections.Counter(m.run["program"] for m in job.members)
    program = programs.most_common(1)[0][0] if programs else None
    for m, b in known(job.members, measure):
        if m.run["program"] == program:
            roles[m.role].append((m, float(b)))
        if usual[m.role] > 0:
            hosts[m.host].append((m, b / usual[m.role]))
            if m.local_rank is not None:
                locals_[str(m.local_rank)].append((m, b / usual[m.role]))
    return [("role", "bytes", roles), ("node", "part", hosts), ("local rank", "part", locals_)]


def imbalance(e: Evidence) -> List[Finding]:
    best: Dict[Tuple[str, str], Finding] = {}
    for measure in MEASURES:
        everybody = [b for _, b in known(e.job.members, measure)]
        if not everybody:
            continue
        for what, unit, groups in groupings(e.job, measure):
            heavy = heavy_groups(groups)
            if len(heavy) * 2 > max(2, len(groups)):
                continue
            for group, own, other in heavy:
                base = 1.0 if unit == "bytes" else median(everybody)
                more = (own - other) * base
                members = [m for m, _ in groups[group]]
                if more < OUTLIER_BYTES or ((what, group) in best and more <= best[what, group].bytes):
                    continue
                text = "%s %s needs %d %% more %s than the others: %s against %s, in each of %s" % (
                    what, group, round(100 * (own / other - 1)), MEASURES[measure], size(int(own * base)), size(int(other * base)), some(len(members), "rank"))
                best[what, group] = Finding("stage_imbalance", int(more), "high", members, text, ADVICE_OF[what], None,
                                            {"what": what, "group": group, "measure": measure, "bytes": int(own * base), "others": int(other * base)})
    found = [explain_group(e, f) for f in best.values()]
    return sorted(found, key=lambda f: -f.bytes)


ADVICE_OF = {"role": "give this stage fewer layers, or the others more: the fleet's batch is what the heaviest rank can hold",
             "node": "look what else runs on this node, and whether its settings are those of the others",
             "local rank": "look for what only this local rank does: contexts that other ranks open on its device, logging, checkpoints"}


def explain_group(e: Evidence, f: Finding) -> Finding:
    """The stack in which a member of the group differs most from the others."""
    one = f.members[len(f.members) // 2]
    inside = {m.number for m in f.members}
    figures = f.figures or {}
    shares = e.shares(one, [m for m in e.job.members if m.number not in inside and m.run["program"] == one.run["program"]], str(figures["measure"]))
    if not shares or shares[0].bytes - shares[0].usual < 0.1 * f.bytes:
        return f
    top = shares[0]
    return f._replace(stack=top.stack, evidence=f.evidence + "; most of it at %s: %s, elsewhere %s" % (e.site(top.stack), size(top.bytes), size(top.usual)))


# ---- what grows ------------------------------------------------------------------------------------------------------------------------


def grows_apart(e: Evidence, m: Member, growers: Sequence[Member]) -> bool:
    """What grows in it, its peers do not have: else the memory is the same, and only the judgement of it differs."""
    if not e.growth.get(m.number):
        return True
    top = e.growth[m.number][0]
    inside = {g.number for g in growers}
    have = e.at_stack(top.stack, top.kind)
    peers = [have.get(p.number, 0) for p in e.job.by_role()[m.role] if p.number not in inside]
    if not peers:
        return True
    middle = median(peers)
    return top.peak - middle >= max(0.5 * top.grown, 3 * max(deviation(peers, middle), NOISE_PART * middle))


def top_stack(e: Evidence, growers: Sequence[Member]) -> Optional[Tuple[Growth, List[Member]]]:
    """The stack that grows in most of them, and in whom."""
    who: Dict[Tuple[str, str], List[Member]] = collections.defaultdict(list)
    most: Dict[Tuple[str, str], Growth] = {}
    for m in growers:
        for g in e.growth.get(m.number, ()):
            who[g.stack, g.kind].append(m)
            if (g.stack, g.kind) not in most or g.grown > most[g.stack, g.kind].grown:
                most[g.stack, g.kind] = g
    if not who:
        return None
    key = max(who, key=lambda k: (len(who[k]), sum(most[k].grown for _ in who[k]), k))
    return most[key], who[key]


def whose(job: Job, growers: Sequence[Member]) -> str:
    """", all of pp=3": where they are just a role's or a node's."""
    inside = {m.number for m in growers}
    for what in ("", "node "):
        groups: Dict[str, List[Member]] = collections.defaultdict(list)
        for m in job.members:
            groups[m.host if what else m.role].append(m)
        for name, members in groups.items():
            if len(groups) > 1 and len(members) == len(growers) and all(m.number in inside for m in members):
                return ", all of %s%s" % (what, name)
    return ""


def growth(e: Evidence) -> List[Finding]:
    growers = [m for m in e.job.members if e.leaks(m)]
    if not growers:
        return []
    everywhere = len(growers) >= EVERYWHERE * len(e.job.members)
    if not everywhere:
        growers = [m for m in growers if grows_apart(e, m, growers)]
    if not growers:
        return []
    grown = [v["bytes"] for m in growers for v in e.verdicts[m.number] if v["kind"] == "leak"]
    found, common = [], top_stack(e, growers)
    at = " at %s" % e.site(common[0].stack) if common else ""
    figures = {"ranks": [m.rank for m in growers], "of": len(e.job.members)}
    if everywhere:
        text = "memory grows in %d of %d ranks%s, by %s in the median" % (len(growers), len(e.job.members), at, size(int(median(grown))))
        found.append(Finding("growth_everywhere", sum(grown), "high", growers, text, "it is the program's: memtrace leaks of any rank's trace shows the stacks",
                             common[0].stack if common else None, figures))
    else:
        text = "memory grows in %d of %d ranks (%s%s)%s, by up to %s; their peers don't have that" % (
            len(growers), len(e.job.members), names_of(growers), whose(e.job, growers), at, size(max(grown)))
        found.append(Finding("growth_in_few", sum(grown), "high" if len(growers) > 1 else "medium", growers, text,
                             "look for what these ranks do or get that the others don't: data, logging, evaluation", common[0].stack if common else None, figures))
    if common and len(common[1]) >= 2 and len(common[1]) * 2 > len(growers):
        g, who = common
        text = "%s grows in %d of the %d ranks that grow, by up to %s" % (e.site(g.stack), len(who), len(growers), size(g.grown))
        found.append(Finding("common_growth", g.grown, "high", who, text, "find what holds the blocks of this line: one change mends all of them", g.stack,
                             {"stack": g.stack, "kind": g.kind, "ranks": [m.rank for m in who]}))
    return found


# ---- what is left ----------------------------------------------------------------------------------------------------------------------


def tightest(e: Evidence) -> Optional[Tuple[Member, Any]]:
    spaces = [(m, s) for m in e.job.members for s in e.spaces.get(m.number, ())]
    return min(spaces, key=lambda p: (p[1].left / p[1].total, p[0].number)) if spaces else None


def headroom(e: Evidence) -> List[Finding]:
    """Of a rank that failed another finding tells."""
    found = tightest(e)
    if found is None or e.fatal:
        return []
    m, space = found
    if space.left >= LEAST_HEADROOM * space.total or any(r["oom_killed"] in ("yes", "likely") for r in (x.run for x in e.job.members)):
        return []
    tight = [x for x in e.job.members if any(s.left < LEAST_HEADROOM * s.total for s in e.spaces.get(x.number, ()))]
    text = "%s on %s had %s of %s left on its %s, the least of all; %s below %d %%" % (
        m.name, m.host, size(space.left), size(space.total), space.where, "it alone is" if len(tight) == 1 else some(len(tight), "rank") + " are", 100 * LEAST_HEADROOM)
    advice = "activations may grow by %d %% there, so the batch by no more" % (100 * space.left // space.activations) if space.activations else \
        "lower the batch, or what this rank alone has, before inputs get longer"
    return [Finding("headroom", space.left, "high", [m], text, advice, None,
                    {"rank": m.rank, "left": space.left, "total": space.total, "where": space.where, "ranks": [x.rank for x in tight]})]


def lossy(m: Member) -> bool:
    return bool(m.run["lost_events"] or m.run["skipped_slots"] or m.run["damage"])


def coverage(e: Evidence) -> List[Finding]:
    job = e.job
    cut = [m for m in job.members if m.run["cut_off"] or (how_ended(m.run) == "no word" and m.run["state"] != "running" and only_cut(e, m) and not lossy(m))]
    lost = [m for m in job.members if lossy(m) and m not in cut]
    running = [m for m in job.members if m.run["state"] == "running"]
    parts = []
    if job.missing:
        parts.append("%s of %d missing: %s" % (some(len(job.missing), "rank"), job.world or 0, ", ".join(map(str, job.missing[:8])) + (" .." if len(job.missing) > 8 else "")))
    if e.failed:
        parts.append("%s can't be read, as %s: %s" % (some(len(e.failed), "trace"), e.failed[0][0].rstrip("/").rpartition("/")[2], e.failed[0][1].replace("memtrace: ", "")))
    for members, what in ((cut, "cut off"), (lost, "with losses"), (running, "still running")):
        if members:
            parts.append("%s %s: %s" % (some(len(members), "rank"), what, names_of(members)))
    if not parts:
        return []
    figures = {"missing": job.missing, "failed": [p for p, _ in e.failed], "cut_off": [m.rank for m in cut], "lossy": [m.rank for m in lost],
               "running": [m.rank for m in running]}
    return [Finding("coverage", 0, "high", [], "; ".join(parts), "what is said of them is what could be read; memtrace fleet again takes what has come since", None, figures)]


def find(e: Evidence) -> List[Finding]:
    """All that is found, what ended the job first."""
    grow = growth(e)
    growers = [m for f in grow if f.kind == "growth_in_few" for m in f.members]
    rules: List[Callable[[], List[Finding]]] = [lambda: first_death(e), lambda: grow, lambda: outliers(e, growers), lambda: imbalance(e), lambda: headroom(e),
                                                lambda: coverage(e)]
    return [f for rule in rules for f in rule()]
