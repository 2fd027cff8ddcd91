"""Fleets of real traces: tests/programs/rank.c once for each rank, with what its launcher would set and a host name of its own, and what is
wrong with some of them planted by a plan that a seed makes.

    plan = fleets.plan(100, seed=1)          # what is wrong with whom; healthy=True: nothing
    fleets.record(folder, plan)              # a trace for each rank in folder/RANK
    done = fleets.tool("fleet", "-o", ...)
"""
import concurrent.futures
import ctypes
import functools
import json
import os
import random
import shutil
import signal
import subprocess

import mt

CLONE_NEWUTS = 0x04000000
STAGES, PER_NODE = 4, 8
LIBC = ctypes.CDLL(None, use_errno=True)


class Plan:
    """.words of each rank: the program's arguments; .truth: {kind of finding: ranks}"""

    def __init__(self, count):
        self.count, self.words, self.missing, self.cut, self.damaged, self.running, self.truth = count, {}, [], [], [], [], {}
        self.order = list(range(count))

    def stage(self, rank):
        return rank * STAGES // self.count


def plan(count, seed, healthy=False, leakers=3, followers=None, cut=None, missing=5):
    """An outlier, a stage that is 15 % heavier, leakers with one stack, one that dies first and others that abort after it, some that are
    cut off, one that is still written, some that are missing: all different ranks."""
    rng, p = random.Random("fleet %d %d" % (count, seed)), Plan(count)
    weights = 8192
    heavy = rng.randrange(STAGES)
    for r in range(count):
        kib = int(weights * (1 + rng.gauss(0, 0.002)))
        if not healthy and p.stage(r) == heavy:
            kib = int(kib * 1.15)
        p.words[r] = [str(kib), "noise=%d" % rng.randrange(1 << 20)]
    if healthy:
        return p
    followers = min(40, count // 5) if followers is None else followers
    cut = max(1, count // 100) if cut is None else cut
    ranks = rng.sample(range(count), 1 + leakers + 1 + followers + cut + 1 + 1 + missing)
    outlier, ranks = ranks[0], ranks[1:]
    leaking, ranks = ranks[:leakers], ranks[leakers:]
    first, ranks = ranks[0], ranks[1:]
    after, ranks = ranks[:followers], ranks[followers:]
    p.cut, ranks = ranks[:cut], ranks[cut:]
    p.running, p.damaged, p.missing = ranks[:1], ranks[1:2], ranks[2:]
    p.words[outlier].append("extra=%d" % (weights * 3))
    for r in leaking:
        p.words[r].append("leak=256")
    p.words[first].append("die=%d" % signal.SIGSEGV)
    for r in after:
        p.words[r].append("die=%d" % signal.SIGABRT)
    p.order = [first] + sorted(set(range(count)) - {first} - set(p.missing))
    p.truth = {"outlier": [outlier], "stage_imbalance": ["pp=%d" % heavy], "growth_in_few": sorted(leaking), "common_growth": sorted(leaking), "first_death": [first],
               "coverage": sorted(p.missing)}
    p.followers = sorted(after)
    return p


def on_host(name):
    """In a child: a name of the machine that is its own. Without the rights it is the machine's."""
    def become():
        if LIBC.unshare(CLONE_NEWUTS) == 0:
            LIBC.sethostname(name.encode(), len(name))
    return become


def start(folder, p, rank, job="4711"):
    env = mt.shim_env(os.path.join(folder, "%d" % rank))
    env.update(RANK=str(rank), LOCAL_RANK=str(rank % PER_NODE), GROUP_RANK=str(rank // PER_NODE), WORLD_SIZE=str(p.count), SLURM_JOB_ID=job,
               MEMTRACE_TAGS="pp=%d,dp=%d" % (p.stage(rank), rank), MEMTRACE_KEEP_FREE="0")
    command = [mt.program("rank"), *p.words[rank]]
    if any(w.startswith("die=") for w in command):  # somebody who waits for it knows how it died
        command = ["sh", "-c", '"$0" "$@"; exit $?', *command]
    return subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                            preexec_fn=on_host("node%d" % (rank // PER_NODE)))


def record(folder, p, job="4711", at_once=4):
    """Runs them all; who dies first is first. Returns the processes that still run (to be ended by the caller)."""
    os.makedirs(folder, exist_ok=True)
    if p.order and p.order[0] != 0 or p.missing:
        start(folder, p, p.order[0], job).wait()
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        list(pool.map(lambda r: start(folder, p, r, job).wait(), [r for r in p.order if not os.path.exists(os.path.join(folder, "%d" % r))]))
    settle(folder)
    for r in p.cut:
        for name in os.listdir(os.path.join(folder, str(r))):
            if name.endswith((".trace", ".ring")):
                path = os.path.join(folder, str(r), name)
                os.truncate(path, min(20000, os.path.getsize(path) // 2))
    for r in p.damaged:
        for name in os.listdir(os.path.join(folder, str(r))):
            with open(os.path.join(folder, str(r), name), "r+b") as file:
                file.write(bytes(1 << 16))
    return [going_on(folder, p, r) for r in p.running]


def going_on(folder, p, rank):
    """A rank that is still being written."""
    shutil.rmtree(os.path.join(folder, str(rank)))
    env = mt.shim_env(os.path.join(folder, str(rank)))
    env.update(RANK=str(rank), LOCAL_RANK=str(rank % PER_NODE), WORLD_SIZE=str(p.count), SLURM_JOB_ID="4711", MEMTRACE_TAGS="pp=%d,dp=%d" % (p.stage(rank), rank))
    child = subprocess.Popen([mt.program("rank"), *p.words[rank], "pause=1"], env=env, stdout=subprocess.PIPE)
    child.stdout.readline()
    return child


def settle(folder):
    for name in os.listdir(folder):
        mt.Trace(os.path.join(folder, name)).settle()


CONSUMERS = os.environ.get("CONSUMERS", os.path.join(mt.VENV, "consumers"))


@functools.lru_cache(None)
def interpreter(*modules):
    """(python, PYTHONPATH) with DuckDB and these modules: the tests' environment with what scripts/setup put beside it, or that of `long`."""
    for python, path in ((os.environ.get("FLEET_PYTHON", ""), ""), (os.path.join(mt.VENV, "bin/python3"), os.path.join(CONSUMERS, "python")),
                         (os.path.join(mt.TOP, "build/venv-reach/bin/python3"), "")):
        code = "import importlib.util, sys; sys.exit(any(importlib.util.find_spec(m) is None for m in %r))" % (["duckdb", *modules],)
        if os.path.exists(python) and subprocess.run([python, "-c", code], env=mt.clean_env(PYTHONPATH=path), check=False).returncode == 0:
            return python, path
    return None


def environment(*modules, **more):
    """In which `python3` is that one; skips where there is none."""
    found = interpreter(*modules)
    if not found:
        mt.skip("no Python with duckdb%s (scripts/setup check)" % "".join(", " + m for m in modules))
    env = mt.clean_env(**more)
    env.update(PATH=os.path.dirname(found[0]) + ":" + env.get("PATH", "/usr/bin:/bin"), PYTHONPATH=found[1], PYTHONDONTWRITEBYTECODE="1", COLUMNS="80", LINES="24")
    return env


def tool(*words, modules=(), timeout=600, env=None, **options):
    return mt.execute([mt.MEMTRACE, *words], env=dict(environment(*modules), **(env or {})), timeout=timeout, **options)


def connect(fleet):
    """In another process, since this one may lack DuckDB: rows of a query, as objects."""
    def ask(query):
        done = tool("fleet", "report", "--json", "--sql", query, fleet)
        mt.equal(done.status, 0, "%s: %s" % (query, done.err))
        return json.loads(done.out)
    return ask


DUMP = """
import json, sys
from libmemtrace.fleet.store import Fleet
fleet = Fleet(sys.argv[1], sys.argv[2])
con, found = fleet.connect(), {}
def ask(query):
    cursor = con.execute(query)
    names = [d[0] for d in cursor.description]
    return [dict(zip(names, row)) for row in cursor.fetchall()]
for table in fleet.schema:
    found[table] = ask("SELECT DISTINCT * FROM stack" if table == "stack" else "SELECT path, r.* EXCLUDE trace FROM %s r JOIN trace USING (trace)" % table)
found["trace"] = ask("SELECT path, state, error FROM trace")
json.dump(found, sys.stdout)
"""


def tables(fleet):
    """{table: rows}, each row with the path of its trace, in an order that is the fleet's whatever made it. Times to some microseconds: clocks
    of raw traces are calibrated as they are read."""
    env = environment()
    env["PYTHONPATH"] = os.path.join(mt.TOP, "python") + ":" + env["PYTHONPATH"]
    done = mt.execute(["python3", "-c", DUMP, fleet, mt.MEMTRACE], env=env)
    mt.equal(done.status, 0, done.err)
    found = json.loads(done.out)
    for rows in found.values():
        for row in rows:
            for key, value in row.items():
                if key.endswith("_ns") and isinstance(value, int):
                    row[key] = (value + 5000) // 10000
                elif isinstance(value, float):
                    row[key] = float("%.3g" % value)
    return {table: sorted(json.dumps(row, sort_keys=True) for row in rows) for table, rows in found.items()}


def report(fleet, *words):
    done = tool("fleet", "report", "--json", *words, fleet)
    mt.equal(done.status, 0, "memtrace fleet report (%s)" % done.err)
    return json.loads(done.out)


def found(said):
    """{kind: ranks, or groups}"""
    kinds = {}
    for f in said["findings"]:
        own = [f["figures"]["group"]] if f["kind"] == "stage_imbalance" else f["figures"]["missing"] if f["kind"] == "coverage" else f["ranks"]
        kinds.setdefault(f["kind"], []).extend(own)
    return {k: sorted(v, key=lambda r: (isinstance(r, str), r)) for k, v in kinds.items()}
