#!/usr/bin/env python3
"""What memtrace fleet costs: the reduction of a large trace, 10,000 ranks that are copies of 100 real reductions with other ranks, and as many with
2,000 sites each, which are copies of the tables of 100 generated ones.

usage: FLEET_PYTHON=PYTHON_WITH_DUCKDB tests/bench/fleet.py [RANKS [SITES]]
"""
import functools
import gzip
import json
import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import fleet_synth
import fleets
import mt


def measured(what, run):
    """Prints seconds by the clock, of processor time, and the most memory of a process of it."""
    began = time.monotonic()
    (status, err), usage = measured_apart(run)
    mt.equal(status, 0, "%s: %s" % (what, err))
    print("%-36s %7.2f s %7.2f s of processor time, at most %d MiB" % (what, time.monotonic() - began, usage[0], usage[1]), flush=True)


def measured_apart(run):
    """((status, stderr), (seconds of processor time, MiB)): by a process of its own, as what children had is added up."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        import resource
        done = run()
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        os.write(write, json.dumps([[done.status, done.err[-2000:]], [used.ru_utime + used.ru_stime, used.ru_maxrss // 1024]]).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return json.loads(text)


@functools.lru_cache(None)
def real():
    """The reductions of 100 real traces."""
    source, plan = os.path.join(mt.scratch("real"), "t"), fleets.plan(100, seed=1, healthy=True)
    fleets.record(source, plan)
    texts = []
    for r in range(100):
        mt.equal(mt.execute([mt.MEMTRACE, "reduce", "-q", os.path.join(source, str(r))], env=mt.clean_env()).status, 0)
        with gzip.open(os.path.join(source, str(r), "reduced.ndjson.gz"), "rt") as file:
            texts.append(file.read())
    return texts


def copies(count):
    """A folder of reductions of that many ranks."""
    target, texts = mt.scratch("copies"), [text.replace('"world_size":100', '"world_size":%d' % count) for text in real()]
    for n in range(count):
        with open(os.path.join(target, "%d.ndjson.gz" % n), "wb") as file:
            file.write(gzip.compress(re.sub(r'"rank":\d+', '"rank":%d' % n, texts[n % 100]).encode(), 1))
    return target


# The rows of the ranks of a fleet of 100, again and again with other ranks.
MULTIPLY = """
import glob, json, os, sys, duckdb
fleet, times = sys.argv[1], int(sys.argv[2])
with open(fleet + "/fleet.json") as file:
    saved = json.load(file)
count, parts, con = saved["next_id"], saved["parts"], duckdb.connect()
for table in sorted(os.listdir(fleet + "/tables")):
    for path in glob.glob("%s/tables/%s/*.parquet" % (fleet, table)) if table != "stack" else ():
        part = int(os.path.basename(path)[:6])
        for n in range(1, times):
            other = ", ".join("trace + %d AS trace" % (n * count) if c == "trace" else "rank + %d AS rank" % (n * count) if c == "rank" and table == "run" else '"%s"' % c
                              for c in (row[0] for row in con.execute("DESCRIBE SELECT * FROM read_parquet('%s')" % path).fetchall()))
            con.execute("COPY (SELECT %s FROM read_parquet('%s')) TO '%s/tables/%s/%06d.parquet' (FORMAT parquet, COMPRESSION zstd)"
                        % (other, path, fleet, table, part + n * parts))
for name, entry in list(saved["traces"].items()):
    for n in range(1, times):
        saved["traces"]["%s-%d" % (name, n)] = dict(entry, id=entry["id"] + n * count, part=entry["part"] + n * parts)
saved.update(next_id=count * times, parts=parts * times)
with open(fleet + "/fleet.json", "w") as file:
    json.dump(saved, file)
"""


def questions(fleet, what):
    measured("report" + what, lambda: fleets.tool("fleet", "report", fleet, timeout=3600))
    measured("page" + what, lambda: fleets.tool("fleet", "report", "--html", os.path.join(mt.scratch("page"), "p.html"), fleet, timeout=3600))
    measured("query over all sites" + what, lambda: fleets.tool("fleet", "report", "--sql", "SELECT stack, count(*), max(peak) FROM site GROUP BY ALL", fleet, timeout=3600))


def with_many_sites(count, sites):
    made = fleet_synth.Fleet(71, healthy=True, count=100, sites=sites)
    folder, fleet = os.path.join(mt.scratch("wide"), "r"), os.path.join(mt.scratch("fleet"), "f")
    made.write(folder)
    print("%-36s %7d bytes" % ("a reduction of %d sites" % sites, os.path.getsize(os.path.join(folder, "0.ndjson.gz"))))
    measured("load 100 ranks of %d sites" % sites, lambda: fleets.tool("fleet", "-q", "--engine", "local", "-o", fleet, folder, timeout=3600))
    env = fleets.environment()
    done = mt.execute(["python3", "-c", MULTIPLY, fleet, str(count // 100)], env=env, timeout=3600)
    mt.equal(done.status, 0, done.err)
    size = sum(os.path.getsize(os.path.join(where, name)) for where, _, names in os.walk(os.path.join(fleet, "tables")) for name in names)
    print("%-36s %7d MB" % ("tables of %d such ranks" % count, size // 10 ** 6))
    mt.equal(fleets.report(fleet)["ranks"], count, "ranks")
    mt.check(fleets.connect(fleet)("SELECT count(*) AS n FROM site")[0]["n"] >= count * sites, "too few rows of sites")
    questions(fleet, ", %d of %d sites" % (count, sites))


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10000
    sites = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    trace = mt.shimmed([mt.program("busy"), "3000000", "100", "300"]).trace.settle().path
    out = os.path.join(mt.scratch("out"), "r.ndjson.gz")
    measured("reduce, 6 million events", lambda: mt.execute([mt.MEMTRACE, "reduce", "-q", "-o", out, trace], env=mt.clean_env()))
    print("%-28s %7d bytes" % ("its reduction", os.path.getsize(out)))
    for ranks in (count // 10, count):
        folder, fleet = copies(ranks), os.path.join(mt.scratch("fleet"), "f")
        measured("load %d ranks" % ranks, lambda: fleets.tool("fleet", "-q", "--engine", "local", "-o", fleet, folder, timeout=3600))
        questions(fleet, ", %d ranks" % ranks)
        with_many_sites(ranks, sites)
    mt.Scratch.remove()


try:
    main()
except mt.Skip as why:
    print("memtrace fleet was not measured: %s" % why)
    mt.Scratch.remove()
