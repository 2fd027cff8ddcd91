#!/usr/bin/env python3
"""The real MindSpore (its CPU build, which brings the plugins for Ascend) trains under the shim as it does without; and incident 1 with it."""
# timeout: 900
# serial: a large framework
import functools
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt
from cgroup import Cgroup

MIB = 1 << 20
SCENARIO = os.path.join(mt.TOP, "tests/scenarios/incident1/mindspore_main.py")
WHEEL = os.path.join(mt.TOP, "build/venv-mindspore")  # where scripts/setup puts it
PROGRAM = """
import mindspore, numpy
from mindspore import nn, Tensor
mindspore.set_context(device_target="CPU")
mindspore.set_seed(1)
net = nn.SequentialCell(nn.Dense(200, 100), nn.ReLU(), nn.Dense(100, 10))
optimizer, loss = nn.SGD(net.trainable_params(), 0.1), nn.MSELoss()
step = mindspore.value_and_grad(lambda x, y: loss(net(x), y), None, optimizer.parameters)
for i in range(5):
    value, gradients = step(Tensor(numpy.ones((4, 200), numpy.float32)), Tensor(numpy.zeros((4, 10), numpy.float32)))
    optimizer(gradients)
print(mindspore.__version__, "%.4f" % float(value))
"""


def environment():
    if not os.path.isdir(os.path.join(WHEEL, "mindspore")):
        mt.skip("MindSpore is not installed (scripts/setup long)")
    return {"PYTHONPATH": WHEEL, "OMP_NUM_THREADS": "1"}


@functools.lru_cache(None)
def incident1(limit, *arguments):
    """In a cgroup of its own."""
    env = mt.clean_env(**environment())
    output = os.path.join(mt.scratch("trace"), "t")
    with Cgroup(limit) as group:
        done = mt.execute([mt.MEMTRACE, "run", "-o", output, "--", *group.command([mt.python(), SCENARIO, *arguments])], env=env, timeout=300)
    done.trace = mt.Trace(output)
    done.trace.settle()
    return done


@functools.lru_cache(None)
def limit():
    """Less than what the sick program takes that can't give way, by less than what its last line takes."""
    done = incident1(6144 * MIB)
    mt.equal((done.status, done.trace.report["verdicts"]), (0, []), "status, verdicts with room")
    figures = re.findall(r"cgroup .* current (\d+) .* file (\d+) ", done.trace.tool("dump", "--samples").out)
    return (max(int(current) - int(file) for current, file in figures) - 24 * MIB) // 4096 * 4096


def case_incident1():
    done = incident1(limit())
    account = json.loads(re.search("ACCOUNT (.*)", done.out)[1])
    mt.check("PHASE t4" in done.out and "PHASE t5" not in done.out, "it did not end behind t4: %s" % done)
    (verdict,) = [v for v in done.trace.report["verdicts"] if v["kind"] == "copies"]
    copies = done.trace.report["copies"][0]
    mt.equal((copies["device"], copies["count"], verdict["device"], verdict["certainty"]), ("host", 4, "host", "high"))
    for owner in copies["owners"]:  # a model has its head, too
        mt.between(account["copy_bytes"], owner["bytes"], account["copy_bytes"] * 1.05, "a copy")
    mt.between(3 * account["copy_bytes"], verdict["bytes"], 3.05 * account["copy_bytes"], "what dropping them gives back")
    with open(SCENARIO, encoding="utf-8") as file:
        lines = [n for n, line in enumerate(file, 1) if re.search(r" = (load_checkpoint|Model|model\.to_numpy)\(", line)]
    mt.equal(sorted(int(o["call"].split(":")[1].split()[0]) for o in copies["owners"]), lines, "lines that made them")
    mt.check({"limit", "host_pressure"} & {v["kind"] for v in done.trace.report["verdicts"]}, "who set the limit is not said")


def case_incident1_healthy():
    done = incident1(limit(), "--healthy")
    mt.equal((done.status, done.trace.report["status"], done.trace.report["verdicts"]), (0, "ok", []), "status, the report's, its verdicts")
    mt.check("PHASE t5" in done.out, "it ended before: %s" % done.out)


@mt.variants("libmemtrace.so", "libmemtrace_libascend_kernel_hook.so")
def case_trains(shim):
    env, command = environment(), [mt.python(), "-c", PROGRAM]
    want = mt.plain(command, env=env, timeout=250)
    got = mt.shimmed(command, env=env, timeout=250, shim=os.path.join(mt.BUILD, shim))
    mt.equal((got.status, got.out), (want.status, want.out), "status, output")
    mt.check(want.status == 0 and want.out.startswith("2."), "it doesn't run by itself: %s" % want)
    got.trace.intact()
    mt.check(any(p["host"]["allocations"] > 100000 for p in got.trace.processes), "hardly anything was recorded")


mt.main()
