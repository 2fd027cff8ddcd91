#!/usr/bin/env python3
"""memtrace fleet: 200 real traces, of a fleet with everything wrong and of its healthy twin; engines that give the same tables; what dies on the
way; a rerun that does what is new; rules on their own; screens, page, queries, two fleets."""
# timeout: 500
import base64
import functools
import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import fleet_synth
import fleets
import mt

RANKS = 100
PLANS = []  # of fleets that were recorded
PAGE = os.path.join(mt.TOP, "docs/fleet.md")


@functools.lru_cache(None)
def recorded(healthy):
    """(folder, plan) of 100 real traces; 95 where some are missing."""
    fleets.environment()  # skips before the work
    folder = os.path.join(mt.scratch("healthy" if healthy else "sick"), "traces")
    plan = fleets.plan(RANKS, seed=11, healthy=healthy)
    plan.children = fleets.record(folder, plan)
    PLANS.append(plan)
    return folder, plan


def end(plan):
    for child in plan.children:
        child.kill()
        child.wait()
    plan.children = []


def reduced(folder, *words, **options):
    fleet = os.path.join(mt.scratch("fleet"), "f")
    done = fleets.tool("fleet", "-o", fleet, *(words or ("--engine", "local")), folder, **options)
    mt.equal(done.status, 0, "memtrace fleet (%s)" % done.err)
    return fleet, done


@functools.lru_cache(None)
def fleet_of(healthy):
    folder, plan = recorded(healthy)
    fleet, done = reduced(folder)
    return fleet, done, plan


def synthetic(seed, **options):
    fleets.environment()
    folder, made = mt.scratch("synthetic"), fleet_synth.Fleet(seed, **options)
    made.write(os.path.join(folder, "r"))
    return reduced(os.path.join(folder, "r"))[0], made


# ---- the two fleets ------------------------------------------------------------------------------------------------


def case_everything_is_found():
    fleet, done, plan = fleet_of(False)
    said = fleets.report(fleet)
    found = fleets.found(said)
    unreadable = plan.damaged
    want = dict(plan.truth, coverage=sorted(plan.truth["coverage"] + unreadable))
    mt.equal(found, want, "what is found")
    by_kind = {f["kind"]: f for f in said["findings"]}
    mt.equal(sorted(by_kind["first_death"]["figures"]["followers"]), plan.followers, "who followed")
    mt.equal(by_kind["first_death"]["certainty"], "high")
    coverage = by_kind["coverage"]["figures"]
    mt.equal([os.path.basename(p) for p in coverage["failed"]], [str(r) for r in unreadable], "traces that can't be read")
    mt.equal(coverage["running"], plan.running, "still running")
    mt.check(coverage["lossy"] + coverage["cut_off"] == plan.cut, "with losses: %s, not %s" % (coverage, plan.cut))
    mt.equal({f["kind"]: re.sub(r"^\S+ ", "", f["site"]) for f in said["findings"] if f["site"]},
             {"outlier": "gather_checkpoint", "growth_in_few": "keep_history", "common_growth": "keep_history", "stage_imbalance": "load_weights"}, "stacks that explain")
    outlier = by_kind["outlier"]["figures"]
    mt.between(31 << 20, outlier["bytes"], 34 << 20, "bytes of the outlier")
    mt.between(1.13, by_kind["stage_imbalance"]["figures"]["bytes"] / by_kind["stage_imbalance"]["figures"]["others"], 1.17, "of the heavy stage")
    mt.check("%d failed" % len(unreadable) in done.err, done.err)


def case_of_the_healthy_twin_nothing():
    fleet, done, _ = fleet_of(True)
    mt.equal(fleets.report(fleet)["findings"], [])
    mt.check("NOTHING FOUND" in done.out, done.out)


@mt.variants(False, True)
def case_screen(healthy):
    fleet, _, _ = fleet_of(healthy)
    for width, height in ((80, 24), (120, 40)):
        done = fleets.tool("fleet", "report", fleet, env={"COLUMNS": str(width), "LINES": str(height)})
        lines = done.out.splitlines()
        mt.equal([line for line in lines if len(line) > width], [], "lines that are too wide")
        mt.check(len(lines) <= height - 1, "%d lines of %d: %s" % (len(lines), height, done.out))
    if not healthy:
        for kind in fleets.found(fleets.report(fleet)):
            mt.check(kind.replace("_", " ") in done.out, "%s is not on the screen: %s" % (kind, done.out))


# ---- again, and by others --------------------------------------------------------------------------------------------


def states(fleet):
    with open(os.path.join(fleet, "fleet.json"), encoding="utf-8") as file:
        return {os.path.basename(t): e for t, e in json.load(file)["traces"].items()}


def copy(count):
    """Some of the traces, in a folder of one's own, not reduced yet."""
    source, plan = recorded(True)
    folder = os.path.join(mt.scratch("copy"), "t")
    os.makedirs(folder)
    for r in range(count):
        shutil.copytree(os.path.join(source, str(r)), os.path.join(folder, str(r)), ignore=shutil.ignore_patterns("reduced*"))
    for name in os.listdir(os.path.join(folder, "3")) if count > 3 else ():  # cut off where it began
        os.truncate(os.path.join(folder, "3", name), 0)
    return folder


def case_a_rerun_does_what_is_new():
    folder = copy(12)
    fleet, done = reduced(folder)
    mt.check("12 traces, 12 reduced now by local, 1 failed" in done.err, done.err)
    before = {n: e["loaded_ns"] for n, e in states(fleet).items()}

    def again(*words):
        done = fleets.tool("fleet", "-o", fleet, "--engine", "local", *words, folder)
        mt.equal(done.status, 0, done.err)
        return re.search(r"(\d+) traces, (\d+) reduced now", done.err).groups()

    mt.equal(again(), ("12", "1"), "only what failed is tried again")
    mt.equal({n: e["loaded_ns"] for n, e in states(fleet).items()}, before, "rows that were loaded anew")
    os.utime(os.path.join(folder, "5", "session"))
    shutil.rmtree(os.path.join(folder, "7"))
    shutil.copytree(os.path.join(recorded(True)[0], "40"), os.path.join(folder, "40"), ignore=shutil.ignore_patterns("reduced*"))
    mt.equal(again(), ("12", "3"), "one that changed, one that is new, one that failed")
    ranks = [r["rank"] for r in fleets.connect(fleet)("SELECT rank FROM run ORDER BY rank")]
    mt.equal(ranks, [0, 1, 2, 4, 5, 6, 8, 9, 10, 11, 40])
    mt.equal(again("--again"), ("12", "12"))
    mt.equal([r["rank"] for r in fleets.connect(fleet)("SELECT rank FROM run ORDER BY rank")], ranks, "rows after all were reduced again")


def case_a_reduction_that_is_there_is_taken():
    folder = copy(4)
    for r in (0, 1):
        mt.equal(mt.execute([mt.MEMTRACE, "reduce", os.path.join(folder, str(r))], env=mt.clean_env()).status, 0)
    _, done = reduced(folder)
    mt.check("4 traces, 2 reduced now" in done.err, done.err)


def case_traces_that_cannot_be_written():
    """The reductions are with the fleet. (root may write everywhere, so their folders' names are taken by a file system that may not.)"""
    folder = copy(3)
    shutil.rmtree(os.path.join(folder, "2"))
    packed = os.path.join(folder, "p.tar.zst")
    mt.equal(mt.execute([mt.MEMTRACE, "pack", "-o", packed, os.path.join(folder, "1")], env=mt.clean_env()).status, 0)
    shutil.rmtree(os.path.join(folder, "1"))
    fleet, _ = reduced(folder)
    mt.equal(len(os.listdir(os.path.join(fleet, "reductions"))), 1)
    mt.equal(len(fleets.connect(fleet)("FROM run")), 2)


def case_names_are_kept_for_the_next_trace():
    folder = copy(3)
    fleet, _ = reduced(folder)
    mt.check(os.listdir(os.path.join(fleet, "symbols")), "no names were kept")
    without, _ = reduced(folder, "--engine", "local", "--again", env={"MEMTRACE_SYMBOL_CACHE": ""})
    mt.check(not os.path.exists(os.path.join(without, "symbols")), "names were kept")
    mt.equal(fleets.tables(fleet), fleets.tables(without))


ENGINES = {"local": (), "dask": ("distributed",), "ray": ("ray",)}


def case_engines_give_the_same():
    """Each reduces for itself; one trace can't be read."""
    made = {}
    folder = copy(10)
    for engine in ("local", "dask"):  # Ray: tests/long/fleet.py
        for where, _, names in os.walk(folder):
            for name in names:
                if name.startswith("reduced"):
                    os.remove(os.path.join(where, name))
        fleet, done = reduced(folder, "--engine", engine, "--workers", "2", modules=ENGINES[engine])
        mt.check("10 reduced now by %s, 1 failed" % engine in done.err, done.err)
        made[engine] = fleets.tables(fleet)
    mt.equal(len(made["local"]["run"]), 9)
    for table, rows in made["local"].items():
        mt.equal(made["dask"][table], rows, "rows of " + table)


def killer(flag):
    """A program memtrace that ends its parent the first time it is asked to reduce."""
    path = os.path.join(mt.scratch("killer"), "memtrace")
    with open(path, "w", encoding="utf-8") as file:
        file.write('#!/bin/sh\ncase "$*" in *columns*) ;; *) mkdir "%s" 2>/dev/null && kill -9 $PPID && sleep 1 ;; esac\nexec "%s" "$@"\n' % (flag, mt.MEMTRACE))
    os.chmod(path, 0o755)
    return path


@mt.variants("local", "dask", long=("ray",))
def case_a_worker_is_killed(engine):
    """Dask's and Ray's is replaced and its trace tried again. Here the worker is the command itself: given again, it goes on."""
    folder, flag = copy(8), os.path.join(mt.scratch("flag"), "killed")
    fleet = os.path.join(mt.scratch("fleet"), "f")
    env = fleets.environment(*ENGINES[engine], MEMTRACE_FLEET_PROGRAM=killer(flag))
    env["PYTHONPATH"] = os.path.join(mt.TOP, "python") + ":" + env["PYTHONPATH"]
    command = ["python3", "-m", "libmemtrace.fleet", "--engine", engine, "--workers", "2", "-o", fleet, folder]
    done = mt.execute(command, env=env, timeout=120)
    mt.check(os.path.exists(flag), "nobody was killed")
    if engine == "local":
        mt.equal(done.status, -signal.SIGKILL)
        time.sleep(3)  # what it had begun ends by itself
        left = sum(not os.path.exists(os.path.join(folder, str(r), "reduced.ndjson.gz")) for r in range(8) if r != 3)
        done = mt.execute(command, env=env, timeout=120)
        mt.check("8 traces, %d reduced now" % (left + 1) in done.err, "%d were left: %s" % (left, done.err))
    mt.equal(done.status, 0, done.err)
    mt.equal([r["rank"] for r in fleets.connect(fleet)("SELECT rank FROM run ORDER BY rank")], [0, 1, 2, 4, 5, 6, 7])


def case_a_trace_that_kills_its_reducer():
    """It is tried three times, and then a row with the reason."""
    folder = copy(3)
    path = os.path.join(mt.scratch("killer"), "memtrace")
    with open(path, "w", encoding="utf-8") as file:
        file.write('#!/bin/sh\ncase "$*" in */1) echo x >>"%s/count"; kill -9 $$ ;; esac\nexec "%s" "$@"\n' % (os.path.dirname(path), mt.MEMTRACE))
    os.chmod(path, 0o755)
    env = fleets.environment(MEMTRACE_FLEET_PROGRAM=path)
    env["PYTHONPATH"] = os.path.join(mt.TOP, "python") + ":" + env["PYTHONPATH"]
    fleet = os.path.join(mt.scratch("fleet"), "f")
    done = mt.execute(["python3", "-m", "libmemtrace.fleet", "--engine", "local", "-o", fleet, folder], env=env, timeout=120)
    mt.equal(done.status, 0, done.err)
    with open(os.path.join(os.path.dirname(path), "count"), encoding="utf-8") as file:
        mt.equal(len(file.readlines()), 3, "tries")
    mt.equal(states(fleet)["1"]["error"], "memtrace reduce was ended by signal 9, 3 times")


# ---- rules -----------------------------------------------------------------------------------------------------------


@mt.variants(*((k,) for k in ("first_death", "outlier", "stage_imbalance", "growth_everywhere", "growth_in_few", "headroom", "coverage")))
def case_one_cause(kind):
    """Alone in a fleet it is found alone, and its twin has nothing."""
    fleet, made = synthetic(31 if kind != "stage_imbalance" else 32, count=48, causes={kind})
    found, want = fleets.found(fleets.report(fleet)), dict(made.truth)
    mt.equal(set(found), set(want), "what is found")
    for k in ("first_death", "outlier", "stage_imbalance", "growth_in_few", "headroom"):
        mt.equal(found.get(k), want.get(k), k)


def case_nothing_in_a_healthy_one():
    fleet, _ = synthetic(31, count=96, healthy=True)
    mt.equal(fleets.report(fleet)["findings"], [])


def case_ended_from_outside():
    """All got SIGTERM: somebody ended the job, and nobody died first."""
    made = fleet_synth.Fleet(33, healthy=True, count=64)
    for r in made.ranks:
        r.exit = ("signal", int(signal.SIGTERM))
    made.write(os.path.join(mt.scratch("ended"), "r"))
    folder = os.path.join(mt.scratch("ended"), "r")
    made.write(folder)
    mt.equal(fleets.report(reduced(folder)[0])["findings"], [])


def case_clocks_that_cannot_tell():
    """Two nodes, two ranks that died within a second: both are named."""
    made = fleet_synth.Fleet(34, healthy=True, count=64)
    for r, at in ((made.ranks[3], 100.0), (made.ranks[40], 100.4)):
        r.exit, r.end_s = ("signal", int(signal.SIGKILL)), at
    folder = os.path.join(mt.scratch("clocks"), "r")
    made.write(folder)
    said = fleets.report(reduced(folder)[0])["findings"]
    mt.equal([(f["kind"], f["certainty"]) for f in said], [("first_death", "medium")])
    mt.check("rank 3" in said[0]["evidence"] and "rank 40" in said[0]["evidence"], said[0]["evidence"])


def case_roles():
    """--role tells peers apart otherwise: with all ranks as one, a heavier stage is no stage."""
    fleet, made = synthetic(32, count=64, causes={"stage_imbalance"})
    mt.equal(fleets.report(fleet)["role_keys"], ["pp"])
    done = fleets.tool("fleet", "report", "--role", "tp", fleet)
    mt.equal((done.status, done.err), (2, "memtrace: --role: no tag 'tp'; there are dp, pp\n"))


def case_restarts_and_other_jobs():
    """The last run of a rank counts; the job with most ranks is shown, another by name."""
    made, other = fleet_synth.Fleet(35, healthy=True, count=16), fleet_synth.Fleet(36, healthy=True, count=8)
    folder = os.path.join(mt.scratch("jobs"), "r")
    made.write(folder)
    os.rename(os.path.join(folder, "3.ndjson.gz"), os.path.join(folder, "old.ndjson.gz"))
    later = fleet_synth.Fleet(35, healthy=True, count=16)
    later.start_ns += 3600 * 10 ** 9
    later.missing = [n for n in range(16) if n != 3]
    later.write(folder)
    other.write(folder + "2")
    for name in os.listdir(folder + "2"):
        with gzip.open(os.path.join(folder + "2", name), "rt") as source, gzip.open(os.path.join(folder, "other-" + name), "wt") as target:
            target.write(source.read().replace('"job": "77"', '"job": "78"'))
    fleet, _ = reduced(folder)
    said = fleets.report(fleet)
    mt.equal([said[k] for k in ("job", "ranks", "earlier_runs", "other_jobs", "findings")], ["77", 16, 1, {"78": 8}, []])
    mt.equal(fleets.report(fleet, "--job", "78")["ranks"], 8)
    done = fleets.tool("fleet", "report", "--job", "x", fleet)
    mt.equal((done.status, done.err), (2, "memtrace: --job: no job 'x'; there are 77, 78\n"))


# ---- page, queries, two fleets ---------------------------------------------------------------------------------------


def data_of(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    mt.check(not re.search(r"""(?:src|href)=["']?(?:https?:)?//|url\(""", text), "the page asks the network")
    return json.loads(gzip.decompress(base64.b64decode(re.search(r'id="data">([^<]*)<', text)[1])))


def case_page():
    """A row for each rank, as high as what it had; the findings of --json."""
    fleet, _, plan = fleet_of(False)
    path = os.path.join(mt.scratch("page"), "fleet.html")
    done = fleets.tool("fleet", "report", "--html", path, fleet)
    mt.equal((done.status, done.out), (0, path + "\n"), done.err)
    data, said = data_of(path), fleets.report(fleet)
    mt.equal([f["kind"] for f in data["report"]["findings"]], [f["kind"] for f in said["findings"]])
    mt.equal(len(data["rows"]), said["ranks"])
    heap = next(m for m in data["maps"] if m["title"] == "heap")
    cells = base64.b64decode(heap["cells"])
    mt.equal(len(cells), len(data["rows"]) * data["columns"])
    ask = fleets.connect(fleet)
    peaks = {r["rank"]: r["heap_peak"] for r in ask("SELECT rank, heap_peak FROM run")}
    mt.equal(heap["most"], max(peaks.values()), "highest of the map")
    for n, r in enumerate(data["rows"]):
        own = [c for c in cells[n * data["columns"]:(n + 1) * data["columns"]] if c != 255]
        rank = int(r["name"].split()[1])
        mt.between(peaks[rank] / heap["most"] * 254 - 1.01, max(own), peaks[rank] / heap["most"] * 254, "row of %s" % r["name"])
    outlier = next(r for r in data["rows"] if r["name"] == "rank %d" % plan.truth["outlier"][0])
    mt.check("outlier" in outlier["marks"], outlier)


@mt.long
def case_page_of_many():
    """More ranks than rows: neighbours share one, with the highest."""
    fleet, made = synthetic(37, count=1030, causes={"outlier"}, sites=4)
    path = os.path.join(mt.scratch("page"), "fleet.html")
    mt.equal(fleets.tool("fleet", "report", "--html", path, fleet).status, 0)
    data = data_of(path)
    mt.equal(len(data["rows"]), 515)
    mt.check(os.path.getsize(path) < 2 << 20, "%d bytes" % os.path.getsize(path))
    device = next(m for m in data["maps"] if m["title"] == "device memory")
    cells = base64.b64decode(device["cells"])
    highest = [max(c for c in cells[n * 256:n * 256 + 256] if c != 255) for n in range(len(data["rows"]))]
    mt.check(highest.index(254) in [n // 2 for n in made.truth["outlier"]], "an outlier's row is the highest")


def case_queries():
    fleet, _, _ = fleet_of(True)
    done = fleets.tool("fleet", "report", "--sql", "SELECT count(*) AS n, min(rank) AS low FROM run", fleet)
    mt.equal((done.status, done.out), (0, "n\tlow\n%d\t0\n" % RANKS))
    done = fleets.tool("fleet", "report", "--sql", "-", fleet, stdin=b"SELECT site FROM stack WHERE site LIKE '%load_weights'")
    mt.check(done.status == 0 and done.out.count("\n") == 2 and "load_weights" in done.out, repr(done))
    done = fleets.tool("fleet", "report", "--sql", "SELECT nothing FROM run", fleet)
    mt.equal((done.status, done.out, done.err.count("\n")), (2, "", 1), done.err)
    mt.equal(fleets.connect(fleet)("SELECT count(*) AS n FROM member")[0]["n"], RANKS)


def case_two_fleets():
    before, after = fleet_of(True)[0], fleet_of(False)[0]
    done = fleets.tool("fleet", "diff", before, after)
    mt.equal(done.status, 0, done.err)
    mt.check("outlier new" in done.out and len(done.out.splitlines()) <= 23, done.out)
    said = json.loads(fleets.tool("fleet", "diff", "--json", after, before).out)
    mt.equal({f["change"] for f in said["findings"]}, {"gone"})
    heavy = fleet_of(False)[2].truth["stage_imbalance"][0]
    medians = {r["role"]: r["before_bytes"] / r["after_bytes"] for r in said["roles"] if r["measure"] == "heap"}
    for role, ratio in medians.items():
        mt.between(*((1.13, ratio, 1.17) if role == heavy else (0.99, ratio, 1.01)), "%s of the sick fleet by the healthy one" % role)
    done = fleets.tool("fleet", "diff", before, before)
    mt.check("FINDINGS  none in either" in done.out and "none changed" in done.out, done.out)


# ---- the command ------------------------------------------------------------------------------------------------------


@mt.variants((("fleet",), "which traces?"), (("fleet", "nowhere-*"), "nowhere-*: no trace is there"), (("fleet", "report", "nowhere"), "no fleet is here"),
             (("fleet", "report", "--engine", "local"), "--engine: not with fleet report"), (("fleet", "diff", "a"), "takes two fleets"),
             (("fleet", "--engine", "cloud", "T"), "--engine: unknown value 'cloud'; there are dask, ray, local, slurm"),
             (("fleet", "--slurm", "x", "T"), "--slurm: 'x' is no KEY=VALUE"), (("fleet", "--scheduler", "x", "--engine", "local", "T"), "--scheduler is for"))
def case_wrong_usage(words, text):
    folder = copy(4) if "T" in words else None
    done = fleets.tool(*[folder if w == "T" else w for w in words], cwd=mt.scratch("cwd"))
    mt.equal((done.status in (2, 3), done.out, done.err.count("\n")), (True, "", 1), repr(done))
    mt.check(text in done.err, "%r lacks %r" % (done.err, text))


def case_what_is_missing_is_said_with_the_command():
    """A Python without DuckDB and engines: its standard library is enough for the remark."""
    folder = copy(3)
    env = mt.clean_env(PATH=os.path.join(mt.scratch("bare"), "bin") + ":/usr/bin:/bin")
    bare = env["PATH"].partition(":")[0]
    os.makedirs(bare)
    with open(os.path.join(bare, "python3"), "w", encoding="utf-8") as file:
        file.write('#!/bin/sh\nexec %s -S "$@"\n' % os.path.realpath(sys.executable))
    os.chmod(os.path.join(bare, "python3"), 0o755)
    for words, package in ((("--engine", "local"), "duckdb"), (("--engine", "dask"), "dask[distributed]"), (("--engine", "ray"), "ray"), (("--engine", "slurm"), "submitit")):
        done = mt.execute([mt.MEMTRACE, "fleet", *words, "-q", "-o", os.path.join(mt.scratch("f"), "f"), "--again", folder], env=env)
        mt.equal((done.status, done.err.count("\n")), (3, 1), repr(done))
        mt.check("-m pip install '%s'" % package in done.err, done.err)


def case_names_of_strangers():
    """What a reduction says is printed so that a terminal only shows it, and is no part of the page."""
    made = fleet_synth.Fleet(38, count=64, causes={"outlier", "coverage", "first_death"})
    folder = os.path.join(mt.scratch("strange"), "r")
    made.write(folder)
    bad = "\x1b[31m</script><b>\u202e"
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        with gzip.open(path, "rt") as file:
            rows = [json.loads(line) for line in file]
        for row in rows:
            row.update({k: bad + v for k, v in row.items() if isinstance(v, str) and k in ("site", "host", "program", "command", "evidence", "advice", "job", "tags")})
        with gzip.open(path, "wt") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    fleet, done = reduced(folder)
    for words in ((), ("--all",)):
        text = fleets.tool("fleet", "report", *words, fleet).out + done.err
        mt.check("\x1b" not in text and "\u202e" not in text, repr(text))
    path = os.path.join(mt.scratch("page"), "p.html")
    mt.equal(fleets.tool("fleet", "report", "--html", path, fleet).status, 0)
    with open(path, encoding="utf-8") as file:
        mt.equal(file.read().count("</script>"), 2)


def case_damaged_reductions():
    """No gzip, no JSON, another version, empty: rows with the reason; the rest is read."""
    made = fleet_synth.Fleet(39, healthy=True, count=64)
    folder = os.path.join(mt.scratch("damaged"), "r")
    made.write(folder)
    with open(os.path.join(folder, "1.ndjson.gz"), "wb") as file:
        file.write(b"no gzip")
    with gzip.open(os.path.join(folder, "2.ndjson.gz"), "wt") as file:
        file.write("{no json\n")
    with gzip.open(os.path.join(folder, "3.ndjson.gz"), "wt") as file:
        file.write('{"t": "reduction", "version": 99}\n')
    with open(os.path.join(folder, "4.ndjson.gz"), "wb"):
        pass
    with open(os.path.join(folder, "5.ndjson.gz"), "r+b") as file:
        file.truncate(os.path.getsize(file.name) // 2)
    fleet, _ = reduced(folder)
    said = fleets.report(fleet)
    mt.equal(sorted(os.path.basename(f["trace"]) for f in said["failed"]), ["%d.ndjson.gz" % n for n in range(1, 6)])
    mt.equal((said["ranks"], [f["kind"] for f in said["findings"]]), (59, ["coverage"]))


def documented():
    with open(PAGE, encoding="utf-8") as file:
        return set(re.findall(r"^\| `([\w.\[\]*]+)` \|", file.read().split("## JSON")[1], re.M))


def keys(value, prefix=""):
    if isinstance(value, dict):
        for key, below in value.items():
            own = prefix + key
            if own in ("findings[].figures", "other_jobs"):
                yield own
                continue
            if own.startswith("roles.") or own.startswith("roles.*.measures."):
                own = "roles.*" if own.count(".") == 1 else own
            if re.fullmatch(r"roles\.\*\.measures\.\w+", own):
                own = "roles.*.measures.*"
            yield own
            yield from keys(below, own + ".")
    elif isinstance(value, list):
        for below in value:
            yield from keys(below, prefix[:-1] + "[].")


def case_keys_are_documented():
    said = set(keys(fleets.report(fleet_of(False)[0])))
    said |= {"diff: " + k for k in keys(json.loads(fleets.tool("fleet", "diff", "--json", fleet_of(True)[0], fleet_of(False)[0]).out))}
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    lacking = [k for k in sorted(said) if not k.startswith("diff: ") and k not in documented() and k not in ("roles.*", "roles", "findings", "failed")]
    mt.equal(lacking, [], "keys that docs/fleet.md lacks")
    mt.equal([k for k in sorted(said) if k.startswith("diff: ") and "`%s`" % k[6:].rpartition(".")[2] not in page], [], "keys of diff that docs/fleet.md lacks")


def case_the_running_rank_ends():
    """Last: the rank that still ran is reduced again when it has ended."""
    fleet, _, plan = fleet_of(False)
    end(plan)
    folder = recorded(False)[0]
    until = time.monotonic() + 20
    while plan.running and time.monotonic() < until:
        done = fleets.tool("fleet", "-o", fleet, "--engine", "local", folder)
        if not fleets.connect(fleet)("FROM run WHERE state = 'running'"):
            break
    mt.equal(fleets.connect(fleet)("SELECT state FROM run WHERE rank = %d" % plan.running[0])[0]["state"] != "running", True, done.err)


try:
    mt.main()
finally:
    for begun in PLANS:
        end(begun)
