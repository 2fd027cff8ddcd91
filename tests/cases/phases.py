#!/usr/bin/env python3
"""What phases by lines are called, on a written trace: by what a line calls, not by what a library wraps that in. Where a function's line calls
a library, also by the function, which the line is in."""
import json
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../battery"))
import mt
import gpu
import trace as writer

TORCH = gpu.SITE + "torch/"
WRAPPERS = ((TORCH + "optim/optimizer.py", "Optimizer.profile_hook_step.<locals>.wrapper", 485),
            (TORCH + "optim/optimizer.py", "_use_grad_for_differentiable.<locals>._use_grad", 79))
COMPILED = (TORCH + "_dynamo/eval_frame.py", "_TorchDynamoContext.__call__.<locals>._fn", 433)
LINES = {  # of the script: what its line calls, and the name that follows
    20: (WRAPPERS + (gpu.ADAM,), "Adam.step"),
    21: ((gpu.MODULE, ("/app/model.py", "Net.forward", 8)), "Net.forward"),
    22: ((COMPILED, ("/app/model.py", "Net.loss", 12)), "Net.loss"),
    23: ((COMPILED,), None),
    24: (((TORCH + "_tensor.py", "Tensor.backward", 525),), "Tensor.backward"),
    25: ((), None),
    26: ((("/venv/lib/python3.11/site-packages/IPython/core/interactiveshell.py", "InteractiveShell.run_cell_magic", 2644),
          ("/venv/lib/python3.11/site-packages/IPython/core/interactiveshell.py", "InteractiveShell.var_expand", 3900)), None),  # only leads to a cell
}


def case_a_wrapper_names_no_phase():
    t = writer.Trace(os.path.join(mt.scratch("phases"), "trace"))
    p = t.process(4711, ["/app/train.py"])
    for number, (frames, _) in LINES.items():
        for _ in range(3):
            p.at(p.now + 0.1)
            p.malloc(1000, p.stack(("/app/train.py", "<module>", number), *frames))
    t.save()
    done = mt.execute([mt.MEMTRACE, "report", "--json", t.path])
    mt.equal(done.status, 0, "status")
    names = [phase["name"] for phase in json.loads(done.out)["phases"]]
    mt.equal(names, ["train.py:%d%s" % (number, " " + name if name else "") for number, (_, name) in LINES.items()])


def case_a_librarys_function_stands_behind_its_callers():
    t = writer.Trace(os.path.join(mt.scratch("phases"), "trace"))
    p = t.process(4711, ["/app/train.py"])
    calls = {40: (gpu.ADAM,), 41: (("/app/train.py", "evaluate", 8),), 42: (),
             43: (("/app/train.py", "main.<locals>.<listcomp>", 43), gpu.ADAM)}  # which newer Pythons run inline
    for number, frames in calls.items():
        for _ in range(3):
            p.at(p.now + 0.1)
            p.malloc(1000, p.stack(("/app/train.py", "<module>", 90), ("/app/train.py", "main", number), *frames))
    t.save()
    done = mt.execute([mt.MEMTRACE, "report", "--json", t.path])
    mt.equal([phase["name"] for phase in json.loads(done.out)["phases"]],
             ["train.py:40 main > Adam.step", "train.py:41 evaluate", "train.py:42 main", "train.py:43 main > Adam.step"])
    for name in "Adam.step", "train.py:40", "main > Adam.step":
        mt.equal(mt.execute([mt.MEMTRACE, "peak", "--at", "phase:" + name, t.path]).status, 0, name)


mt.main()
