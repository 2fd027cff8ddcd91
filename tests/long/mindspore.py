#!/usr/bin/env python3
"""The real MindSpore (its CPU build, which brings the plugins for Ascend) trains under the shim as it does without; incident 1 with it; and
which objects hold what it has."""
# timeout: 1200
# serial: a large framework
import functools
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import audit
import audit_host
import gpu
import mt
import screen
from cgroup import Cgroup

MIB = 1 << 20
POOL = 1 << 30  # what MindSpore takes for its own at a time
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
    """In a cgroup of its own, with books: all that audit.py asks of a run."""
    output = os.path.join(mt.scratch("trace"), "t")
    with Cgroup(limit) as group:
        def start(env, preload):
            env = mt.clean_env(MEMTRACE_PAUSED="1", **environment(), **env)
            command = group.command(["env", "LD_PRELOAD=" + " ".join([mt.SHIM, *preload]), mt.python(), SCENARIO, *arguments])
            done = mt.execute([mt.MEMTRACE, "run", "-o", output, "--", *command], env=env, timeout=300)
            done.trace, done.log, done.limit, done.account = mt.Trace(output), [], limit, gpu.account(done.out)
            return done
        return audit.known(start, " ".join(["python mindspore_main.py", *arguments]), group)


@functools.lru_cache(None)
def limit():
    """Less than what the sick program takes that can't give way, by less than what its last line takes."""
    done = incident1(6144 * MIB)
    mt.equal((done.status, done.trace.report["verdicts"]), (0, []), "status, verdicts with room")
    figures = re.findall(r"cgroup .* current (\d+) .* file (\d+) ", done.trace.tool("dump", "--samples").out)
    return (max(int(current) - int(file) for current, file in figures) - 24 * MIB) // 4096 * 4096


class Audit(audit.Audit):
    """Of a run on the host, in a cgroup."""

    def everywhere(self):
        self.title()
        self.names()
        for claims in (self.ranks, self.host_memory, self.process_table, self.machine, self.no_pressure, self.owners, self.mappings, self.smaller,
                       self.for_what):
            claims()

    def processes(self):
        """MindSpore asks cat, grep and sed for the machine's clock when it is imported."""
        return len({p["pid"] for p in self.report["processes"]})

    def line(self, text):
        """What the program's line had when the heap was at its peak, by the books."""
        return self.done.books.line["mindspore_main.py", screen.line_of(SCENARIO, text)].heap.high_bytes

    def for_what(self):
        """Beside parameters and the arrays of the checkpoint there is MindSpore's own pool."""
        done, peak = self.done, self.done.books.host.peak_bytes
        self.claim(r"^ALIVE THEN \(host: (FIGURE) at (TIME)\)$", peak, self.peak_time(done.books.host), what="what was alive", count=(0, 1))
        known = {"parameters": self.line("Parameter(Tensor(") + self.line("asnumpy().copy()"), "checkpoint": self.line("numpy.ones(shape")}
        small = peak / 1000
        want = {name: (size - small, 1.01 * size + small) for name, size in known.items()}
        rest = peak - sum(known.values())
        self.categories_are(dict(want, unknown=(0.98 * rest - small, rest + small), context=(0, small)), small)

    def largest(self, sizes):
        for line, found in self.each(r"(?<= )(FIGURE) \S+", "ALIVE THEN"):
            if line.text.startswith("  5 largest"):
                self.take(line, found, 1, lambda text: any(screen.Figure(text).value - screen.Figure(text).half <= size <=
                                                           screen.Figure(text).value + screen.Figure(text).half for size in sizes), "a large block")
        self.claim(r"\(x(\d)\)", (2, len(sizes)), what="blocks of one size", section="ALIVE THEN", count=range(3))
        self.claim(r"^  (5) largest ", "5", what="how many")


def check_screen(done):
    """Each number on the first screen is compared with the books, the kernel, or what the program says of itself."""
    seen, copy = Audit(done), done.account["copy_bytes"]
    if done.status:
        made = ["mindspore_main.py:%d" % screen.line_of(SCENARIO, text)
                for text in ("inference = Model(", " model = Model(", "= load_checkpoint()", "= model.to_numpy(")]
        seen.claim(r"^  1 limit +(FIGURE)   high   the cgroup may use (FIGURE) of the machine's (FIGURE); (FIGURE) of it were in use "
                   r"and the kernel killed (\d)$", (0.9 * done.limit, done.limit), done.limit, screen.memory_of_machine(), (0.9 * done.limit, done.limit), 1, what="the limit")
        seen.claim(r"^  2 copies +(FIGURE)   high   (\d+) sets of (\d+) blocks of the same sizes .* (FIGURE) each: (PLACE) main, (PLACE) main, "
                   r"(PLACE) main, (PLACE) main$", (3 * copy, 3.02 * copy), 4, done.account["copy_blocks"], copy,
                   *[lambda place: place in made] * 4, what="copies")
        mt.check(all(seen.each(re.escape(place) + " main(?=,|$)", "WHY") for place in made), "not all of %s made copies" % made)
        seen.claim(r"gives back (FIGURE)$", (3 * copy, 3.02 * copy), what="what it gives back", section="WHAT TO DO")
        seen.claim(r"^  no leak +what grew \((?:PLACE) [^,]*, (FIGURE)\) is one of the copies$", (copy / 2, copy), what="no leak", count=(0, 1))
        kept = done.books
        freed = kept.host.peak_bytes - sum(p.heap.live_bytes for p in kept.process.values())
        seen.claim(r"^  no retained +allocators kept (FIGURE) of freed memory at the last sample of the processes; (FIGURE) were resident and private$", (0, freed), (0, done.limit),
                   what="what allocators keep")
        seen.largest([POOL, done.account["largest_bytes"]])
    seen.finish()


def case_incident1():
    done = incident1(limit())
    audit_host.exact(done)
    check_screen(done)
    account = done.account
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
    audit_host.exact(done)
    check_screen(done)


HELD = """
import ctypes, gc, json, os
import mindspore, numpy
from mindspore import Parameter, Tensor, nn, ops
snapshot = ctypes.CDLL(os.environ["HOLDERS"]).memtrace_holders
mindspore.set_context(device_target="CPU")
def ones(rows):
    return numpy.ones((rows, 1024), numpy.float32)
at_module = [Parameter(Tensor(ones(300 + i)), name="m%d" % i) for i in range(12)]
def main():
    parameters = [Parameter(Tensor(ones(400 + i)), name="p%d" % i) for i in range(12)]
    tensors = {i: Tensor(ones(500 + i)) for i in range(12)}
    gone = [Parameter(Tensor(ones(550 + i)), name="g%d" % i) for i in range(12)]
    net = nn.SequentialCell(*[nn.Dense(1024, 600 + i, has_bias=False) for i in range(12)])
    results, more = [ops.cast(t, mindspore.float16) for t in tensors.values()], [ops.cast(tensors[0], mindspore.float16)]
    results[0].asnumpy(), more[0].asnumpy()
    del gone
    gc.collect()
    size = lambda held: sum(t.nbytes for t in held)
    print("ACCOUNT", json.dumps({"at_module": size(at_module), "parameters": size(parameters), "tensors": size(tensors.values()), "net": size(net.trainable_params())}), flush=True)
    snapshot(b"held")
    for _ in range(5): pass
main()
"""


def case_holders():
    """Parameters and tensors by the names that the program has for them; and MindSpore's pool by all that have results of operators in it."""
    env = dict(environment(), MEMTRACE_HOLDERS="1", HOLDERS=mt.SHIM)
    done = mt.shimmed([mt.python(), "-W", "ignore", "-c", HELD], env=env, timeout=400)
    mt.equal(done.status, 0, "status of %s" % done)
    account = json.loads(re.search("^ACCOUNT (.*)$", done.out, re.M)[1])
    root = done.trace.settle().json("holders", "-n", "0", "--snapshot", "1")
    mt.check(root["complete"], "a snapshot that is not whole")
    rows = next(m for m in root["memory"] if m["kind"] == "heap")["holders"]
    where = {name: r"%s\b.* of main \(<string>:\d+\)" % name for name in ("parameters", "tensors", "net", "results", "more", "gone")}
    where["at_module"] = r"__main__\.at_module\b.*"

    def of(*names):
        return [h for h in rows if h["bytes"] < POOL and any(re.fullmatch(where[n], p or "") for n in names for p in (h["path"], h["also"]))]
    for name, size in account.items():
        mt.check(sum(h["bytes"] for h in of(name)) >= size, "%s holds %d bytes: %s" % (name, size, of(name)))
    mt.between(sum(account.values()), sum(h["bytes"] for h in of(*account)), 1.01 * sum(account.values()) + MIB, "what they hold")
    mt.equal(of("gone"), [], "what was let go of")
    pool, = [h for h in rows if h["bytes"] >= POOL]
    mt.equal([n for n in ("more", "results") if any(re.fullmatch(where[n], p or "") for p in (pool["path"], pool["also"]))], ["more", "results"], "the pool: %s" % pool)


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
