#!/usr/bin/env python3
"""The package libmemtrace with the real libraries that it is for: pytest with xdist, IPython, Hugging Face's Trainer, Lightning, MindSpore."""
# timeout: 2400
# serial: large frameworks
import ast
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt
import reach

MINDSPORE = os.path.join(mt.TOP, "build/venv-mindspore")

# The first three do what the examples of pytest-memray's documentation do (docs/usage.rst, docs/demo/test_ok.py, 1.11.0).
TESTS = '''
import subprocess, sys
import pytest

def test_unmarked():
    assert [1] * 5_000

@pytest.mark.limit_memory("100 KB")
def test_15_lists_of_8_kb():
    found = [[i] * 1_000 for i in range(15)]
    assert found

@pytest.mark.limit_memory("24 MB")
def test_20_of_24():
    bytearray(20 << 20)

@pytest.mark.limit_memory("24 MB")
def test_25_of_24():
    bytearray(25 << 20)

kept, small = [], []  # of a test each: a list that grows on another's entries has another size

@pytest.mark.limit_leaks("1 MB")
def test_loop_that_leaks():
    for _ in range(100):
        kept.append(bytearray(20_000))

@pytest.mark.limit_leaks("1 MB")
def test_small_objects_leak():
    for i in range(30_000):
        small.append((i, i + 1))

@pytest.mark.limit_leaks("1 MB")
def test_loop_that_does_not():
    for _ in range(100):
        bytearray(20_000)

@pytest.mark.limit_leaks("1 MB", filter_fn=lambda stack: not any(f.function == "cache" for f in stack.frames))
def test_leak_that_is_known():
    def cache():
        cache.kept = bytearray(3 << 20)
    globals()["known"] = cache
    cache()

C = "import ctypes; c = ctypes.CDLL(None); c.malloc.restype = ctypes.c_void_p; [c.malloc(1 << 20) for _ in range(5)]"

@pytest.mark.limit_leaks("1 MB")
def test_subprocess_leaks():
    subprocess.run([sys.executable, "-c", C], check=True)

@pytest.mark.limit_memory("30 MB")
def test_subprocess_is_large():
    subprocess.run([sys.executable, "-c", "x = bytearray(40 << 20)"], check=True)
'''
FAIL = {"test_15_lists_of_8_kb", "test_25_of_24", "test_loop_that_leaks", "test_small_objects_leak", "test_subprocess_leaks", "test_subprocess_is_large"}


def suite(*options, python=None, tests=TESTS, names=("test_it.py",)):
    """(finished pytest, names of tests that failed, its JSON)."""
    folder = mt.scratch("suite")
    with open(os.path.join(folder, "test_it.py"), "w") as file:
        file.write(tests)
    path = os.path.join(folder, "figures.json")
    done = mt.execute([python or reach.python("pytest", "xdist"), "-m", "pytest", "-p", "no:memray", "-p", "libmemtrace.pytest_plugin", "-p", "no:cacheprovider",
                       "--memtrace-json", path, *options, *names], env=mt.clean_env(**reach.environment()), cwd=folder, timeout=900)
    failed = set(re.findall(r"^FAILED test_it.py::([\w:]+)", done.out, re.M))
    figures = None
    if os.path.exists(path):
        with open(path) as file:
            figures = json.load(file)
    return done, failed, figures


def case_kept_below_0_is_explained():
    done, _, figures = suite("--memtrace", tests="kept = []\ndef test_1():\n    kept.append(bytearray(1 << 20))\ndef test_2():\n    kept.clear()\n")
    mt.check(figures["tests"][1]["kept_bytes"] <= -1 << 20, "%s" % figures)
    mt.check("kept is below 0" in done.out, done.out)


def alike(one, other, where):
    """Figures of each test, to the byte. Of what a subprocess needs itself not: its environment has the worker's name."""
    mt.equal([t["nodeid"] for t in other["tests"]], [t["nodeid"] for t in one["tests"]], "tests " + where)
    for a, b in zip(one["tests"], other["tests"]):
        for key in ("peak_bytes", "kept_bytes", "devices"):
            mt.equal(b[key], a[key], "%s of %s %s" % (key, a["nodeid"], where))
        mt.equal([limit["exceeded"] for limit in b["limits"]], [limit["exceeded"] for limit in a["limits"]])
        mt.equal(len(b["subprocesses"]), len(a["subprocesses"]), "subprocesses of %s %s" % (a["nodeid"], where))
        if not a["subprocesses"]:
            mt.equal([limit["measured_bytes"] for limit in b["limits"]], [limit["measured_bytes"] for limit in a["limits"]], "%s %s" % (a["nodeid"], where))
    mt.equal(other["totals"], one["totals"], "totals " + where)


def case_pytest_markers_and_totals_of_two_workers():
    """Each test's figures are the same in one process, in the other order, and with two workers."""
    done, failed, one = suite("--memtrace")
    mt.equal((done.status, failed), (1, FAIL), "%s" % done)
    mt.check("Test was limited to 24.0 MiB of memory and needed 25.0 MiB" in done.out and re.search(r"25.0 MiB allocated by\n +\S*test_it.py:\d+ test_25_of_24", done.out), done)
    mt.check("10 tests: " in done.out, done)
    mt.equal(one["totals"]["tests"], 10)
    by_name = {t["nodeid"].split("::")[1]: t for t in one["tests"]}
    mt.check(5 << 20 <= by_name["test_subprocess_leaks"]["limits"][0]["measured_bytes"] < 5.2 * (1 << 20), by_name["test_subprocess_leaks"])
    mt.equal(by_name["test_25_of_24"]["peak_bytes"] - by_name["test_20_of_24"]["peak_bytes"], 5 << 20, "five MiB more")
    done, failed, two = suite("--memtrace", "-n", "2")
    mt.equal((done.status, failed), (1, FAIL), "with two workers: %s" % done)
    mt.equal(({t["worker"] for t in two["tests"]}, two["workers_lost"]), ({"gw0", "gw1"}, []))
    alike(one, two, "with two workers")
    done, failed, back = suite("--memtrace", names=["test_it.py::" + name for name in reversed(re.findall(r"^def (test_\w+)", TESTS, re.M))])
    mt.equal((done.status, failed), (1, FAIL), "in the other order: %s" % done)
    alike(one, back, "in the other order")


OTHERS = """
import unittest, pytest

class TestUnit(unittest.TestCase):
    @pytest.mark.limit_memory("1 MB")
    def test_unit_is_large(self):
        bytearray(20 << 20)

    @pytest.mark.limit_memory("30 MB")
    def test_unit_is_not(self):
        bytearray(20 << 20)

    @pytest.mark.limit_memory("30 MB")
    def test_unit_fails(self):
        self.assertEqual(1, 2)

@pytest.mark.limit_memory()
def test_no_size():
    pass

@pytest.mark.limit_leaks(1024)
def test_no_unit():
    pass
"""


def case_pytest_alone():
    """Without xdist; methods of unittest; limits that are none."""
    done, failed, figures = suite("--memtrace", "-p", "no:xdist", python=reach.python("pytest"), tests=OTHERS)
    mt.equal((done.status, failed), (1, {"TestUnit::test_unit_is_large", "TestUnit::test_unit_fails", "test_no_size", "test_no_unit"}), "%s" % done)
    for text in ("Test was limited to 1.0 MiB of memory and needed 20.0 MiB", "AssertionError: 1 != 2", "limit_memory needs a size like '24 MB'", "not a size like '24 MB': 1024"):
        mt.check(text in done.out, "%r is not in %s" % (text, done))
    mt.equal({t["nodeid"].partition("::")[2]: t["peak_bytes"] >> 20 for t in figures["tests"] if "not" in t["nodeid"]}, {"TestUnit::test_unit_is_not": 20})


def case_pytest_without_the_library():
    """Markers do nothing, and nothing is said."""
    done, failed, figures = suite()
    mt.equal((done.status, failed, figures), (0, set(), None), "%s" % done)
    mt.check("= memtrace =" not in done.out and "memtrace:" not in done.out and not done.err, done)


def trained(script, *words, env=None, python=None):
    """Without the library and with it: (what it wrote to its folder, the trace)."""
    path = os.path.join(mt.scratch("script"), "train.py")
    with open(path, "w") as file:
        file.write(script)
    more = reach.environment(TRANSFORMERS_OFFLINE="1", **(env or {}))
    plain, folder = mt.scratch("plain"), mt.scratch("out")
    done = mt.execute([python, path, plain, *words], env=mt.clean_env(**more), timeout=600)
    mt.equal(done.status, 0, "without the library: %s" % done)
    mt.check(not os.path.exists(os.path.join(plain, "memtrace.html")) and "memtrace:" not in done.out + done.err, done)
    done = mt.shimmed([python, path, folder, *words], env=more, timeout=900)
    mt.equal(done.status, 0, "with the library: %s" % done)
    return folder, done.trace.settle()


def page_is_there(path):
    with open(path, encoding="utf-8") as file:
        mt.check(file.read(200).lower().startswith("<!doctype html"), path)


def phases_are(trace, *names):
    found = {row["phase"] for row in trace.json("timeline", "--by", "phase", "-n", "all")["phases"]}
    mt.check(set(names) <= found, "phases %s" % found)


WAIT = '''
import time
def wait_for_figures(training):
    """The first look takes as long as reading what came before."""
    end = time.monotonic() + 240
    while training._live is not None and not training.metrics() and time.monotonic() < end:
        time.sleep(0.1)
'''
NET = WAIT + '''
import json, os, sys
import torch
from torch import nn
torch.set_num_threads(1)
out = sys.argv[1]
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(64, 256), nn.Linear(256, 1)
    def forward(self, x, labels=None):
        y = self.b(torch.relu(self.a(x)))
        return {"loss": ((y - labels) ** 2).mean(), "logits": y}
data = [{"x": torch.randn(64), "labels": torch.randn(1)} for _ in range(64)]
'''
TRANSFORMERS = NET + '''
from transformers import Trainer, TrainerCallback, TrainingArguments
from libmemtrace.transformers import MemtraceCallback
args = TrainingArguments(output_dir=out, max_steps=20, per_device_train_batch_size=4, logging_steps=5, eval_strategy="steps", eval_steps=10, report_to=["mlflow"],
                         use_cpu=True, save_strategy="no", disable_tqdm=True)
trainer = Trainer(model=Net(), args=args, train_dataset=data, eval_dataset=data[:8])
callback = MemtraceCallback().attach(trainer)
class Wait(TrainerCallback):
    def on_step_begin(self, *args, **more):
        wait_for_figures(callback.training)
trainer.add_callback(Wait())
import mlflow
trainer.train()
json.dump(trainer.state.log_history, open(os.path.join(out, "log.json"), "w"))
run = mlflow.search_runs(output_format="list", search_all_experiments=True)[0]
json.dump([run.data.metrics, [a.path for a in mlflow.MlflowClient().list_artifacts(run.info.run_id)]], open(os.path.join(out, "mlflow.json"), "w"))
'''
LIGHTNING = NET + '''
import lightning
from lightning.pytorch.loggers import CSVLogger
from libmemtrace.lightning import MemtraceCallback
class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = Net()
    def training_step(self, batch, index):
        wait_for_figures(callback.training)
        return self.net(**batch)["loss"]
    def validation_step(self, batch, index):
        self.net(**batch)
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())
callback = MemtraceCallback()
loader = torch.utils.data.DataLoader(data, batch_size=8)
trainer = lightning.Trainer(max_epochs=2, log_every_n_steps=2, accelerator="cpu", logger=CSVLogger(out, name="", version=""), callbacks=[callback],
                            enable_progress_bar=False, enable_model_summary=False)
trainer.fit(Module(), loader, loader)
'''
MINDSPORE_SCRIPT = WAIT + '''
import json, os, sys
import numpy, mindspore
from mindspore import nn
from mindspore.train import Callback, Model
from libmemtrace.mindspore import MemtraceCallback
mindspore.set_context(device_target="CPU")
out = sys.argv[1]
def rows():
    for _ in range(16):
        yield numpy.ones(64, numpy.float32), numpy.zeros(1, numpy.float32)
data = mindspore.dataset.GeneratorDataset(rows, ["x", "y"]).batch(4)
net = nn.SequentialCell(nn.Dense(64, 256), nn.ReLU(), nn.Dense(256, 1))
callback = MemtraceCallback(folder=out)
class Wait(Callback):
    def on_train_step_end(self, run_context):
        wait_for_figures(callback.training)
model = Model(net, nn.MSELoss(), nn.Adam(net.trainable_params()), metrics={"loss"})
model.train(3, data, callbacks=[Wait(), callback], dataset_sink_mode=False)
model.eval(data, callbacks=[callback], dataset_sink_mode=False)
json.dump(callback.numbers, open(os.path.join(out, "numbers.json"), "w"))
'''


def has_figures(numbers):
    mt.check(numbers.get("memtrace/heap_bytes", 0) > 1e6 and numbers.get("memtrace/peak_heap_bytes", 0) >= numbers["memtrace/heap_bytes"]
             and 0 < numbers.get("memtrace/used_percent/machine", 0) < 100, numbers)


def case_transformers():
    python = reach.python("transformers", "mlflow")
    folder, trace = trained(TRANSFORMERS, python=python, env={"MLFLOW_TRACKING_URI": "file://" + os.path.join(mt.scratch("mlflow"), "runs"), "MLFLOW_ALLOW_FILE_STORE": "true", "HF_HUB_OFFLINE": "1"})
    page_is_there(os.path.join(folder, "memtrace.html"))
    phases_are(trace, "train", "evaluate")
    mt.equal(trace.json("report")["steps"]["source"], "marks")
    with open(os.path.join(folder, "log.json")) as file:
        has_figures(next(row for row in json.load(file) if "loss" in row))
    with open(os.path.join(folder, "mlflow.json")) as file:
        metrics, artifacts = json.load(file)
    has_figures(metrics)
    mt.check("memtrace.html" in artifacts, artifacts)


def case_lightning():
    folder, trace = trained(LIGHTNING, python=reach.python("lightning"))
    page_is_there(os.path.join(folder, "memtrace.html"))
    phases_are(trace, "train", "validate")
    mt.equal(trace.json("report")["steps"]["source"], "marks")
    with open(os.path.join(folder, "metrics.csv")) as file:
        mt.check("memtrace/heap_bytes" in file.readline(), "no figures in metrics.csv")


def case_mindspore():
    if not os.path.isdir(os.path.join(MINDSPORE, "mindspore")):
        mt.skip("MindSpore is not installed (scripts/setup long)")
    folder, trace = trained(MINDSPORE_SCRIPT, python=mt.python(), env={"PYTHONPATH": reach.PACKAGE + ":" + MINDSPORE})
    page_is_there(os.path.join(folder, "memtrace.html"))
    phases_are(trace, "train", "evaluate")
    mt.equal(trace.json("report")["steps"]["source"], "marks")
    with open(os.path.join(folder, "numbers.json")) as file:
        has_figures(json.load(file))


def case_notebook():
    """A cell of IPython, as typed: its own result, then whose memory it had."""
    python = reach.python("IPython")
    path = os.path.join(mt.scratch("cells"), "cells.ipy")
    with open(path, "w") as file:
        file.write('%load_ext libmemtrace\nget_ipython().run_cell_magic("memtrace", "", "kept = bytearray(50 << 20)\\nprint(\'ran\', len(kept))")\n%memtrace peak -n 1\n%memtrace peak --nonsense\n')
    command = [python, "-m", "IPython", "--no-banner", "--quick", path]
    plain = mt.execute(command, env=mt.clean_env(**reach.environment(IPYTHONDIR=mt.scratch("ipython"))), timeout=300)
    first, _, rest = plain.out.partition("\n")
    mt.check(plain.status == 0 and first.startswith("memtrace records this kernel from now on, to ") and rest.startswith("ran 52428800\nheap         +50.0 MiB by this cell, at most +50."), plain)
    done = mt.shimmed(command, env=reach.environment(IPYTHONDIR=mt.scratch("ipython")), timeout=300)
    mt.check(done.status == 0 and re.match(r"ran 52428800\nheap +\+50\.0 MiB by this cell, at most \+50\.\d MiB\nLARGEST OWNERS of the heap .*\n +50\.0 MiB +\d+\.\d % +<module> +In \[\d+\]:2\b", done.out), done)
    mt.check(done.trace.settle().report["complete"], "our own commands count as children that were lost")
    mt.check("option '--nonsense'" in done.out, "what was wrong is not said: %s" % done)
    phases_are(done.trace.settle(), "In [1]")


KERNEL = """
import sys
from jupyter_client.manager import start_new_kernel
manager, client = start_new_kernel(kernel_name="memtrace")
for cell in sys.argv[1:]:
    client.execute_interactive(cell, timeout=120)
client.stop_channels()
manager.shutdown_kernel()
"""


def case_kernel():
    """The kernel that is recorded, as Jupyter runs it: lines of its cells have the numbers that stand beside them."""
    python, home, there = reach.python("ipykernel"), mt.scratch("jupyter"), mt.scratch("notebook")
    env = mt.clean_env(**reach.environment(IPYTHONDIR=mt.scratch("ipython"), JUPYTER_DATA_DIR=home))
    mt.equal(mt.execute([python, "-m", "libmemtrace.kernel", "install"], env=env).status, 0)
    cells = ["import os", "def load(n):\n    return bytearray(n << 20)", "kept = load(30)", "%memtrace report"]
    done = mt.execute([python, "-c", KERNEL, *cells], env=env, cwd=there, timeout=300)
    mt.check(done.status == 0 and re.search(r"\n +30\.0 MiB +\S+ % +load +In \[2\]:2\b", done.out), done)
    peak = mt.execute([mt.MEMTRACE, "peak", *(os.path.join(there, name) for name in os.listdir(there))])
    mt.check("In [3]:1" in peak.out and not re.search(r"run_cell|run_code|do_execute|\d+\.py:\d", peak.out), peak)


ATTACHED_KERNEL = """
import sys
from jupyter_client.manager import start_new_kernel
manager, client = start_new_kernel(kernel_name="python3")
def run(cell):
    said = []
    done = client.execute_interactive(cell, timeout=120, output_hook=lambda m: said.append(m["content"].get("text", "") if m["msg_type"] == "stream" else m["msg_type"]))
    return done["content"]["status"] + ": " + "".join(s for s in said if s not in ("status", "execute_input"))
print([run(cell) for cell in sys.argv[1:]])
client.stop_channels()
manager.shutdown_kernel()
"""


def case_kernel_that_was_not_preloaded():
    """%load_ext attaches to it and says so; what cells make from then on is known, by line, and what was there before is no part of it."""
    python, there = reach.python("ipykernel"), mt.scratch("notebook")
    env = mt.clean_env(**reach.environment(IPYTHONDIR=mt.scratch("ipython"), JUPYTER_DATA_DIR=mt.scratch("jupyter")))
    cells = ["import threading\nbefore = bytearray(20 << 20)", "%load_ext libmemtrace", "def load(n):\n    return bytearray(n << 20)", "kept = load(30)",
             "del before; print(len(kept), threading.active_count() > 0)", "%memtrace report", "%load_ext libmemtrace"]
    done = mt.execute([python, "-c", ATTACHED_KERNEL, *cells], env=env, cwd=there, timeout=300)
    mt.equal(done.status, 0, done)
    said = ast.literal_eval(done.out)
    mt.equal([s[:4] for s in said], ["ok: "] * len(cells), "no cell fails: %s" % said)
    mt.check(re.fullmatch(r"ok: memtrace records this kernel from now on, to \S+\n", said[1]), said[1])
    mt.equal((said[0], said[2], said[4]), ("ok: ", "ok: ", "ok: 31457280 True\n"), "what cells print")
    mt.check(re.search(r"\n +30\.0 MiB +\S+ % +load +In \[3\]:2\b", said[5]) and "was attached to" in said[5], said[5])
    mt.check("20.0 MiB" not in said[5], said[5])
    trace = mt.Trace(os.path.join(there, [n for n in os.listdir(there) if n.startswith("memtrace-notebook-")][0])).settle()
    mt.equal(trace.tool("check").status, 0, trace.tool("check"))


mt.main()
