#!/usr/bin/env python3
"""Python with numpy and torch, and every way it makes processes."""
# timeout: 400
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt


def run(source, least=1000, **options):
    path = os.path.join(mt.scratch(), "program.py")
    with open(path, "w") as file:
        file.write(source)
    trace = mt.same([mt.python(), path], **options)
    mt.check(trace.host["allocations"] >= least, "only %d allocations" % trace.host["allocations"])
    return trace


def case_plain():
    run("""
import gc, json, re, sqlite3, sys, threading, zlib
def work(n):
    d = {i: str(i) * 10 for i in range(n)}
    return len(zlib.compress(json.dumps(d).encode()))
out = []
ts = [threading.Thread(target=lambda: out.append(work(20000))) for _ in range(4)]
[t.start() for t in ts]; [t.join() for t in ts]
print(out)
db = sqlite3.connect(":memory:")
db.execute("create table t(a)")
db.executemany("insert into t values (?)", ((i,) for i in range(10000)))
print(db.execute("select sum(a) from t").fetchone(), gc.collect() >= 0)
sys.exit("an error message")
""")


def case_exception_and_signal():
    run("import os, signal\ndef f(): raise ValueError('on purpose')\nf()")
    run("import os, signal\nprint('here', flush=True)\nos.kill(os.getpid(), signal.SIGTERM)")


def case_fork_without_threads_warns_nobody():
    """Python 3.12 warns on fork when it sees threads: there are none of ours."""
    run("""
import os, warnings
warnings.simplefilter("error")
x = bytearray(10_000_000)
pid = os.fork()
if pid == 0:
    y = bytearray(1_000_000); os._exit(3)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
""")


def case_subprocess():
    trace = run("""
import subprocess, sys
print(subprocess.run(["echo", "hello"], capture_output=True, text=True))
print(subprocess.check_output("echo shell | tr a-z A-Z", shell=True))
print(subprocess.run([sys.executable, "-c", "import sys; sys.exit(7)"]).returncode)
print(subprocess.run(["cat"], input=b"x" * 100000, capture_output=True, close_fds=True).stdout[:3])
""")
    names = [p["name"] for p in trace.processes]
    mt.check({"echo", "tr", "cat", "sh"} <= set(names) and sum("python" in n for n in names) >= 2, "recorded %s" % names)


@mt.variants("fork", "spawn", "forkserver")
def case_multiprocessing(method):
    trace = run("""
import multiprocessing as mp, os
def work(i):
    b = [bytes(1000) for _ in range(1000)]
    return i * len(b)
if __name__ == "__main__":
    mp.set_start_method(%r)
    with mp.Pool(2) as pool:
        print(pool.map(work, range(20)))
    q = mp.Queue()
    p = mp.Process(target=q.put, args=(os.urandom(0),)); p.start(); print(q.get()); p.join(); print(p.exitcode)
""" % method)
    mt.check(len(trace.processes) >= 4, "%d processes" % len(trace.processes))


def case_numpy():
    if not mt.has_module("numpy"):
        mt.skip("no numpy")
    trace = run("""
import numpy as np
a = np.random.default_rng(0).standard_normal((500, 500))
keep = np.ones(10_000_000)
print(float((a @ a).sum().round(6)), np.linalg.svd(a, compute_uv=False)[:3].round(6), keep.sum())
""")
    mt.between(80e6, trace.host["peak_bytes"], 400e6, "peak")


TORCH = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8))
opt = torch.optim.AdamW(model.parameters())
class Data(torch.utils.data.Dataset):
    def __len__(self): return 64
    def __getitem__(self, i): return torch.full((64,), float(i)), i % 8
if __name__ == "__main__":
    for x, y in torch.utils.data.DataLoader(Data(), batch_size=16, num_workers=2):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        opt.zero_grad(); loss.backward(); opt.step()
        print(round(loss.item(), 4))
"""


def case_torch():
    if not mt.has_module("torch"):
        mt.skip("no torch")
    trace = run(TORCH, 100000, timeout=200)
    mt.check(len(trace.processes) >= 3, "%d processes: the loader's workers are missing" % len(trace.processes))


PROFILED = """
import contextlib, os, sys
import torch
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.01)
def step():
    loss = model(torch.randn(32, 64)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
with torch.profiler.profile() if sys.argv[1] == "profiled" else contextlib.nullcontext():
    for i in range(1500):
        step()
    os._exit(0)
"""


def case_what_a_profiler_keeps():
    """It is the profiler's, and no list of the lines below which it was allocated."""
    if not mt.has_module("torch"):
        mt.skip("no torch")
    path = os.path.join(mt.scratch("program"), "steps.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(PROFILED)
    profiled, plain = (mt.shimmed([mt.python(), path, word], env={"OMP_NUM_THREADS": "1"}).trace for word in ("profiled", "plain"))
    verdict = profiled.report["verdicts"][0]
    mt.check(verdict["kind"] == "leak" and "; it is torch.profiler's" in verdict["evidence"], verdict)
    mt.check(verdict["advice"].startswith("torch.profiler keeps all that it saw until it stops: give it a schedule"), verdict)
    mt.equal([v["kind"] for v in plain.report["verdicts"]], [])


mt.main()
