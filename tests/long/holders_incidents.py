#!/usr/bin/env python3
"""Which object keeps the memory, in PyTorch's CUDA build on the stand-in: incidents 1, 3 and 5, and whether `del model` was real."""
# timeout: 1200
import os
import re
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import gpu
import mt

HELD = {"MEMTRACE_HOLDERS": "1", "HOLDERS": mt.SHIM}


def scenario(name, *arguments, **options):
    done = gpu.scenario(name, *arguments, paused=True, env=HELD, timeout=500, **options)
    done.trace.settle()
    return done


def pool_of(trace, *options, device="cuda:0"):
    root = trace.json("holders", "-n", "0", "--device", device, *options)
    mt.check(root["complete"], "a snapshot that is not whole")
    return next(m for m in root["memory"] if m["kind"] == "pool")


def case_copies():
    """Incident 1: each of the three copies has its own holder."""
    done = scenario("incident1")
    copies, = [v for v in done.trace.report["verdicts"] if v["kind"] == "copies"]
    for name in ("model of main", "final_params of main", "inference of main"):
        mt.check(re.search(r"\b%s \(incident1\.py:\d+\) \(\w+(, 82 items)?\) keeps what incident1\.py:\d+ main made" % name, copies["evidence"]), "%s: %s" % (name, copies["evidence"]))
    rows, whole = pool_of(done.trace, "--snapshot", "1")["holders"], done.account["copy_bytes"]
    for name in ("model", "final_params", "inference"):
        own = sum(h["bytes"] for h in rows if any(re.match(name + r"\b.* of main", p or "") for p in (h["path"], h["also"])))
        mt.between(0.95 * whole, own, 1.1 * whole + (done.account["trained"] - done.account["t2"]) * (name == "model"), "held by %s" % name)


def case_growth():
    """Incident 3: the list that the hook fills, with all that it has."""
    done = scenario("incident3")
    leak, = [v for v in done.trace.report["verdicts"] if v["kind"] == "leak"]
    kept = done.account["kept_bytes"]
    mt.check(re.match(r"captured of main\b.*train_step \(incident3\.py:\d+\)", leak["holder"]["path"]), leak["holder"])
    mt.equal((leak["holder"]["type"], leak["holder"]["items"]), ("list", done.account["kept_blocks"]), "the list")
    mt.between(0.95 * kept, leak["holder"]["bytes"], 1.01 * kept, "its bytes")
    mt.check(leak["advice"].startswith("let go of captured of main"), leak["advice"])


ASK_WHEN_LOADED = """
import ctypes, os, runpy, sys, time
sleep, snapshot = time.sleep, ctypes.CDLL(os.environ["HOLDERS"]).memtrace_holders
def asking(seconds):
    if seconds == 1:
        snapshot(b"loaded")
    sleep(seconds)
time.sleep = asking
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@mt.variants(30, 1)
def case_layers(layers):
    """Incident 5: on each device the model's list holds all of what was loaded, be it little or much."""
    path = os.path.join(gpu.SCENARIOS, "incident5.py")
    done = gpu.run([gpu.python(), "-c", ASK_WHEN_LOADED, path, str(layers)], env=dict(HELD, MEMTRACE_PAUSED="1", PYTHONPATH=gpu.SCENARIOS), timeout=300, **gpu.settings_of(path))
    mt.equal(done.status, 0, "status of %s" % done)
    done.trace.settle()
    for device, parameters in enumerate(done.account["parameters"]):
        pool = pool_of(done.trace, "--snapshot", "1", device="cuda:%d" % device)
        top = pool["holders"][0]
        mt.check(re.match(r"model\b.* of main \(incident5\.py:\d+\)", top["path"]), "device %d is held by %s" % (device, top["path"]))
        own = sum(h["bytes"] for h in pool["holders"] if h["path"].startswith("model"))
        mt.between(0.99 * parameters, own, 1.01 * pool["bytes"], "bytes on device %d" % device)


DELETED = """
import sys
import torch
real, SIZE = sys.argv[1] == "real", 8 << 20
class Trainer:
    pass
def train(trainer):
    model = torch.nn.ModuleList(torch.nn.Linear(1024, 2048, bias=False, device="cuda") for _ in range(20))
    trainer.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    del model
    if real:
        del trainer.optimizer
def main():
    trainer = Trainer()
    train(trainer)
    if real:
        return
    kept = []
    while True:
        kept.append(torch.empty(SIZE // 4, device="cuda"))
main()
"""


def case_deleted():
    """`del model` was not real: the optimizer has the parameters. Where that is gone, too, nothing has."""
    for real, status in (("kept", 1), ("real", 0)):
        done = gpu.run([gpu.python(), "-c", DELETED, real], env=HELD, devices="420M", context="48M", timeout=300)
        mt.equal(done.status, status, "status of %s" % done)
        parts = done.trace.settle().json("holders", "-n", "0", "--device", "cuda:0", "--snapshot", "1")["memory"]
        held = [h for m in parts for h in m["holders"] if "optimizer" in h["path"]]
        if status == 0:
            mt.equal(held, [], "what was let go of")
            continue
        mt.check(re.match(r"trainer\.optimizer\b.* of main", held[0]["path"]), held[0]["path"])
        mt.between(20 * (8 << 20), sum(h["bytes"] for h in held), 20 * (8 << 20) + (1 << 20), "what the optimizer keeps")


mt.main()
