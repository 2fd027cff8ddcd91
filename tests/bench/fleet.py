#!/usr/bin/env python3
"""What memtrace fleet costs: the reduction of a large trace, and 10,000 ranks that are copies of 100 real reductions with other ranks.

usage: FLEET_PYTHON=PYTHON_WITH_DUCKDB tests/bench/fleet.py [RANKS]
"""
import gzip
import os
import re
import resource
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import fleets
import mt


def measured(what, run):
    """Prints seconds by the clock, of processor time, and the most memory of any child so far."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = run()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    mt.equal(done.status, 0, "%s: %s" % (what, done.err))
    print("%-28s %7.2f s %7.2f s of processor time, at most %d MB" % (what, time.monotonic() - began, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
                                                                     after.ru_maxrss // 1024), flush=True)
    return done


def copies(count):
    """A folder of reductions of that many ranks."""
    source, plan = os.path.join(mt.scratch("real"), "t"), fleets.plan(100, seed=1, healthy=True)
    fleets.record(source, plan)
    target, texts = mt.scratch("copies"), []
    for r in range(100):
        mt.equal(mt.execute([mt.MEMTRACE, "reduce", "-q", os.path.join(source, str(r))], env=mt.clean_env()).status, 0)
        with gzip.open(os.path.join(source, str(r), "reduced.ndjson.gz"), "rt") as file:
            texts.append(file.read().replace('"world_size":100', '"world_size":%d' % count))
    for n in range(count):
        with open(os.path.join(target, "%d.ndjson.gz" % n), "wb") as file:
            file.write(gzip.compress(re.sub(r'"rank":\d+', '"rank":%d' % n, texts[n % 100]).encode(), 1))
    return target


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10000
    trace = mt.shimmed([mt.program("busy"), "3000000", "100", "300"]).trace.settle().path
    out = os.path.join(mt.scratch("out"), "r.ndjson.gz")
    measured("reduce, 6 million events", lambda: mt.execute([mt.MEMTRACE, "reduce", "-q", "-o", out, trace], env=mt.clean_env()))
    print("%-28s %7d bytes" % ("its reduction", os.path.getsize(out)))
    folder, fleet = copies(count), os.path.join(mt.scratch("fleet"), "f")
    measured("load %d ranks" % count, lambda: fleets.tool("fleet", "-q", "--engine", "local", "-o", fleet, folder, timeout=3600))
    measured("report", lambda: fleets.tool("fleet", "report", fleet))
    measured("page", lambda: fleets.tool("fleet", "report", "--html", os.path.join(mt.scratch("page"), "p.html"), fleet))
    measured("query over all sites", lambda: fleets.tool("fleet", "report", "--sql", "SELECT stack, count(*), max(peak) FROM site GROUP BY ALL", fleet))
    mt.Scratch.remove()


main()
