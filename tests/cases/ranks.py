#!/usr/bin/env python3
"""Ranks: what launchers set is recorded, shown with each process, and chosen by; the lines that env --for prints do that with the launchers
themselves, where those are installed."""
# timeout: 400
import glob
import json
import os
import shlex
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

LAUNCHERS = ("torchrun", "accelerate", "deepspeed", "slurm", "mpi", "ray", "k8s", "jupyter")


def read(*words):
    done = mt.execute([mt.MEMTRACE, *words])
    mt.equal((done.status, done.err), (0, ""), "memtrace %s" % " ".join(words))
    return done.out


def processes(trace, *words):
    return [p for p in json.loads(read("report", "--json", *words, trace))["processes"] if p["name"] == "busy"]


def recorded(*environments, idle_ms=0):
    """A trace of busy, once for each environment, at the same time: surely so if each waits for a while with what it has."""
    output = os.path.join(mt.scratch("trace"), "t")
    script = "".join("%s exec %s 4000 2000 300 %s & " % (" ".join("%s=%s" % (k, shlex.quote(v)) for k, v in e.items()), mt.program("busy"), idle_ms or "") for e in environments)
    done = mt.execute(["sh", "-c", script + "wait"], env=mt.shim_env(output))
    mt.equal(done.status, 0, done)
    mt.Trace(output).settle()
    return output


@mt.variants(("RANK", "LOCAL_RANK", "WORLD_SIZE", "GROUP_RANK"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_NODE_RANK"),
             ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS", "SLURM_NODEID"), ("PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE", None), ("RANK_ID", None, "RANK_SIZE", None))
def case_launchers_variables(*names):
    numbers = (("11", "3", "16", "2"), ("4", "0", "16", "1"))
    trace = recorded(*({name: number for name, number in zip(names, row) if name} for row in numbers))
    want = [[int(n) if name else None for name, n in zip(names, row)] for row in numbers]
    got = [[p[key] for key in ("rank", "local_rank", "world_size", "group_rank")] for p in processes(trace)]
    mt.equal(sorted(got, reverse=True), want, "rank, local rank, size, node")


def case_torchruns_rank_is_meant_under_slurm():
    """Its workers have Slurm's, too: that of the node's one task."""
    trace = recorded({"RANK": "5", "SLURM_PROCID": "1", "SLURM_JOB_ID": "4711"})
    mt.equal([(p["rank"], p["job"]) for p in processes(trace)], [(5, "4711")])


@mt.variants("", "-1", "x", "1x", "99999999999999999999", "3 4")
def case_what_is_no_rank(text):
    trace = recorded({"RANK": text})
    mt.equal([p["rank"] for p in processes(trace)], [None])
    mt.check("rank" not in read("report", "--all", trace), "a rank is shown")


@mt.variants("", "memtrace run")
def case_a_trace_for_each_rank(how):
    """The launcher is recorded, too: it and rank 0 are one trace, and what a rank starts stays with it."""
    folder, busy = mt.scratch("ranks"), mt.program("busy")
    script = "for r in 0 1 2; do RANK=$r sh -c '%s 400 200 10; %s 400 200 10' & done; wait" % (busy, busy)
    output = os.path.join(folder, "t-%r")
    if how:
        done = mt.execute([mt.MEMTRACE, "run", "--no-report", "-o", output, "--", "sh", "-c", script])
    else:
        done = mt.execute(["sh", "-c", script], env=mt.shim_env(output))
    mt.equal(done.status, 0, done)
    mt.equal(sorted(os.listdir(folder)), ["t-0", "t-1", "t-2"])
    for rank in range(3):
        trace = mt.Trace(os.path.join(folder, "t-%d" % rank)).settle()
        mt.equal([p["rank"] for p in processes(trace.path)], [rank, rank], "ranks of busy in t-%d" % rank)
    mt.equal(len(json.loads(read("report", "--json", *(os.path.join(folder, "t-%d" % r) for r in range(3))))["processes"]) > 6, True)


def case_ranks_in_json():
    """Of what was alive, and over time."""
    trace = recorded({"RANK": "2"}, {"RANK": "5"}, {}, idle_ms=1000)
    for command in ("peak", "leaks"):
        sites = [s for s in json.loads(read(command, "--json", "--by", "process", trace))["sites"] if "busy" in s["label"]]
        for s in sites:
            rank = int(s["label"].split("rank ")[1]) if "rank" in s["label"] else None
            mt.equal((s["rank_low"], s["rank_high"]), (rank, rank), "%s: %s" % (command, s["label"]))
    sites = json.loads(read("leaks", "--json", "--by", "function", "--process", "busy", trace))["sites"]
    mt.check(any((s["rank_low"], s["rank_high"]) == (2, 5) for s in sites if s["processes"] == 3), [(s["processes"], s["rank_low"]) for s in sites])
    series = json.loads(read("timeline", "--json", "--by", "process", trace))["series"]
    mt.equal({s["rank"] for s in series if s["name"] == "busy"}, {2, 5, None})


def case_one_trace_without_the_placeholder():
    folder = mt.scratch("ranks")
    done = mt.execute(["sh", "-c", "for r in 0 1; do RANK=$r %s 400 200 10 & done; wait" % mt.program("busy")], env=mt.shim_env(os.path.join(folder, "t")))
    mt.equal((done.status, os.listdir(folder)), (0, ["t"]))


def case_without_a_launcher():
    mt.equal([[p[key] for key in ("rank", "local_rank", "world_size", "group_rank", "job", "tags")] for p in processes(recorded({}))], [[None] * 6])


def case_shown_and_chosen():
    """In tables of processes, in rows by process, in choosing; the name of the program stays what it is."""
    trace = recorded({"RANK": "0", "MEMTRACE_TAGS": "pp=0,tp=1"}, {"RANK": "13", "MEMTRACE_TAGS": "pp=1,tp=1"})
    screen = read("report", "--all", trace)
    for text in ("rank 0 pp=0,tp=1", "rank 13 pp=1,tp=1"):
        mt.check(text in screen, "%r is not in %s" % (text, screen))
    by = read("peak", "--by", "process", trace)
    mt.check("busy rank 0 pp=0,tp=1" in by or "busy rank 13 pp=1,tp=1" in by, by)
    for rank, tags in ((0, "pp=0,tp=1"), (13, "pp=1,tp=1")):
        (p,) = processes(trace, "--process", "rank:%d" % rank)
        mt.equal((p["name"], p["rank"], p["tags"]), ("busy", rank, tags))
    mt.equal(len(processes(trace, "--process", "busy")), 2, "processes called busy")
    for text in ("rank:1", "rank:", "rank:x", "rank:-1"):
        done = mt.execute([mt.MEMTRACE, "report", "--process", text, trace])
        mt.check(done.status == 2 and "no process '%s'" % text in done.err, done)


def case_hostile_tags():
    """They are somebody's text: no control character reaches the terminal, nor does length break a screen."""
    trace = recorded({"RANK": "1", "MEMTRACE_TAGS": "\x1b[31mred\n" + "x" * 3000})
    (p,) = processes(trace)
    mt.check(p["tags"].endswith("x" * 3000) and p["rank"] == 1, p["tags"][:100])
    screen = read("report", trace)
    mt.check("\x1b" not in screen and max(map(len, screen.splitlines())) <= 80, screen)


def case_lines_for_launchers():
    for name in LAUNCHERS:
        mt.check("memtrace" in read("env", "--for", name), name)
    mt.check(mt.SHIM in read("env", "--for", "ray"), "the library's path")
    done = mt.execute([mt.MEMTRACE, "env", "--for", "xyzzy"])
    mt.equal((done.status, done.out, done.err.count("\n")), (2, "", 1), done)


def case_line_for_jupyter():
    """It makes a kernel that starts a recorded Python, and `uninstall` in its place takes that away."""
    folder, line = mt.scratch("jupyter"), read("env", "--for", "jupyter")
    spec = os.path.join(folder, "jupyter/kernels/memtrace/kernel.json")
    path = os.path.dirname(mt.python()) + ":" + mt.BUILD + ":" + os.environ["PATH"]
    env = mt.clean_env(PATH=path, PYTHONPATH=os.path.join(mt.TOP, "python"), PYTHONDONTWRITEBYTECODE="1", XDG_DATA_HOME=folder)
    env.pop("JUPYTER_DATA_DIR", None)
    done = mt.execute(["sh", "-c", line], env=env)
    mt.equal((done.status, done.out), (0, spec + "\n"), done)
    mt.equal("ipykernel" in done.err, not mt.has_module("ipykernel"), "is told what is missing: %s" % done)
    with open(spec) as file:
        kernel = json.load(file)
    mt.check('"%s"' % kernel["display_name"] in line, "the kernel's name in %s" % line)
    words = kernel["argv"][:kernel["argv"].index("-m")]
    done = mt.execute([*words, "-c", "import libmemtrace; print(libmemtrace.loaded(), libmemtrace.directory())"], env=env, cwd=folder)
    (trace,) = glob.glob(os.path.join(folder, "memtrace-notebook-*"))
    mt.equal((done.status, done.out), (0, "True %s\n" % trace), done)
    done = mt.execute(["sh", "-c", line.replace("kernel install", "kernel uninstall")], env=env)
    mt.check(done.status == 0 and not os.path.exists(os.path.dirname(spec)), done)
    env["XDG_DATA_HOME"] = os.path.join(mt.TOP, "Makefile")
    done = mt.execute(["sh", "-c", line], env=env)
    mt.check(done.status == 1 and done.err.count("\n") == 1 and "Not a directory" in done.err, done)


def ranks_of(line, *replaced):
    """What the line leaves, with what is ours in place of its example: [(trace, [ranks of busy])]."""
    folder = mt.scratch("ranks")
    line = "".join(part + "\n" for part in line.splitlines() if not part.startswith("#"))
    for old, new in (*replaced, ("memtrace run", mt.MEMTRACE + " run"), ("python train.py", mt.program("busy") + " 50 10 10"), ("./program", mt.program("busy") + " 50 10 10")):
        line = line.replace(old, new)
    done = mt.execute(["sh", "-c", line], cwd=folder, env=mt.clean_env(SCRATCH=folder), timeout=mt.WAIT * 2)
    found = {os.path.relpath(d, folder): d for d, _, files in os.walk(folder) if "session" in files}
    return done, {name: [p["rank"] for p in processes(path)] for name, path in found.items()}


def case_line_for_torchrun():
    """PyTorch's own launcher: two ranks, a trace for each, named after it. busy ends with 7, which torchrun takes for a failure."""
    torchrun = os.path.join(mt.VENV, "bin/torchrun")
    if not os.path.exists(torchrun):
        mt.skip("torchrun is not installed")
    script = os.path.join(mt.scratch("script"), "train.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write("import os\nkept = bytearray(5000000)\nprint('rank', os.environ['RANK'])\n")
    folder = mt.scratch("ranks")
    line = read("env", "--for", "torchrun").replace("per-node 8", "per-node 2").replace("memtrace run", mt.MEMTRACE + " run").replace("torchrun", torchrun, 1)
    done = mt.execute(["sh", "-c", line.replace("python train.py", mt.python() + " " + script)], cwd=folder, timeout=mt.WAIT * 2)
    mt.equal(done.status, 0, done)
    mt.equal(sorted(done.out.split("\n")), ["", "rank 0", "rank 1"], "output of the ranks")
    mt.equal(sorted(os.listdir(folder + "/t/0")), ["0", "1"], "traces")
    for rank in (0, 1):
        (p,) = json.loads(read("report", "--json", folder + "/t/0/%d" % rank))["processes"]
        mt.equal((p["rank"], p["local_rank"], p["world_size"]), (rank, rank, 2))
    both = json.loads(read("report", "--json", "--process", "rank:1", folder + "/t/0/0", folder + "/t/0/1"))["processes"]
    mt.equal([p["rank"] for p in both], [1], "chosen from both")


def case_line_for_mpi():
    if not shutil.which("mpirun"):
        mt.skip("mpirun is not installed")
    root = ("mpirun -n 8", "mpirun --allow-run-as-root --oversubscribe -n 2")
    _, found = ranks_of(read("env", "--for", "mpi"), root)
    mt.equal(found, {"t/0": [0], "t/1": [1]}, "traces and their ranks")


mt.main()
