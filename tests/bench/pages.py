"""What pages say of costs, taken from the table of tests/bench/run: docs/COMPARISON.md's rows, and README's two sentences."""
import os
import re

import bench

COMPARISON, README = (os.path.join(bench.TOP, name) for name in ("docs/COMPARISON.md", "README.md"))
BEGIN, END = "<!-- costs -->\n", "<!-- /costs -->\n"
LOOP, THROUGH, SHELL, ALONE = "PyTorch, 60 steps: loop", "malloc+free through 16 frames, %s", "200 x /bin/true from one shell", "200 x /bin/true, each its own trace"
MANY, DEMO = "100 million events", "the demo"


def times(top, name=None):
    """Plain as it is, the others as multiples of it."""
    def cells(rows):
        row = rows[top, name or top]
        return ["%.2f s" % row["none"].median] + ["%.2fx" % (row[t].median / row["none"].median) if t in row else "" for t in bench.Table.COLUMNS[1:]]
    return cells


def more(top, unit, name):
    """Plain as it is, of the others what they add."""
    def cells(rows):
        plain = rows[top, top]["none"].median
        return [("%.1f %s" if unit == "ns" else "%.2f %s") % (plain, unit)] + texts(top, name)(rows)[1:]
    return cells


def texts(top, name, change=lambda text: text):
    return lambda rows: [change(rows[top, name].get(tracer, "")) for tracer in bench.Table.COLUMNS]


def rounded(text):
    """`+88.7 ns` as `+89 ns`."""
    return re.sub(r"\d+\.\d+", lambda found: "%.0f" % float(found[0]), text)


ROWS = (
    ("PyTorch loop (60 steps, 9,900 mallocs each)", times(LOOP), "1.10x, 1.02x, 1.03x"),
    ("whole process with `import torch`", times(LOOP, "whole process"), "1.20x, 1.05x"),
    ("CPU of all its processes, recorder included", times(LOOP, "CPU of all processes"), ""),
    ("resident memory added", texts(LOOP, "peak RSS added (f)", lambda text: rounded(text).lstrip("+")), ""),
    ("malloc + free through 16 frames, main thread, CPU a pair", more(THROUGH % "the main thread", "ns", "CPU added to a pair"), "+60 ns"),
    ("the same, another thread", more(THROUGH % "1 thread", "ns", "CPU added to a pair"), "+60 ns"),
    ("the same, 2 threads", more(THROUGH % "2 threads", "ns", "CPU added to a pair"), ""),
    ("2 threads' speed a thread, of what plain malloc does", texts(THROUGH % "2 threads", "2 threads' speed, a thread"), "0.95"),
    ("Python frames (25) add to a native capture", texts("a capture below 25 frames of Python", "Python frames add to that", lambda text: text.rpartition(", ")[2]), "30 %"),
    ("`/bin/true`, 200 from one shell", more(SHELL, "ms", "added to a process"), "+1 ms"),
    ("`/bin/true`, each its own trace", more(ALONE, "ms", "added to a process"), "+1 ms"),
    ("PyTorch: bytes an event on disk, stacks included", texts("PyTorch: bytes an event", "PyTorch: bytes an event"), "2.0"),
    ("random malloc and free: bytes an event", texts("malloc+free: bytes an event", "malloc+free: bytes an event"), "2.0"),
    ("`report` of %s million malloc and free events", texts(MANY, "report"), "60 s"),
    ("`report` of the demo's %s million events", texts(DEMO, "report"), "2 s"),
)


def table(rows):
    lines = ["| | plain | memtrace | sample | no stacks | heaptrack | memray | aim |", "|---|---:|---:|---:|---:|---:|---:|---|"]
    for (name, cells, aim) in ROWS:
        if "%s" in name:
            name %= rows[MANY if "malloc" in name else DEMO, "million events"]["memtrace"]
        shown = [rounded(c) if c.startswith("+") and c.endswith(" ns") else c for c in cells(rows)]
        lines.append("|%s|" % "|".join(" %s " % cell if cell else " " for cell in (name, *shown, aim)))
    return "\n".join(lines) + "\n"


def replaced(text, pattern, *values):
    found = re.search(pattern, text)
    for group in range(len(values), 0, -1):
        text = text[:found.start(group)] + values[group - 1] + text[found.end(group):]
    return text


def refresh(rows):
    """Rewrites both pages; a row that was not measured is a KeyError before anything is written."""
    with open(COMPARISON, encoding="utf-8") as file:
        page = file.read()
    with open(README, encoding="utf-8") as file:
        readme = file.read()
    page = page[:page.index(BEGIN) + len(BEGIN)] + table(rows) + page[page.index(END):]
    readme = replaced(readme, r"A PyTorch loop with full stacks\s+takes ([\d.]+x) of its time", times(LOOP)(rows)[1])
    readme = replaced(readme, r"The demo's\s+takes ([\d.]+) MB for ([\d.]+)\s+million events", rows[DEMO, "MB on disk"]["memtrace"], rows[DEMO, "million events"]["memtrace"])
    for path, text in ((COMPARISON, page), (README, readme)):
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
