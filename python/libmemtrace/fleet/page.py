"""A fleet as one HTML file that needs nothing else: the findings, and memory as a heat map of ranks by time."""
import base64
import gzip
import html
import json
import os
from typing import Any, Dict, List, Optional, Sequence, Tuple

from .errors import FleetError
from .evidence import OF_A_MEMBER, Evidence
from .members import Member
from .screen import as_json
from .verdicts import Finding

COLUMNS, MOST_ROWS = 256, 1024
LEVELS = 254  # 255: nothing was there
# What the tables call it, and the page.
SERIES = {"driver": "device memory", "reserved": "reserved by the pool", "pool": "in use in the pool", "heap": "heap", "map": "mappings", "pinned": "pinned memory"}


def series_of(what: str) -> str:
    return what.rpartition(" ")[2]


def stretches(begin: int, width: int, values: Sequence[int], start: int, column: float) -> List[Tuple[int, int]]:
    """(column, bytes) of each column that the series touches: the highest in it."""
    found: List[Tuple[int, int]] = []
    first = max(0, int((begin - start) / column))
    last = min(COLUMNS - 1, int((begin + width * len(values) - 1 - start) / column))
    for c in range(first, last + 1):
        low, high = start + c * column, start + (c + 1) * column
        i = max(0, int((low - begin) // width))
        k = max(i + 1, int(-(-(high - begin) // width)))
        if i < len(values):
            found.append((c, max(values[i:k])))
    return found


def rows_of(e: Evidence, name: str, span: Tuple[int, float]) -> Dict[int, List[Optional[int]]]:
    """{member: highest bytes in each column}; devices of a member are added up. A row at a time: ten thousand ranks are a lot."""
    found: Dict[int, List[Optional[int]]] = {}
    pattern = name if name in ("heap", "map", "pinned") else "% " + name
    cursor = e.con.execute("SELECT m.member, s.begin_ns, s.width_ns, s.high FROM timeline s %s WHERE s.what LIKE ? ORDER BY m.member" % OF_A_MEMBER, [pattern])
    for member, begin, width, values in iter(cursor.fetchone, None):
        row = found.setdefault(member, [None] * COLUMNS)
        for c, b in stretches(begin, width, values, *span):
            row[c] = (row[c] or 0) + b
    return found


def ended(row: List[Optional[int]], m: Member, span: Tuple[int, float]) -> List[Optional[int]]:
    """Nothing is known behind its end."""
    last = int((m.run["end_ns"] - span[0]) / span[1])
    return [b if c <= last else None for c, b in enumerate(row)]


def packed(rows: Sequence[Sequence[Optional[int]]], most: int) -> bytes:
    return bytes(255 if b is None else min(LEVELS, b * LEVELS // most) for row in rows for b in row)


def joined(rows: Sequence[Sequence[Optional[int]]]) -> List[Optional[int]]:
    """Of several ranks the highest."""
    return [max(known) if known else None for column in zip(*rows) for known in [[b for b in column if b is not None]]]


def data_of(path: str, e: Evidence, findings: Sequence[Finding]) -> Dict[str, Any]:
    members = e.job.members
    start = min(m.run["start_ns"] for m in members)
    end = max(m.run["end_ns"] for m in members)
    span = start, max(1.0, (end - start + 1) / COLUMNS)
    each = -(-len(members) // MOST_ROWS)
    groups = [members[i:i + each] for i in range(0, len(members), each)]
    maps = []
    for name, title in SERIES.items():
        rows = rows_of(e, name, span)
        if not rows:
            continue
        whole = [joined([ended(rows.get(m.number, [None] * COLUMNS), m, span) for m in group]) for group in groups]
        most = max((b for row in whole for b in row if b is not None), default=0)
        if most:
            maps.append({"title": title, "most": most, "cells": base64.b64encode(packed(whole, most)).decode()})
    marked = {m.number: f.kind for f in reversed(findings) for m in f.members}
    return {"report": as_json(path, e, findings), "start_ns": start, "seconds": (end - start) / 1e9, "columns": COLUMNS, "maps": maps,
            "rows": [{"name": group[0].name if len(group) == 1 else "%s to %s" % (group[0].name, group[-1].name), "host": group[0].host, "role": group[0].role,
                      "local": group[0].local_rank, "marks": sorted({marked[m.number] for m in group if m.number in marked})} for group in groups]}


def write(target: str, path: str, e: Evidence, findings: Sequence[Finding]) -> None:
    if not e.job.members:
        raise FleetError("no rank could be read, so there is no page")
    folder = os.path.dirname(os.path.abspath(__file__))
    parts = {}
    for name in ("page.html", "page.css", "page.js"):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            parts[name] = file.read()
    data = gzip.compress(json.dumps(data_of(path, e, findings)).encode(), mtime=0)
    text = parts["page.html"].replace("@TITLE@", html.escape("memtrace fleet " + os.path.basename(path.rstrip("/"))))
    text = text.replace("@CSS@", parts["page.css"]).replace("@DATA@", base64.b64encode(data).decode()).replace("@JS@", parts["page.js"])
    try:
        with open(target + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(target + ".new", target)
    except OSError as error:
        raise FleetError("%s: can't be written (%s)" % (target, error.strerror)) from None
