#!/usr/bin/env python3
"""The lines that `memtrace env --for` prints, with the real launchers: each rank has a trace of its own that knows its rank.
--table [NAME...] writes what was seen into docs/env.md."""
# timeout: 1800
# serial: launchers and torch processes
import glob
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt
import reach
import slurm

PAGE = os.path.join(mt.TOP, "docs/env.md")
HEAD = "| launcher | what was run | ranks seen | trace directories |\n|---|---|---|---|\n"
LAUNCHERS = ("torchrun", "accelerate", "deepspeed", "slurm", "mpi", "ray", "jupyter")
RANKS = 2
PROGRAM = r"""
import os, sys
kept = bytearray(30 << 20)
os.write(1, b"rank %s\n" % next((os.environ[n] for n in ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID") if n in os.environ), "none").encode())
"""
RAY = """
import os, ray
ray.init(num_cpus=2, include_dashboard=False, runtime_env={"py_executable": "memtrace run --no-report -o %s/%%p -- python"})
@ray.remote
def work(n):
    kept = bytearray(30 << 20)
    return n * len(kept)
print(sum(ray.get([work.remote(n) for n in range(4)])))
ray.shutdown()
"""
JUPYTER = """
import sys
from jupyter_client.manager import start_new_kernel
manager, client = start_new_kernel(kernel_name="memtrace", cwd=sys.argv[1], startup_timeout=300)
client.execute_interactive("import libmemtrace; kept = bytearray(30 << 20); print('recorded', libmemtrace.loaded())", timeout=300)
client.stop_channels()
manager.shutdown_kernel()
"""
# A cluster of this machine alone, of whoever runs the test: no cgroup, no systemd, ports and sockets of its own.
def line(name):
    """What `memtrace env --for` prints, without remarks."""
    done = mt.execute([mt.MEMTRACE, "env", "--for", name])
    mt.equal(done.status, 0)
    return "\n".join(text for text in done.out.splitlines() if not text.startswith("#"))


def adapted(name, python, program, folder):
    """The same line with two ranks, that program and that folder."""
    text = line(name).replace("8 ", "%d " % RANKS).replace("-- python train.py", "-- %s %s" % (python, program)).replace("-- ./program", "-- %s %s" % (python, program))
    return text.replace("-o t/%j/%r", "-o %s/%%r" % folder).replace("-o t/%r", "-o %s/%%r" % folder)


def seen(folder):
    """{rank or None: directory} of the processes that held 30 MiB, as reports of what lies below say."""
    found = {}
    for path in sorted(glob.glob(folder + "/*/session")):
        trace = mt.Trace(os.path.dirname(path)).settle()
        for process in trace.report["processes"]:
            if process["host"]["peak_bytes"] >= 30 << 20:
                found.setdefault(process["rank"], os.path.basename(trace.path))
    return found


def ranked(name, python, extra=(), env=None, below=""):
    """`below`: where the launcher's line has the traces, in the folder."""
    folder, work = mt.scratch("traces"), mt.scratch("work")
    program = os.path.join(work, "train.py")
    with open(program, "w") as file:
        file.write(PROGRAM)
    command = adapted(name, python, program, folder)
    for old, new in extra:
        mt.check(old in command, command)
        command = command.replace(old, new)
    path = os.path.dirname(python) + ":" + mt.BUILD + ":" + os.environ["PATH"]
    done = mt.execute(["sh", "-c", command], env=mt.clean_env(PATH=path, OMP_NUM_THREADS="1", SCRATCH=folder, **(env or {})), cwd=work, timeout=500)
    mt.equal(done.status, 0, "%s: %s" % (command, done))
    mt.equal(sorted(text for text in done.out.splitlines() if text.startswith("rank")), ["rank %d" % r for r in range(RANKS)], "%s" % done)
    found = seen(folder + below)
    mt.equal(found, {r: str(r) for r in range(RANKS)}, "ranks and their directories")
    return row(name, "`train.py` on %d ranks" % RANKS, found)


def row(name, what, found):
    ranks = [str(rank) for rank in found if rank is not None]
    return "| %s | %s | %s | %s |\n" % (name, what, ", ".join(ranks) or "none", ", ".join("`%s`" % re.sub(r"\d{2,}", "PID", d) for d in sorted(set(found.values()))))


def case_torchrun():
    python = reach.python("torch")
    return ranked("torchrun", python, [("torchrun", "%s -m torch.distributed.run --master-port 29614" % python)])


def case_accelerate():
    return ranked("accelerate", reach.python("accelerate"), [("accelerate launch", "accelerate launch --multi_gpu --num_machines 1 --main_process_port 29615 --mixed_precision no --dynamo_backend no")])


def case_deepspeed():
    return ranked("deepspeed", reach.python("deepspeed"), [("--num_gpus 2", "--num_gpus 2 --master_port 29616")], env={"DS_ACCELERATOR": "cpu"})


def case_slurm():
    with slurm.Cluster(RANKS) as cluster:
        return ranked("slurm", mt.python(), [("srun", "srun -n %d" % RANKS)], env=cluster.env, below="/t/1")


def case_mpi():
    mt.need("mpirun")
    return ranked("mpi", mt.python(), [("mpirun", "mpirun --allow-run-as-root --oversubscribe")])


def case_ray():
    python, folder, work = reach.python("ray"), mt.scratch("traces"), mt.scratch("work")
    path = os.path.join(work, "work.py")
    with open(path, "w") as file:
        file.write(RAY % folder)
    mt.check('"py_executable": "memtrace run --no-report -o' in line("ray"), line("ray"))
    done = mt.execute([python, path], env=mt.clean_env(PATH=os.path.dirname(python) + ":" + mt.BUILD + ":" + os.environ["PATH"]), cwd=work, timeout=500)
    mt.check(done.status == 0 and str(6 * (30 << 20)) in done.out, done)
    found = seen(folder)
    mt.check(found, "no worker's 30 MiB are in %s" % glob.glob(folder + "/*"))
    return row("ray", "four tasks, `py_executable`", found)


def case_jupyter():
    python, work = reach.python("ipykernel", "jupyter_client"), mt.scratch("work")
    more = reach.environment(JUPYTER_DATA_DIR=mt.scratch("jupyter"))
    more["PATH"] = os.path.dirname(python) + ":" + more["PATH"]
    done = mt.execute(["sh", "-c", line("jupyter")], env=mt.clean_env(**more))
    mt.equal(done.status, 0, "%s" % done)
    done = mt.execute([python, "-c", JUPYTER, work], env=mt.clean_env(**more), timeout=500)
    mt.check(done.status == 0 and "recorded True" in done.out, done)
    found = seen(work)
    mt.equal(list(found), [None])
    mt.check(found[None].startswith("memtrace-notebook-"), found)
    return row("jupyter", "a notebook's cell", found)


def write_table(names):
    """Rows of launchers that are not named stay as they are."""
    with open(PAGE, encoding="utf-8") as file:
        before, after = file.read().split(HEAD)
    end = re.match(r"(\|.*\n)*", after).end()
    rows = {text.split(" ")[1]: text for text in after[:end].splitlines(True)}
    rows.update((name, globals()["case_" + name]()) for name in names or LAUNCHERS)
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(before + HEAD + "".join(rows[name] for name in LAUNCHERS) + after[end:])


if sys.argv[1:2] == ["--table"]:
    write_table(sys.argv[2:])
    sys.exit()
mt.main()
