"""PyTorch's accounting against the trace's: tests/programs/gpu_random.py is run under the shim, its records are replayed here, and at each of its
moments what they add up to must be what PyTorch says of itself.
"""
import collections
import json
import os
import subprocess

import gpu
import mt

PROGRAM = os.path.join(mt.TOP, "tests/programs/gpu_random.py")
LINEAR, ASYNC, PHYSICAL, RESERVED, POOL = 1, 3, 5, 6, 10
MOMENTS = 20


def records(trace):
    done = subprocess.run([mt.MEMTRACE, "dump", "--json", trace.path], stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in done.stdout.splitlines() if b'"record":"alloc"' not in line and b'"record":"free"' not in line]


class Books:
    """What the trace's events say a process has on a device."""

    def __init__(self):
        self.pool, self.segments, self.mapped, self.order = {}, {}, {}, []
        self.count = collections.Counter()
        self.sum = collections.Counter()

    def alloc(self, e):
        if e["class"] == POOL:
            self.pool[e["addr"]] = (e["size"], e["stream"])
            self.order.append(["alloc", e["addr"], e["size"]])
            self.add("allocation", e["size"])
        elif e["class"] == LINEAR:
            self.segments[e["addr"]] = e["size"]
            self.order.append(["segment_alloc", e["addr"], e["size"]])
            self.add("segment", e["size"])

    def free(self, e):
        if e["class"] == POOL:
            size, _ = self.pool.pop(e["addr"])
            self.order.append(["free_requested", e["addr"], size])
            self.add("freed", size)
        elif e["class"] == LINEAR:
            size = self.segments.pop(e["addr"])
            self.order.append(["segment_free", e["addr"], size])
            self.add("segment_freed", size)

    def of_class(self, number):
        return {POOL: self.pool, LINEAR: self.segments}.get(number, {})

    def add(self, what, size):
        self.count[what] += 1
        self.sum[what] += size

    def reserved(self):
        return sum(self.segments.values()) + sum(self.mapped.values())

    def seen(self):
        return {"blocks": sorted([a, s, stream] for a, (s, stream) in self.pool.items()), "segments": sorted(self.segments.items()),
                "mapped": dict(self.mapped), "reserved": self.reserved(), "count": dict(self.count), "sum": dict(self.sum)}


def replay(trace):
    """{pid: ([{uuid: what was seen} at each moment], {uuid: Books})} from the records alone."""
    pids, uuids, names = {}, {}, {}
    books = collections.defaultdict(lambda: collections.defaultdict(Books))
    moments = collections.defaultdict(dict)
    for r in records(trace):
        kind, process = r["record"], r.get("process")
        if kind == "process":
            pids[process] = r["pid"]
        elif kind == "device":
            uuids[process, r["id"]] = r["uuid"]
        elif kind == "name":
            names[process, r["id"]] = r["name"]
        elif kind == "mark":
            text = names[process, r["size"]]
            if text.startswith("moment "):
                moments[process][int(text.split()[1])] = {u: b.seen() for u, b in books[process].items()}
        elif kind.startswith("device-") and kind != "device-info":
            mine, all_of_it = books[process][uuids.get((process, r["device"]))], books[process].values()
            if kind == "device-alloc":
                mine.alloc(r)
            elif kind == "device-free":  # it names the thread's device, which need not be the block's
                for one in all_of_it:
                    if r["addr"] in one.of_class(r["class"]):
                        one.free(r)
            elif kind == "device-map":
                mine.mapped[r["addr"]] = r["size"]
            elif kind == "device-unmap":
                for one in all_of_it:
                    for addr in [a for a in one.mapped if r["addr"] <= a < r["addr"] + r["size"]]:
                        del one.mapped[addr]
            elif kind == "device-fail":
                mine.count["fail", r["class"]] += 1
            elif kind == "device-undo":
                mt.fail("an undo: %s" % r)
    return {pids[p]: ([m[i] for i in range(len(m))], books[p]) for p, m in moments.items()}


def compare_moment(where, seen, torch, expandable):
    stats = torch["stats"]
    for what, counter in [("allocation", "allocated"), ("freed", "freed")]:
        mt.equal(seen["count"].get(what, 0), stats["allocation"][counter], where + " allocation.all." + counter)
        mt.equal(seen["sum"].get(what, 0), stats["allocated_bytes"][counter], where + " allocated_bytes.all." + counter)
    mt.equal(sum(b[1] for b in seen["blocks"]), stats["active_bytes"]["current"], where + " active_bytes.all.current")
    mt.equal(len(seen["blocks"]), stats["active"]["current"], where + " active.all.current")
    mt.equal(seen["reserved"], stats["reserved_bytes"]["current"], where + " reserved_bytes.all.current")
    mt.equal(seen["blocks"], [[a, s, stream] for a, s, state, stream in torch["blocks"] if state == "active_allocated"], where + " blocks")
    if expandable:
        ranges = [(a, a + s) for a, s, _ in torch["segments"]]
        outside = [a for a in seen["mapped"] if not any(lo <= a < hi for lo, hi in ranges)]
        mt.equal(outside, [], where + " mapped outside PyTorch's segments")
    else:
        mt.equal([list(s) for s in seen["segments"]], [[a, s] for a, s, _ in torch["segments"]], where + " segments")
        for what, counter in [("segment", "allocated"), ("segment_freed", "freed")]:
            mt.equal(seen["count"].get(what, 0), stats["segment"][counter], where + " segment.all." + counter)
            mt.equal(seen["sum"].get(what, 0), stats["reserved_bytes"][counter], where + " reserved_bytes.all." + counter)


def compare_process(told, moments, books, expandable):
    mt.equal(len(moments), MOMENTS, "moments seen")
    for number, (seen, torch) in enumerate(zip(moments, told["moments"])):
        for uuid, facts in torch.items():
            compare_moment("moment %d of %s:" % (number, uuid[-4:]), seen[uuid], facts, expandable)
    for uuid, history in told["history"].items():
        wanted = [e[:3] for e in history if e[0] in ("alloc", "free_requested", "segment_alloc", "segment_free")]
        got = books[uuid].order
        for i, ((action, addr, size), (wanted_action, wanted_addr, asked)) in enumerate(zip(got, wanted)):
            mt.equal([action, addr], [wanted_action, wanted_addr], "event %d of %s" % (i, uuid))
            # The history has what was asked for, of which a block is made; of segments it has the size.
            good = size == asked if action.startswith("segment") else size % 512 == 0 and size >= asked
            mt.check(good, "event %d of %s: %s of %d bytes, not %d" % (i, uuid, action, size, asked))
        mt.equal(len(got), len(wanted), "events of " + uuid)
        mt.equal(books[uuid].count["fail", POOL], sum(e[0] == "oom" for e in history), "failed requests of " + uuid)


def traffic(seed, steps, processes, expandable, devices="700M,500M", room=0):
    """Runs the program(s) under one shim, with ROOM bytes left on each device (0 = all); returns (the run, what each told)."""
    folder, python = mt.scratch("told"), gpu.python()
    outputs = [os.path.join(folder, str(i)) for i in range(processes)]
    env = {"MEMTRACE_PAUSED": "1", "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:%s" % expandable}
    commands = [[python, PROGRAM, str(seed + i), str(steps), str(MOMENTS), output, str(processes), str(room)] for i, output in enumerate(outputs)]
    visible = ["CUDA_VISIBLE_DEVICES=%s " % order for order in ("0,1", "1,0")] if gpu.devices(devices) > 1 else ["", ""]
    script = "".join("%s'%s' &\n" % (visible[i % 2], "' '".join(c)) for i, c in enumerate(commands)) + "wait\n"
    done = gpu.shimmed(["sh", "-c", script], env=env, devices=devices, timeout=240)
    missing = [o for o in outputs if not os.path.exists(o)]
    mt.check(not missing, "the program failed: %s" % done)
    done.trace.intact()
    return done, [json.load(open(o, encoding="utf-8")) for o in outputs]


def compare_report(trace, told):
    """The model's figures, which come another way than the events replayed here, at the end."""
    for device in trace.report["devices"]:
        last = [t["moments"][-1][device["uuid"]] for t in told]
        pool = device["pool"]
        for key, group, counter in [("allocations", "allocation", "allocated"), ("frees", "allocation", "freed"),
                                    ("live_bytes", "allocated_bytes", "current"), ("reserved_bytes", "reserved_bytes", "current")]:
            mt.equal(pool[key], sum(s["stats"][group][counter] for s in last), "report: %s pool %s" % (device["name"], key))
        if len(last) == 1:
            mt.equal(pool["peak_allocated_bytes"], last[0]["stats"]["allocated_bytes"]["peak"], "report: %s peak" % device["name"])
        mt.equal(device["num_ooms"], sum(s["ooms"] for s in last), "report: %s num_ooms" % device["name"])
        mt.equal(device["retries"], sum(s["retries"] for s in last), "report: %s retries" % device["name"])


def check(name, processes, expandable, **options):
    """All of it; fails unless something ran out of memory and something was tried again."""
    done, told = traffic(len(name), 1500, processes, expandable, **options)
    seen = replay(done.trace)
    caught = sum(t["caught"] for t in told)
    mt.check(caught > 0, "nothing ran out of memory: the test tests less than it should")
    mt.check(sum(m["retries"] for t in told for m in t["moments"][-1].values()) > 0, "no retry")
    for one in told:
        moments, books = seen[one["pid"]]
        compare_process(one, moments, books, expandable)
    compare_report(done.trace, told)
    print("# %s: %d moments, %d failures caught, %d pool events" %
          (name, MOMENTS * processes, caught, sum(len(h) for t in told for h in t["history"].values())))
