#!/usr/bin/env python3
"""Real TensorFlow for the CPU, whose pool lies on the heap: what the trace says is in use equals its own get_memory_info at 20 moments, each block is its
line's, and a leak and its healthy twin are told apart. It is installed into the build folder, or TENSORFLOW_PYTHON names an interpreter that has it."""
# timeout: 1800
import json
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import frameworks  # noqa: E402
import mt  # noqa: E402

MARK = 1000003  # bytes: a block of malloc of so many and i is moment i

PROGRAM = """
import ctypes, json, os, sys
import tensorflow as tf
malloc = ctypes.CDLL(None).malloc
held, moments = [], []
def keep(n):
    held.append(tf.ones((n, n)) + 1.0)
def drop(n):
    return float(tf.reduce_sum(tf.ones((n, n)) * 2.0))
for i in range(20):
    keep(100 + 20 * i)
    drop(900)
    if i % 3 == 2:
        del held[0]
    moments.append(tf.config.experimental.get_memory_info("CPU:0")["current"])
    malloc(MARK + i)
print(json.dumps({"moments": moments}))
sys.stdout.flush()
os._exit(0)
""".replace("MARK", str(MARK))

TRAINING = """
import sys
import numpy as np
import keras
import tensorflow as tf
kept = []
class Keep(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        kept.append(tf.ones((256, 1024)) + 1.0) if sys.argv[1] == "leak" else None
model = keras.Sequential([keras.layers.Dense(256, activation="relu"), keras.layers.Dense(1)])
model.compile("adam", "mse")
x, y = np.random.rand(2048, 64).astype("f"), np.random.rand(2048, 1).astype("f")
model.fit(x, y, epochs=2, batch_size=32, verbose=0, callbacks=[Keep()])
"""


def run(text, *arguments):
    path = os.path.join(mt.scratch(), "program.py")
    with open(path, "w") as file:
        file.write(text)
    done = mt.shimmed([frameworks.tensorflow(), path, *arguments], env={"TF_CPP_MIN_LOG_LEVEL": "3"}, timeout=600)
    mt.equal(done.status, 0, done.err[-2000:])
    return done.trace, done.out


def case_moments():
    trace, out = run(PROGRAM)
    account, live, got, now = json.loads(out), {}, [], 0
    for line in trace.tool("dump", "--json", "--events").out.splitlines():
        e = json.loads(line)
        if e["record"] == "alloc" and MARK <= e["size"] < MARK + 20 and e["hook"] == "malloc":
            got.append(now)
        if not e.get("hook", "").startswith("tensorflow_"):
            continue
        if e["record"] == "alloc":
            live[e["addr"]] = e["size"]
            now += e["size"]
        elif e["record"] == "free":
            now -= live.pop(e["addr"])
    mt.equal(got, account["moments"], "bytes in use at 20 moments")
    mt.equal(trace.report["processes"][0]["pool"]["in_use_bytes"], account["moments"][-1])
    lines = {}
    for site in trace.json("leaks", "--device", "host", "-n", "60")["sites"]:
        name = next((f["function"] for f in site["stack"] if f["function"] in ("keep", "drop")), None)
        if any("BFCAllocator" in (f["function"] or "") or "AllocateRaw" in (f["function"] or "") for f in site["stack"]):
            lines[name] = lines.get(name, 0) + site["bytes"]
    # all that is in use: so nothing of it is of the line whose tensors were freed, where only a table of the pool's own may be
    mt.equal(lines.get("keep", 0), account["moments"][-1], "kept by its line")


def case_training():
    """A Keras training whose callback keeps a tensor of 1 MiB each batch, and one that doesn't."""
    for how, least, most in (("leak", 120 << 20, 140 << 20), ("healthy", 0, 8 << 20)):
        trace, _ = run(TRAINING, how)
        kept = sum(s["bytes"] for s in trace.json("peak", "--device", "host", "-n", "60")["sites"]
                    if any((f["function"] or "").endswith("on_train_batch_end") and "program.py" in (f["file"] or "") for f in s["stack"]))
        mt.between(least, kept, most, "%s: by the callback's line" % how)


mt.main()
