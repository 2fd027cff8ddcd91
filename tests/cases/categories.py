#!/usr/bin/env python3
"""What memory is for, by stack, by label and by the user's own rules; what is there twice and what is only alike."""
import json
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../battery"))
import mt
from gpu import ADAM, GIB, MIB, MODULE, SITE
from trace import DEVICE, POOL, Trace

MAIN = ("/app/train.py", "<module>", 10)
STACKS = {
    "parameters": (MAIN, (SITE + "torch/nn/modules/linear.py", "Linear.__init__", 96)),
    "gradients": (MAIN, (SITE + "torch/_tensor.py", "Tensor.backward", 522)),
    "optimizer": (MAIN, ADAM),
    "activations": (MAIN, MODULE, ("/app/model.py", "Block.forward", 7), (SITE + "torch/nn/functional.py", "relu", 3)),
    "kv_cache": (MAIN, MODULE, ("/site/transformers/cache_utils.py", "DynamicCache.update", 5)),
    "comm": (MAIN, (SITE + "torch/distributed/distributed_c10d.py", "all_reduce", 9)),
    "input_pipeline": (MAIN, (SITE + "torch/utils/data/_utils/collate.py", "default_collate", 9)),
    "checkpoint": (MAIN, (SITE + "torch/serialization.py", "save", 4)),
    "caches": (MAIN, ("/site/transformers/tokenization_utils.py", "encode", 4)),
    "unknown": (MAIN, ("/app/own.py", "own", 4)),
}
LIBRARIES = {"workspace": "/usr/lib/libcublas.so.12", "comm": "/usr/lib/libnccl.so.2"}


class Made:
    """One process with a device; .categories of what it holds at the end."""

    def __init__(self):
        self.path = os.path.join(mt.scratch("categories"), "t")
        self.trace = Trace(self.path)
        self.p = self.trace.process(3900001, ["python", "train.py"])
        self.gpu = self.p.device(0, "GPU-1", 8 * GIB)
        self.segment = self.p.alloc(self.gpu, DEVICE, 2 * GIB, self.p.stack(MAIN))
        self.at = self.segment

    def block(self, size, *frames, library=None):
        self.at += size + 511 & ~511
        self.p.tick(0.001)
        return self.p.alloc(self.gpu, POOL, size, self.p.stack(*frames, library=library), address=self.at)

    def report(self, *options, env=None):
        if not os.path.exists(os.path.join(self.path, "session")):
            self.trace.save()
        done = mt.execute([mt.MEMTRACE, "report", "--json", *options, self.path], env=dict(os.environ, **(env or {})))
        mt.equal(done.status, 0, done.err)
        return json.loads(done.out)

    def categories(self, *options, **more):
        return {k: v for k, v in self.report(*options, **more)["categories"]["cuda:0"].items() if v}


def case_by_stack():
    made, wanted = Made(), {}
    for i, (name, frames) in enumerate(STACKS.items(), 1):
        made.block(i * MIB, *frames)
        wanted[name] = i * MIB
    for i, (name, library) in enumerate(LIBRARIES.items(), 20):
        made.block(i * MIB, MAIN, library=library)
        wanted[name] = wanted.get(name, 0) + i * MIB
    mt.equal(made.categories(), wanted)


def case_labels_win():
    made = Made()
    address = made.block(3 * MIB, *STACKS["unknown"])
    made.p.label(address, "parameters:layer1.weight")
    address = made.block(5 * MIB, *STACKS["activations"])
    made.p.label(address, "kv_cache")
    gone = made.block(7 * MIB, *STACKS["unknown"])
    made.p.label(gone, "gradients:x")
    made.p.free(made.gpu, POOL, gone)
    made.p.alloc(made.gpu, POOL, 9 * MIB, made.p.stack(*STACKS["unknown"]), address=gone)
    mt.equal(made.categories(), {"parameters": 3 * MIB, "kv_cache": 5 * MIB, "unknown": 9 * MIB})


def rules(text):
    path = os.path.join(mt.scratch("rules"), "rules")
    with open(path, "w") as file:
        file.write(text)
    return path


def case_own_rules():
    made = Made()
    made.block(3 * MIB, *STACKS["unknown"])
    made.block(5 * MIB, *STACKS["activations"])
    path = rules('# ours\n/* and\n   more */ RULE(caches, PYTHON, "*/own.py:own")\nRULE(workspace,PYTHON,"*:relu")')
    wanted = {"caches": 3 * MIB, "workspace": 5 * MIB}
    mt.equal(made.categories("--rules", path), wanted)
    mt.equal(made.categories(env={"MEMTRACE_RULES": path}), wanted)


@mt.variants('RULE(caches, PYTHON, "x"', 'RULE(cache, PYTHON, "x")', "RULE(caches, WHO, \"x\")", 'RULE(caches, PYTHON, "x', "caches x",
             "RULE(caches, PYTHON, x)")
def case_bad_rules(text):
    made = Made()
    made.trace.save()
    path = rules("\n" + text)
    done = mt.execute([mt.MEMTRACE, "report", "--rules", path, made.path])
    mt.equal((done.status, done.out), (2, ""))
    mt.check(done.err.count("\n") == 1 and path in done.err and "line 2" in done.err, "the error is %r" % done.err)


def case_missing_rules():
    made = Made()
    made.trace.save()
    done = mt.execute([mt.MEMTRACE, "report", "--rules", "/nowhere", made.path])
    mt.equal(done.status, 2)
    mt.check("/nowhere" in done.err, done.err)


# ---- copies

SIZES = [5 * MIB, MIB, 2 * MIB, 2 * MIB, 700 * 1024, 3 * MIB, 9 * MIB, MIB, 4 * MIB]


def load(made, line, scale=1.0, name="build"):
    for i, size in enumerate(SIZES):
        made.block(int(size * scale), ("/app/run.py", "<module>", line), ("/app/model.py", name, 5 + i % 3))


def case_copies():
    made = Made()
    load(made, 10)
    load(made, 20)
    load(made, 30, 0.5)
    found, = made.report()["copies"]
    mt.equal((found["count"], found["device"]), (3, "cuda:0"))
    mt.equal(found["bytes"], sum(o["bytes"] for o in found["owners"]))
    mt.equal(found["extra_bytes"], found["bytes"] - sum(SIZES))
    mt.equal(sorted(o["call"] for o in found["owners"]), ["run.py:%d <module>" % n for n in (10, 20, 30)])


def case_no_copies():
    """Gradients and the optimizer's state have the parameters' sizes; so have other processes and devices."""
    made = Made()
    load(made, 10)
    for name in ("gradients", "optimizer", "activations", "comm"):
        for size in SIZES:
            made.block(size, *STACKS[name])
    other = made.trace.process(3900002, ["python", "train.py"])
    gpu = other.device(0, "GPU-1", 8 * GIB)
    second = other.device(1, "GPU-2", 8 * GIB)
    for device in (gpu, second):
        for i, size in enumerate(SIZES):
            other.alloc(device, DEVICE, size, other.stack(("/app/run.py", "<module>", 20 + device), ("/app/model.py", "build", 5 + i % 3)))
    mt.equal(made.report()["copies"], [])


def case_fit():
    made = Made()
    load(made, 10)
    load(made, 20)
    made.trace.save()
    done = mt.execute([mt.MEMTRACE, "peak", "--json", "--fit", "2040M", made.path])
    one, = json.loads(done.out)["fit"]
    mt.equal((one["device"], one["needed_bytes"], one["fits"]), ("cuda:0", 2 * GIB, False))
    mt.equal((one["must_go"][0]["what"], one["must_go"][0]["bytes"]), ("copies", sum(SIZES)))
    mt.check(sum(s["bytes"] for s in one["must_go"]) >= one["needed_bytes"] - one["size_bytes"], "it would not fit then")
    done = mt.execute([mt.MEMTRACE, "peak", "--json", "--fit", "3G", made.path])
    mt.equal(json.loads(done.out)["fit"][0]["must_go"], [])


mt.main()
