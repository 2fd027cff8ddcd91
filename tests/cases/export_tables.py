#!/usr/bin/env python3
"""memtrace export --format csv and ndjson, and timeline --csv, as DuckDB and pandas read them: the sums are those of --json."""
import functools
import json
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../battery"))
import cases
import consumers
import mt

TYPES = {"bytes": "BIGINT", "blocks": "BIGINT", "pid": "BIGINT", "at_s": "DOUBLE"}
DUCK = """
import duckdb, json, sys
table = sys.argv[1]
types = {k.lower(): v for k, v, *_ in duckdb.sql("describe select * from " + table).fetchall()}
print(json.dumps([types] + [duckdb.sql(q.replace("TABLE", table)).fetchall() for q in sys.argv[2:]]))
"""
PANDAS = """
import json, pandas, sys
t = pandas.read_csv(sys.argv[1], keep_default_na=False)
print(json.dumps([list(t.columns), int(t["bytes"].sum()), sorted(set(t["stack"]))[-3:], str(t["bytes"].dtype)]))
"""
PROGRAM = """
def keep(size):
    kept.append(bytearray(size))
kept = []
name = 'a;b"c,d\\n=7'
keep.__code__ = keep.__code__.replace(co_name=name, **({"co_qualname": name} if hasattr(keep.__code__, "co_qualname") else {}))
keep(300000)
"""


def run(*words):
    done = mt.execute([mt.MEMTRACE, *words])
    mt.equal((done.status, done.err), (0, ""), "%s" % (words,))
    return done.out


@functools.lru_cache(None)
def busy():
    return mt.shimmed([mt.program("busy"), "20000", "1000", "300"]).trace.settle().path


@functools.lru_cache(None)
def battery():
    path = os.path.join(mt.scratch("battery"), "t")
    cases.make(path, "other_process_traced", 301, True)
    return path


def export(form, trace, *words):
    out = os.path.join(mt.scratch("table"), "out." + form)
    run("export", "--format", form, "-o", out, *words, trace)
    return out


def moments(trace):
    peak = json.loads(run("peak", "--json", trace))
    found = {("heap", None): peak.get("host"), ("map", None): peak.get("map"), ("pinned", None): peak.get("pinned")}
    for d in peak["devices"]:
        found.update({(kind, d["name"]): d.get(kind) for kind in ("pool", "device")})
    return {key: (m["bytes"], m["blocks"]) for key, m in found.items() if m and m["bytes"]}


@mt.variants("csv", "ndjson")
def case_duckdb_adds_up_the_same(form):
    for trace in (busy(), battery()):
        table = ("read_csv('%s')" if form == "csv" else "read_json('%s', format='newline_delimited')") % export(form, trace)
        types, sums, processes = json.loads(consumers.script(DUCK, table, "select memory, nullif(device, ''), sum(bytes), sum(blocks) from TABLE group by 1, 2",
                                                             "select count(distinct pid) from TABLE"))
        mt.equal({(m, d): (int(size), int(blocks)) for m, d, size, blocks in sums if int(size)}, moments(trace))
        mt.equal({k: types[k] for k in TYPES}, TYPES)
        mt.equal(processes[0][0], 2 if trace == battery() else 1)


def case_duckdb_reads_the_timeline():
    out = os.path.join(mt.scratch("table"), "timeline.csv")
    with open(out, "w", encoding="utf-8") as file:
        file.write(run("timeline", "--csv", battery()))
    _, most = json.loads(consumers.script(DUCK, "read_csv('%s')" % out, "select kind, name, pid, device, max(high_bytes) from TABLE group by all"))
    series = json.loads(run("timeline", "--json", battery()))["series"]
    wanted = sorted((s["kind"], str(s["pid"] or "all"), s["uuid"] or s["device"] or "", max(p["high_bytes"] for p in s["points"])) for s in series if s["points"])
    mt.equal(sorted((k, str(p), d or "", int(m)) for k, _, p, d, m in most), wanted)


def case_pandas_and_names():
    """Quotes, commas and ends of lines in names part nothing."""
    if not mt.has_module("pandas"):
        mt.skip("pandas is not installed")
    path = os.path.join(mt.scratch("program"), "names.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    trace = mt.shimmed([mt.python(), path]).trace.settle().path
    out = export("csv", trace, "--device", "host")
    done = mt.execute([mt.python(), "-c", PANDAS, out], env=mt.clean_env())
    mt.equal((done.status, done.err), (0, ""))
    columns, size, _, kind = json.loads(done.out)
    mt.equal((size, kind), (moments(trace)[("heap", None)][0], "int64"))
    mt.equal(columns, "memory device pid process at_s category bytes blocks function file line library stack".split())
    with open(out, encoding="utf-8") as file:
        text = file.read()
    mt.check('a:b""c,d?=7' in text, "no such name")
    rows = [json.loads(line) for line in open(export("ndjson", trace, "--device", "host"), encoding="utf-8")]
    mt.equal(sum(r["bytes"] for r in rows), size)
    mt.check(any(f["function"] == 'a;b"c,d\n=7' for r in rows for f in r["stack"]), "no such name")


mt.main()
