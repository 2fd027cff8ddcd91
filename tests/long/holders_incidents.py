#!/usr/bin/env python3
"""Which object keeps the memory, in PyTorch's CUDA build on the stand-in: incidents 1, 3 and 5, whether `del model` was real, batches that a
DataLoader holds ready, and what CUDA graphs read and write."""
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


READY = """
import ctypes, os, time
import torch
snapshot = ctypes.CDLL(os.environ["HOLDERS"]).memtrace_holders
SIZE = 1 << 20
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 64
    def __getitem__(self, i):
        return torch.ones(SIZE // 4)
def train():
    loader = torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=2, prefetch_factor=4, pin_memory=True)
    batches = iter(loader)
    first = next(batches)
    for _ in range(1000):  # until as many are ready as may be; those that came too early are in _task_info
        if batches._data_queue.qsize() + sum(len(task) == 2 for task in batches._task_info.values()) == 8:
            break
        time.sleep(0.01)
    snapshot(b"ready")
    for _ in range(5): pass
    print("ACCOUNT", '{"pid": %d, "first": %d}' % (os.getpid(), first.nbytes), flush=True)
if __name__ == "__main__":
    train()
"""


def case_loader():
    """Batches that the thread which pins them has put into the DataLoader's queue."""
    done = gpu.run([gpu.python(), "-W", "ignore", "-c", READY], env=HELD, devices="420M", context="48M", timeout=300)
    mt.equal(done.status, 0, "status of %s" % done)
    root = done.trace.settle().json("holders", "-n", "0", "--device", "pinned", "--snapshot", "1", "--process", str(done.account["pid"]))
    pinned, = root["memory"]
    held = {"first": 0, "ready": 0}
    for h in pinned["holders"]:
        found = re.fullmatch(r"(first|batches\._(?:data_queue\.queue|task_info).*) of train \(<string>:\d+\)", h["path"])
        mt.check(found, "a batch is held by %s" % h["path"])
        held["first" if found[1] == "first" else "ready"] += h["bytes"]
    mt.equal(held, {"first": done.account["first"], "ready": 8 * done.account["first"]}, "bytes")


GRAPHS = """
import ctypes, os
import torch
snapshot = ctypes.CDLL(os.environ["HOLDERS"]).memtrace_holders
class Runner:
    def __init__(self, rows):
        self.graph = torch.cuda.CUDAGraph()
        self.inputs = torch.ones(rows, 1024, device="cuda")
        with torch.cuda.graph(self.graph):
            self.outputs = torch.relu(self.inputs) * 2
def serve():
    runners = {rows: Runner(rows) for rows in range(256, 256 * 13, 256)}
    step = torch.cuda.make_graphed_callables(torch.nn.Linear(1024, 1024, device="cuda"), (torch.ones(4096, 1024, device="cuda"),))
    snapshot(b"captured")
    for _ in range(5): pass
serve()
"""


def case_graphs():
    """What graphs of several sizes read and write, and the static tensors of a module that has become one."""
    done = gpu.run([gpu.python(), "-W", "ignore", "-c", GRAPHS], env=HELD, devices="2G", context="48M", timeout=300)
    mt.equal(done.status, 0, "status of %s" % done)
    rows = pool_of(done.trace.settle(), "--snapshot", "1")["holders"]
    where = r" of serve \(<string>:\d+\)"
    runners = [h for h in rows if re.match(r"runners.*" + where, h["path"])]
    used = 2 * sum(range(256, 256 * 13, 256)) * 1024 * 4
    mt.between(used, sum(h["bytes"] for h in runners), used + (12 << 20), "inputs and outputs, in blocks that may be 1 MiB larger")
    static = [h["bytes"] for h in rows if re.match(r"step\.forward closure graphed closure .*" + where, h["path"])]
    mt.between(3 * 4096 * 1024 * 4, sum(static), 3 * 4096 * 1024 * 4 + (9 << 20), "the graphed module's input, output, the output's gradient; the parameters'")


mt.main()
