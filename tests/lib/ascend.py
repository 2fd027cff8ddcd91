"""The Ascend stand-in: runs programs on it, and compares traces with its log."""
import json
import os
import re

import gpu
import mt

CLASSES = {1: "device", 2: "managed", 3: "async", 5: "physical", 6: "reserved", 7: "alias", 8: "pinned", 9: "registered", 10: "pool",
           11: "workspace"}
SHAPES = ("flat", "old", "layered")
WAYS = ("linked", "handle", "default")


def folder(shape="flat"):
    return os.path.join(mt.BUILD, "standin/ascend", shape)


def library(name="libascendcl.so", shape="flat"):
    return os.path.join(folder(shape), "cann/lib64", name)


def client(shape, way):
    path = os.path.join(folder(shape), "client-" + way)
    mt.check(os.path.exists(path), "%s is not built" % path)
    return path


def settings(log=None, devices="100M,200M", **more):
    """Exact bytes: no context, nothing rounded, unless asked for."""
    place = mt.scratch("npu")
    return {"MEMTRACE_STANDIN_DIR": place, "MEMTRACE_STANDIN_DEVICES": devices, "MEMTRACE_STANDIN_CONTEXT": "0",
            "MEMTRACE_STANDIN_GRANULARITY": "1", "MEMTRACE_STANDIN_LOG": log, "ASCEND_RT_VISIBLE_DEVICES": None, **more}


class Run:
    """A command on the stand-in, with and without the shim: output and status are the same. .log is of the run with it."""

    def __init__(self, command, shim=None, plain=True, preload=(), **more):
        env = settings(**more)
        want = mt.plain(command, env=env) if plain else None
        path = os.path.join(mt.scratch("log"), "log")
        self.env = dict(env, MEMTRACE_STANDIN_LOG=path, MEMTRACE_STANDIN_DIR=mt.scratch("npu"))
        self.done = mt.shimmed(command, env=self.env, shim=shim, preload=preload)
        if want:
            mt.compare(want, self.done)
        self.trace = self.done.trace
        self.log = []
        if os.path.exists(path):
            with open(path) as file:
                self.log = [json.loads(line) for line in file]

    def records(self, kind=None):
        self.trace.settle()
        done = self.trace.tool("dump", "--json")
        mt.equal(done.status, 0, "memtrace dump's status (%s)" % done.err)
        rows = [json.loads(line) for line in done.out.splitlines()]
        return [r for r in rows if kind in (None, r["record"])]

    def events(self):
        """(what, function, class, device, address, bytes, stream) of each event, by process, in order."""
        rows = self.records()
        pids = {r["process"]: r["pid"] for r in rows if r["record"] == "process"}
        uuids = {(r["process"], r["id"]): r["uuid"] for r in rows if r["record"] == "device"}
        found = {pid: [] for pid in pids.values()}
        for r in rows:
            if not r["record"].startswith("device-"):
                continue
            found[pids[r["process"]]].append((r["record"][7:], r["hook"], CLASSES.get(r["class"], ""),
                                              uuids.get((r["process"], r["device"]), ""), r["addr"], r["size"], r["stream"], r["status"]))
        return found

    def devices(self):
        return [r for r in self.records("device")]


def name(device, first=0):
    return "NPU-%d" % (device + first) if device >= 0 else ""


# What a free function is for, whatever kind of block it got.
FREES = {"aclrtFree": "device", "aclrtFreeWithDevSync": "device", "acldvppFree": "device",
         "aclrtMemPoolFreeAsync": "async", "aclrtFreeHost": "pinned", "aclrtFreeHostWithDevSync": "pinned", "aclrtHostUnregister": "registered",
         "aclrtReleaseMemAddress": "reserved", "aclrtFreePhysical": "physical", "aclrtUnmapMem": "physical", "aclrtIpcMemClose": "alias"}


def wanted(log, first=0):
    """The events that the log's lines must have become, by process: None stands for what may be anything."""
    found = {}
    for line in log:
        rows = found.setdefault(line["pid"], [])
        what, function, device = line["op"], line["function"], name(line["device"], first)
        frees = FREES.get(function, line["kind"])
        if function.startswith("rt"):  # not hooked: what it asks of the driver is
            function = "halMemAlloc" if what == "alloc" else "halMemFree"
        if what == "alloc":
            size = line["bytes"] if "FromShareableHandle" not in function else 0  # nobody can tell
            place = None if line["kind"] == "reserved" else device
            rows.append(("alloc", function, line["kind"], place, line["address"], size, None, 0))
        elif what in ("free", "unmap", "keep"):
            if not line["address"]:
                continue
            kind = "unmap" if function == "aclrtUnmapMem" else "free"
            rows.append((kind, function, frees, None, line["address"], 0, None, 0))
            if what == "keep":
                rows.append(("undo", function, frees, None, line["address"], 0, None, 0))
        elif what == "map":
            rows.append(("map", function, "physical", None, line["address"], line["bytes"], line["handle"], 0))
        elif what == "reset":
            rows.append(("reset", function, "", device, 0, 0, None, 0))
        elif what == "fail" and line["status"] == 207001:
            rows.append(("fail", function, line["kind"], device, line["bytes"], 0, None, 207001))
    return found


def compare(run, first=0):
    """Every call in the log is exactly one event, in the log's order."""
    got, want = run.events(), wanted(run.log, first)
    for pid, rows in want.items():
        have = [e for e in got.get(pid, []) if e[0] != "info" and e[2] not in ("pool", "workspace")]  # not in the log
        for i, (a, b) in enumerate(zip(have, rows)):
            wrong = [n for n, (x, y) in enumerate(zip(a, b)) if y is not None and x != y]
            mt.check(not wrong, "event %d is %r, the log says %r" % (i, a, b))
        mt.equal(len(have), len(rows), "number of events (%r)" % ((have + rows)[min(len(have), len(rows)):][:1],))


def table(rows=("ACL", "LOW")):
    """The functions of the hook table that leave events."""
    with open(os.path.join(mt.TOP, "shim/hooks/hooks_acl.def")) as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    found = re.findall(r"^(ACL|LOW)\((\w+),(.*?)\)\n(?=ACL|LOW|\n|\Z)", text, flags=re.S | re.M)
    mt.check(len(found) > 35, "the hook table has %d rows" % len(found))
    return {function for kind, function, rest in found if kind in rows and not re.search(r"\b(SET|RETAIN)\(", rest)}


def scenario(script, **more):
    """A program of tests/scenarios on a 64 GiB device with a context: what was done, with .run, .log and its own .account."""
    if not mt.has_module("numpy"):
        mt.skip("numpy is not installed")
    path = os.path.join(mt.TOP, "tests/scenarios", script)
    run = Run([mt.python(), path], plain=False, devices="64G", MEMTRACE_STANDIN_CONTEXT="64M",
              LD_LIBRARY_PATH=os.path.dirname(library(shape="layered")), **more)
    done = run.done
    done.run, done.log, done.account = run, run.log, gpu.account(done.out)
    mt.check(len(done.account) > 1, "the scenario printed no account: %s" % done)
    return done
