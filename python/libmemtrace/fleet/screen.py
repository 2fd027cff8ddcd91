"""A fleet on one screen."""
import os
import shutil
import sys
import textwrap
from typing import Any, Dict, List, Sequence

from .evidence import Evidence, median
from .members import MEASURES, Job
from .verdicts import Finding, tightest
from .words import count, day, names_of, printable, seconds, size, some

TITLE = 16  # columns of a finding's kind
LINES_OF_A_FINDING = 3


def columns() -> int:
    return max(60, min(120, shutil.get_terminal_size((80, 24)).columns))


def lines_of_screen() -> int:
    return max(16, shutil.get_terminal_size((80, 24)).lines)


def styled(text: str, code: str) -> str:
    return "\x1b[%sm%s\x1b[0m" % (code, text) if sys.stdout.isatty() and "NO_COLOR" not in os.environ else text


def head(path: str, job: Job) -> List[str]:
    members = job.members
    if not members:
        return ["memtrace fleet report %s" % path, "no rank could be read"]
    programs = sorted({m.run["command"] or m.run["program"] or "?" for m in members}, key=len)
    words = [os.path.basename(w) for w in programs[0].split()]
    command = " ".join(words[:2] if "." in "".join(words[1:2]) else words[:1])
    begin, end = min(m.run["start_ns"] for m in members), max(m.run["end_ns"] for m in members)
    ranked = [m for m in members if m.rank is not None]
    of = "%s of %s" % (count(len(members)), some(job.world, "rank")) if job.world and len(ranked) == len(members) else some(len(members), "rank" if ranked else "run")
    hosts = len({m.host for m in members})
    parts = [command, "%s on %s" % (of, some(hosts, "node")), *(["job %s" % job.job] if job.job else []), day(begin) + " UTC", seconds(end - begin)]
    while len("   ".join(parts)) > columns():
        parts.pop()
    return ["memtrace fleet report %s" % printable(path), printable("   ".join(parts))]


def cut(lines: List[str], most: int, width: int) -> List[str]:
    if len(lines) <= most:
        return lines
    last = lines[most - 1]
    return lines[:most - 1] + [last[:width - 3].rstrip() + " .."]


def finding_lines(number: int, f: Finding, most: int, width: int, advice: bool) -> List[str]:
    title = "%3d %-*s" % (number, TITLE, f.kind.replace("_", " ")[:TITLE])
    indent = " " * (4 + TITLE + 1)
    text = printable(f.evidence) + ("" if f.certainty == "high" else " (certainty %s)" % f.certainty)
    lines = cut(textwrap.wrap(text, width - len(indent), break_long_words=True), most, width - len(indent))
    found = [(title + " " if n == 0 else indent) + line for n, line in enumerate(lines)]
    if advice:
        found += [indent + line for line in cut(textwrap.wrap("-> " + printable(f.advice), width - len(indent), subsequent_indent="   "), 2, width - len(indent))]
    return found


def table(e: Evidence, most: int) -> List[str]:
    """By role, of the first measure that there is, and what was left."""
    job = e.job
    measure = next((x for x in MEASURES if any(m.bytes[x] for m in job.members)), None)
    if measure is None:
        return []
    rows = [("MEMORY  %s" % MEASURES[measure], "ranks", "median", "highest", "of")]
    roles = sorted(job.by_role().items(), key=lambda r: -median([m.bytes[measure] or 0 for m in r[1]]))
    for role, members in roles[:most]:
        have = [(m.bytes[measure] or 0, m) for m in members]
        top = max(have, key=lambda p: (p[0], -p[1].number))
        rows.append(("  " + printable(role), count(len(members)), size(median([b for b, _ in have])), size(top[0]), top[1].name))
    lines = ["%-34.34s %8s %12s %12s  %s" % row for row in rows]
    if len(roles) > most:
        lines.append("  %s more: --all" % some(len(roles) - most, "role"))
    least = tightest(e)
    if least:
        lines.append("least left: %s of %s on the %s of %s" % (size(least[1].left), size(least[1].total), least[1].where, least[0].name))
    return lines


def facts(job: Job) -> List[str]:
    found = []
    if job.earlier:
        found.append("%s of the same ranks before: the last of each counts" % some(job.earlier, "run"))
    if job.others:
        found.append("other jobs: " + ", ".join("%s (%s)" % (j, some(n, "rank")) for j, n in sorted(job.others.items())[:4]) + "; --job shows one")
    return found


def report(path: str, e: Evidence, findings: Sequence[Finding], everything: bool) -> str:
    width, room = columns(), 10 ** 6 if everything else lines_of_screen() - 1
    lines = [line[:width] for line in head(path, e.job)]
    tail = table(e, 10 ** 6 if everything else 3) + facts(e.job)
    more = ["more: memtrace fleet report --html fleet.html %s; --all, --json, --sql" % path]
    if not findings:
        lines.append(styled("NOTHING FOUND", "1") + "  " + "no rank died, differs from its peers, grows, or came near the end" if e.job.members else "")
        lines.append("of its memory; none is missing" if e.job.members else "")
    else:
        lines.append(styled("%s" % some(len(findings), "FINDING"), "1").replace("FINDINGs", "FINDINGS"))
        space = room - len(lines) - len(tail) - len(more)
        lines += fitted(findings, space, width, everything)
    return "\n".join(line.rstrip() for line in lines + [line[:width] for line in tail + more] if line) + "\n"


def fitted(findings: Sequence[Finding], room: int, width: int, everything: bool) -> List[str]:
    """All of them with less and less text, then fewer of them."""
    if everything:
        return [line for n, f in enumerate(findings, 1) for line in finding_lines(n, f, 100, width, True)]
    for most, advised in ((5, True), (4, True), (3, True), (3, False), (2, False), (1, False)):
        lines = [line for n, f in enumerate(findings, 1) for line in finding_lines(n, f, most, width, advised and n == 1)]
        if len(lines) <= room:
            return lines
    return lines[:max(1, room - 1)] + ["    %s more: --all" % some(len(findings) - max(1, room - 1), "finding")]


# ---- for programs ------------------------------------------------------------------------------------------------------------------------


def as_json(path: str, e: Evidence, findings: Sequence[Finding]) -> Dict[str, Any]:
    job = e.job
    roles = {}
    for role, members in job.by_role().items():
        roles[role] = {"ranks": len(members), "measures": {x: {"median_bytes": int(median(have)), "highest_bytes": max(have), "rank": next(m.rank for m in members if m.bytes[x] == max(have))}
                                                          for x in MEASURES for have in [[b for m in members for b in [m.bytes[x]] if b is not None]] if have}}
    return {"version": 1, "fleet": path, "job": job.job, "world_size": job.world, "ranks": len(job.members), "hosts": len({m.host for m in job.members}),
            "earlier_runs": job.earlier, "other_jobs": job.others, "role_keys": list(job.role_keys),
            "findings": [{"kind": f.kind, "bytes": f.bytes, "certainty": f.certainty, "ranks": [m.rank for m in f.members], "names": [m.name for m in f.members],
                          "evidence": f.evidence, "advice": f.advice, "stack": f.stack, "site": e.site(f.stack) or None, "figures": f.figures} for f in findings],
            "roles": roles, "missing": job.missing, "failed": [{"trace": p, "error": w} for p, w in e.failed]}


__all__ = ["report", "as_json", "names_of"]
