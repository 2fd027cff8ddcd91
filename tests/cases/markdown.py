#!/usr/bin/env python3
"""memtrace report --format markdown, as markdown-it reads it: tables with the figures of --json, and names that mean nothing."""
import functools
import json
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../battery"))
import cases
import consumers
import mt

READ = """
import json, sys
from markdown_it import MarkdownIt
md = MarkdownIt("commonmark", {"html": True}).enable("table")
tokens = md.parse(sys.stdin.read())
tables, heads, cells, kinds = {}, [], [], set()
for i, t in enumerate(tokens):
    inline = tokens[i + 1] if i + 1 < len(tokens) else None
    if t.type == "heading_open":
        heads.append(inline.content)
    elif t.type == "tr_open":
        cells = []
    elif t.type in ("td_open", "th_open"):
        cells.append("".join(c.content for c in inline.children))
    elif t.type == "tr_close":
        tables.setdefault(heads[-1], []).append(cells)
    kinds.update(c.type for c in t.children or [])
    kinds.add(t.type)
print(json.dumps([heads, tables, sorted(kinds)]))
"""


def parsed(trace):
    done = mt.execute([mt.MEMTRACE, "report", "--format", "markdown", trace])
    mt.equal((done.status, done.err), (0, ""))
    path = consumers.path("python")
    read = mt.execute([mt.python(), "-c", READ], env=mt.clean_env(PYTHONPATH=path), stdin=done.out.encode())
    mt.equal((read.status, read.err), (0, ""))
    return json.loads(read.out)


@functools.lru_cache(None)
def battery(kind):
    path = os.path.join(mt.scratch("battery"), "t")
    cases.make(path, kind, 301, True)
    return path


def as_text(n):
    """As screens have it."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1024 or unit == "GiB":
            return "%d B" % n if unit == "B" else ("%.2f %s" if unit == "GiB" else "%.1f %s") % (n, unit)
        n /= 1024


@mt.variants("other_process_traced", "capacity", "copies", "leak")
def case_tables_have_the_figures_of_json(kind):
    heads, tables, _ = parsed(battery(kind))
    page = json.loads(mt.execute([mt.MEMTRACE, "report", "--json", battery(kind)]).out)
    mt.equal(heads[0], "memtrace: " + page["status"])
    ooms = [(d["name"], str(o["pid"]), as_text(o["requested_bytes"])) for d in page["devices"] for o in d["ooms"]]
    mt.equal([(row[1], row[2], row[3]) for row in tables.get("Out of memory", [])[1:]], ooms)
    verdicts = [[v["kind"], v["device"] or "", v["certainty"], v["evidence"]] for v in page["verdicts"]]
    mt.equal([row[:2] + row[3:] for row in tables.get("Why", [])[1:]], verdicts)
    mt.equal([[row[0], row[2]] for row in tables.get("Devices", [])[1:]], [[d["name"], as_text(d["peak_bytes"])] for d in page["devices"]])
    mt.check(all(len(row) == len(rows[0]) for rows in tables.values() for row in rows), "rows that are cut: %s" % tables)


def case_names_mean_nothing():
    path = os.path.join(mt.scratch("program"), "x.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write("def keep(size):\n    kept.append(bytearray(size))\nkept = []\nname = '<img src=x>|**b**`c`[d](http://e) @all #1 &amp;\\n# h'\n"
                   "keep.__code__ = keep.__code__.replace(co_name=name, **({'co_qualname': name} if hasattr(keep.__code__, 'co_qualname') else {}))\n"
                   "keep(100 << 20)\n")
    _, tables, kinds = parsed(mt.shimmed([mt.python(), path]).trace.settle().path)
    mt.check(any("<img src=x>|**b**`c`[d](http://e) @all #1 &amp;?# h" in row[-1] for row in tables["Largest owners"]), tables["Largest owners"])
    mt.equal(set(kinds) & {"html_inline", "html_block", "link_open", "strong_open", "em_open", "code_inline", "image"}, set())


def case_wrong_usage():
    for words, text in (((), "unknown value 'html'; there are markdown, github, sarif and junit"),):
        done = mt.execute([mt.MEMTRACE, "report", "--format", "html", *words, battery("leak")])
        mt.equal((done.status, text in done.err), (2, True), done.err)
    done = mt.execute([mt.MEMTRACE, "report", "--format", "markdown", "--json", battery("leak")])
    mt.equal((done.status, "not with --json" in done.err), (2, True), done.err)


mt.main()
