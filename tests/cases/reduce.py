#!/usr/bin/env python3
"""memtrace reduce: fixed columns, figures of the report, names of stacks that are the same on all machines, 2 MB at most; also of what is
damaged, cut off, or still being written.

reduce.py --refresh writes the columns into docs/reduce.md.
"""
# timeout: 300
import collections
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
import golden_traces
import mt

PAGE = os.path.join(mt.TOP, "docs/reduce.md")
MOST = 2000000
TYPES = {"INT": int, "REAL": (int, float), "TEXT": str, "BOOL": bool, "INTS": list, "TEXTS": list}


def tool(*words, **options):
    return mt.execute([mt.MEMTRACE, *words], **options)


def columns():
    done = tool("reduce", "--columns")
    mt.equal((done.status, done.err), (0, ""))
    return json.loads(done.out)["tables"]


def reduced(trace, **options):
    """{table: rows}; each row has the table's columns, of their types."""
    path = os.path.join(mt.scratch("reduced"), "r.ndjson.gz")
    done = tool("reduce", "-o", path, trace, **options)
    mt.equal((done.status, done.out), (0, path + "\n"), "memtrace reduce (%s)" % done.err)
    mt.between(100, os.path.getsize(path), MOST, "bytes of the file")
    return read(path)


def read(path):
    tables, found = columns(), collections.defaultdict(list)
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            table = row.pop("t")
            mt.equal(list(row), [c["name"] for c in tables[table]], "columns of " + table)
            for c in tables[table]:
                value = row[c["name"]]
                mt.check(value is None or (isinstance(value, TYPES[c["type"]]) and (c["type"] == "BOOL" or not isinstance(value, bool))),
                         "%s.%s is %r" % (table, c["name"], value))
            found[table].append(row)
    mt.equal(len(found["reduction"]), 1)
    return found


PROGRAM = """
import sys, time
kept, results = [], []
def save(n):
    kept.append(bytearray(50000))
def table():
    return bytearray(int(sys.argv[1]))
def work():
    return len([bytearray(20000) for i in range(20)])
large = table()
for n in range(300):
    work()
    save(n)
"""


def recorded(large=3000000, folder="program", **env):
    path = os.path.join(mt.scratch(folder), "train.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    return mt.shimmed([mt.python(), path, str(large)], env=env).trace.settle()


def sites_of(r, text, kind="heap"):
    """Those with a line of train.py in that function."""
    names = {s["stack"]: s["site"] for s in r["stack"]}
    return [s for s in r["site"] if s["kind"] == kind and re.fullmatch(r"train\.py:\d+ " + text, names.get(s["stack"]) or "")]


def site_of(r, text):
    rows = sites_of(r, text)
    mt.check(rows, "no site of " + text)
    return max(rows, key=lambda s: s["peak"])


def case_figures_are_the_reports():
    trace = recorded(RANK="3", LOCAL_RANK="1", WORLD_SIZE="8", SLURM_JOB_ID="77", MEMTRACE_TAGS="pp=1,dp=2")
    r = reduced(trace.path)
    want = json.loads(tool("report", "--json", trace.path).out)
    run, process = r["run"][0], want["processes"][0]
    mt.equal(len(r["run"]), 1)
    mt.equal([run[k] for k in ("rank", "local_rank", "world_size", "job", "tags", "launcher")], [3, 1, 8, "77", "pp=1,dp=2", False])
    mt.equal([run["heap_peak"], run["heap_peak_low"], run["map_peak"]],
             [process["host"]["peak_bytes"], process["host"]["peak_bytes"], process["map"]["peak_bytes"]])
    mt.equal([run["exit_kind"], run["exit_code"], run["state"], run["complete"], run["status"]], ["exit", 0, "ended", True, want["status"]])
    mt.equal([(v["kind"], v["bytes"], v["rank"]) for v in r["verdict"]], [(v["kind"], v["bytes"], 3) for v in want["verdicts"]])
    mt.between(3000000, site_of(r, "table")["peak"], 3000200, "bytes of the table")
    mt.between(299 * 50000, sum(s["peak"] for s in sites_of(r, "save")), 300 * 50200, "bytes kept at the peak, which the last work() makes")
    for kind, key in (("heap", "heap_peak"), ("map", "map_peak"), ("pinned", "pinned_peak")):
        mt.equal(sum(s["peak"] for s in r["site"] if s["kind"] == kind), run[key], "sites add up to the peak of " + kind)
    line = [t for t in r["timeline"] if t["what"] == "heap"][0]
    mt.equal(max(line["high"]), run["heap_peak"], "highest of the timeline")
    mt.between(run["start_ns"] - 1000, line["begin_ns"], run["start_ns"] + 1000, "begin, by clocks that are calibrated as they are read")


def case_growth_is_what_leaks_says():
    trace = recorded()
    grows = site_of(reduced(trace.path), "save")
    said = [s for s in json.loads(tool("leaks", "--json", trace.path).out)["sites"] if any(f["function"] == "save" for f in s["stack"])]
    said = sorted(said, key=lambda s: -s["grown_bytes"])
    mt.equal([grows["outlook"], grows["certainty"]], [said[0]["outlook"], said[0]["certainty"]])
    mt.between(0.999 * said[0]["grown_bytes"], grows["grown"], 1.001 * said[0]["grown_bytes"], "bytes grown")
    if grows["slope_per_step"] is not None:
        mt.between(0.999 * said[0]["slope_bytes_per_step"], grows["slope_per_step"], 1.001 * said[0]["slope_bytes_per_step"], "slope")


def names(r):
    """Of what is not small. Which dict grows where depends on the run's hashes, and which object needs a new arena on the
    length of its environment: runs that are compared have the same hashes and no arenas."""
    large = {s["stack"] for s in r["site"] if s["peak"] > 100000}
    return large, {s["stack_lineless"] for s in r["stack"] if s["stack"] in large}


def case_stacks_have_the_same_names_elsewhere():
    """Another folder, another build (address, build id, without debug information), another run."""
    a, b = (reduced(recorded(folder=f, PYTHONHASHSEED="1", PYTHONMALLOC="malloc").path) for f in ("one", "another"))
    mt.equal(names(a), names(b), "stacks of two runs of Python")
    text = json.dumps(a["stack"]) + json.dumps(a["site"])
    mt.check(not re.search(r"0x[0-9a-f]{6}|/(tmp|usr|work|home)/", text), "addresses or folders: %s" % re.findall(r".{20}0x[0-9a-f]{6}.{20}|.{20}/(?:tmp|usr)/.{20}", text)[:3])
    source = os.path.join(mt.scratch("build"), "grow.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write("#include <stdlib.h>\n__attribute__((noinline)) void *inner(int n) { void *p = malloc(n); __asm__ volatile(\"\" : : \"r\"(p) : \"memory\"); return p; }\n"
                   "__attribute__((noinline)) void *outer(int n) { void *p = inner(n + 1); __asm__ volatile(\"\" : : \"r\"(p) : \"memory\"); return p; }\n"
                   "int main(void) { for (int i = 0; i < 50; i++) if (!outer(100000 + i)) return 1; return 0; }\n")
    found = []
    for flags in (["-g", "-O1"], ["-O1", "-no-pie", "-Wl,--build-id=none"], ["-O1", "-falign-functions=256", "-DX"]):
        path = os.path.join(mt.scratch("built"), "grow")
        subprocess.run(["cc", *flags, "-fno-builtin", "-rdynamic", "-o", path, source], check=True)
        r = reduced(mt.shimmed([path]).trace.settle().path)
        found.append([s["stack"] for s in r["site"] if s["peak"] > 4000000])
    mt.equal([len(f) for f in found], [1, 1, 1], "stacks of 5 MB")
    mt.equal(found[1:], found[:1] * 2, "names of three builds")


def case_lines_are_only_in_one_name():
    a = reduced(recorded().path)
    path = os.path.join(mt.scratch("later"), "train.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write("# a comment\n\n" + PROGRAM)
    b = reduced(mt.shimmed([mt.python(), path, "3000000"]).trace.settle().path)
    one, other = site_of(a, "table")["stack"], site_of(b, "table")["stack"]
    mt.check(one != other, "a line moved, and the name is the same")
    lineless = [{s["stack"]: s["stack_lineless"] for s in r["stack"]}[h] for r, h in ((a, one), (b, other))]
    mt.equal(lineless[0], lineless[1], "names without lines")


def case_two_megabytes():
    """30,000 stacks with memory: the largest stay, the sums are exact."""
    path = os.path.join(mt.scratch("many"), "many.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write("import os\nkept = []\n" + "".join("def f%d():\n    kept.append(bytearray(%d))\n" % (i, 2000 + i % 977) for i in range(3000))
                   + "def g(f):\n    f()\ndef h(f):\n    f()\nfor f in [globals()['f%d' % i] for i in range(3000)]:\n"
                   + "".join("    %s(f)\n" % "gh"[i % 2] for i in range(10)) + "os._exit(0)\n")
    trace = mt.shimmed([mt.python(), path]).trace.settle()
    r = reduced(trace.path)
    run, rest = r["run"][0], [s for s in r["site"] if s["stack"] is None and s["kind"] == "heap"]
    mt.check(run["site_count"] >= 30000, "%d stacks" % run["site_count"])
    mt.between(1900, sum(s["stack"] is not None for s in r["site"]), 2000, "sites")
    mt.equal(len(rest), 1, "rows of all others")
    mt.equal(sum(s["peak"] for s in r["site"] if s["kind"] == "heap"), run["heap_peak"], "sum of sites")


def case_many_ranks_in_a_trace():
    """A launcher and its ranks, each with a row; the launcher says that it is one."""
    script = "for r in 0 1 2; do RANK=$r WORLD_SIZE=3 %s 2000 100 $((300 + r * 1000)) & done; wait" % mt.program("busy")
    r = reduced(mt.shimmed(["sh", "-c", script]).trace.settle().path)
    mt.equal([(x["rank"], x["launcher"], x["program"]) for x in r["run"]],
             [(None, True, "sh")] + [(n, False, "busy") for n in range(3)])
    for n in range(3):
        own = [x for x in r["run"] if x["rank"] == n][0]
        mt.equal(sum(s["peak"] for s in r["site"] if s["rank"] == n and s["kind"] == "heap"), own["heap_peak"], "sites of rank %d" % n)


@mt.variants(*((n,) for n in golden_traces.NAMES))
def case_traces_of_all_kinds(name):
    """Devices, failures, samples, several processes: what the report says of devices."""
    trace = golden_traces.unpack(name, mt.scratch("golden"))
    r, want = reduced(trace), json.loads(tool("report", "--json", "--force", trace).out)
    mt.equal(sorted({d["device"] for d in r["device"]}), sorted(d["name"] for d in want["devices"]), "devices")
    mt.equal(len(r["oom"]), sum(len(d["ooms"]) for d in want["devices"]), "failures")
    for d in want["devices"]:
        own = [x for x in r["device"] if x["device"] == d["name"] and x["uuid"] == (d["uuid"] or None)]
        if len(own) == 1 and len(d["aliases"]) == 1:
            mt.equal([own[0]["peak"], own[0]["peak_low"]], [d["peak_bytes"]] * 2, "peak of " + d["name"])
            sites = sum(s["peak"] for s in r["site"] if s["device"] == d["name"] and s["kind"] == "device")
            mt.check(sites <= d["peak_bytes"], "sites of %s have %d of %d bytes" % (d["name"], sites, d["peak_bytes"]))


@mt.variants("cut", "holes", "killed")
def case_what_can_be_read(how):
    trace = mt.shimmed([mt.program("busy"), "200000", "100", "300"]).trace if how != "killed" else mt.shimmed([mt.python(), "-c", "import os; x = bytearray(10**6); os.kill(os.getpid(), 9)"]).trace
    path = os.path.join(mt.scratch("damaged"), "t")
    shutil.copytree(trace.settle().path, path)
    for name in os.listdir(path):
        if name.endswith(".trace") and how == "cut":
            os.truncate(os.path.join(path, name), os.path.getsize(os.path.join(path, name)) // 2)
        if name.endswith(".trace") and how == "holes":
            with open(os.path.join(path, name), "r+b") as file:
                file.seek(os.path.getsize(os.path.join(path, name)) // 2)
                file.write(b"\xa5" * 200)
    r = reduced(path)
    mt.check(r["run"], "no run")
    if how == "killed":
        mt.check({"signal": 9}.get(r["run"][0]["exit_kind"]) == r["run"][0]["exit_code"] or r["run"][0]["state"] == "gone", r["run"][0])
    else:
        mt.equal(r["run"][0]["complete"], False, "complete")
        mt.check(r["run"][0]["damage"] or r["run"][0]["skipped_slots"] or r["run"][0]["cut_off"], "the loss is not said: %s" % r["run"][0])


def case_still_running():
    env, trace = mt.clean_env(), os.path.join(mt.scratch("running"), "t")
    env.update(LD_PRELOAD=mt.SHIM, MEMTRACE_OUTPUT=trace)
    child = subprocess.Popen([mt.python(), "-c", "import time; x = bytearray(5000000); print(1, flush=True); time.sleep(60)"], env=env, stdout=subprocess.PIPE)
    try:
        child.stdout.readline()
        time.sleep(1)  # reports of a trace that is some milliseconds old lack its latest events, too
        r = reduced(trace)
        mt.equal([r["run"][0]["state"], r["run"][0]["exit_code"], r["run"][0]["cut_off"]], ["running", None, False])
        mt.check(r["run"][0]["heap_peak"] + r["run"][0]["map_peak"] >= 5000000, r["run"][0])
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()


def case_nothing_to_read():
    empty = mt.scratch("empty")
    done = tool("reduce", empty)
    mt.equal((done.status, done.out, done.err.count("\n")), (3, "", 1), done.err)
    mt.equal(os.listdir(empty), [], "files left behind")
    done = tool("reduce", "a", "b")
    mt.equal((done.status, done.err.count("\n")), (2, 1), done.err)


def case_at_the_end_of_run():
    done = mt.supervised([mt.program("busy"), "2000", "100", "300"], "--no-report", "--reduce")
    mt.equal(done.status, 7)
    mt.check(read(os.path.join(done.trace.path, "reduced.ndjson.gz"))["run"][0]["exit_code"] == 7, "exit code")
    mt.equal(tool("check", done.trace.path).status, 0, "check of a trace with a reduction")


def case_by_the_recorder():
    """It comes after the program, which neither prints another thing nor ends otherwise."""
    command = [mt.program("busy"), "200000", "100", "300"]
    done = mt.shimmed(command, env={"MEMTRACE_REDUCE": "1"})
    plain = mt.plain(command)
    mt.equal((done.status, done.out, done.err), (plain.status, plain.out, plain.err))
    path, until = os.path.join(done.trace.settle().path, "reduced.ndjson.gz"), time.monotonic() + mt.WAIT
    while not os.path.exists(path) and time.monotonic() < until:
        time.sleep(0.05)
    mt.equal(read(path)["run"][0]["exit_code"], plain.status)


def documented():
    text = []
    for table, rows in columns().items():
        text += ["### %s" % table, "", "| column | type | |", "|---|---|---|"] + ["| `%s` | %s | %s |" % (c["name"], c["type"], c["what"]) for c in rows] + [""]
    return "\n".join(text)


def case_columns_are_documented():
    with open(PAGE, encoding="utf-8") as file:
        mt.check(documented() in file.read(), "docs/reduce.md and --columns differ; tests/cases/reduce.py --refresh")


if sys.argv[1:] == ["--refresh"]:
    with open(PAGE, encoding="utf-8") as source:
        head = source.read().split("<!-- columns -->")[0]
    with open(PAGE, "w", encoding="utf-8") as target:
        target.write(head + "<!-- columns -->\n\n" + documented())
else:
    mt.main()
