#!/usr/bin/env python3
"""The real MindSpore (its CPU build, which brings the plugins for Ascend) trains under the shim as it does without."""
# timeout: 600
# serial: a large framework
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

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


@mt.variants("libmemtrace.so", "libmemtrace_libascend_kernel_hook.so")
def case_trains(shim):
    if not os.path.isdir(os.path.join(WHEEL, "mindspore")):
        mt.skip("MindSpore is not installed (scripts/setup long)")
    command = [mt.python(), "-c", PROGRAM]
    env = {"PYTHONPATH": WHEEL, "OMP_NUM_THREADS": "1"}
    want = mt.plain(command, env=env, timeout=250)
    got = mt.shimmed(command, env=env, timeout=250, shim=os.path.join(mt.BUILD, shim))
    mt.equal((got.status, got.out), (want.status, want.out), "status, output")
    mt.check(want.status == 0 and want.out.startswith("2."), "it doesn't run by itself: %s" % want)
    got.trace.intact()
    mt.check(any(p["host"]["allocations"] > 100000 for p in got.trace.processes), "hardly anything was recorded")


mt.main()
