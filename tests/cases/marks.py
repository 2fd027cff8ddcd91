#!/usr/bin/env python3
"""Marks, steps, phases and labels: from C, C++ and Python, with and without the shim."""
# timeout: 200
import collections
import json
import os
import subprocess
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

POINT, STEP, BEGIN, END, LABEL = 1, 2, 3, 4, 5
PROGRAM = mt.program("marks")

Mark = collections.namedtuple("Mark", "process what value text stack")


def marks(trace):
    """All marks of a trace in their order, and the texts by (process, id)."""
    trace.intact()
    names, found = {}, []
    for line in trace.tool("dump", "--json", timeout=60).out.splitlines():
        if '"mark"' not in line and '"name"' not in line:
            continue
        row = json.loads(line)
        kind = row.get("record", row.get("what", row.get("type")))
        if kind == "name":
            names[row["process"], row["id"]] = row["name"]
        elif kind == "mark":
            text = names[row["process"], row["size"]] if row["size"] else None
            found.append(Mark(row["process"], row["class"], row["addr"], text, row["node"]))
    return found, names


def plain(found):
    return [(m.what, m.value, m.text) for m in found]


def case_every_kind():
    output = os.path.join(mt.scratch("trace"), "t")
    done = mt.execute([PROGRAM, "basic"], env=mt.shim_env(output))
    block = int(done.out.split()[1], 16)
    found, names = marks(mt.Trace(output))
    inner = [(BEGIN, 0, "inner"), (END, 0, "inner")]
    want = [(POINT, 0, "begin"), (BEGIN, 0, "outer")]
    for n in range(3):
        want += [(STEP, n, None)] + inner
    want += [(LABEL, block, "parameters:block"), (POINT, 0, None), (POINT, 0, None), (END, 0, None)]
    mt.equal(plain(found), want)
    mt.equal(len(names), 4, "texts")
    mt.check(all(m.stack for m in found if m.what in (POINT, STEP, BEGIN)), "marks without a stack")


def case_steps_from_0():
    trace = mt.shimmed([PROGRAM, "basic"]).trace
    mt.equal([s["number"] for s in trace.json("report")["steps"]["list"]], [0, 1, 2])
    trace.json("peak", "--at", "step:0")
    done = mt.execute([mt.MEMTRACE, "peak", "--at", "step:3", trace.path])
    mt.check(done.status == 2 and "steps 0 to 2" in done.err, "stderr: %r" % done.err)


def case_nothing_without_the_shim():
    done = mt.plain([PROGRAM, "basic"])
    mt.equal((done.status, done.err, done.out.count("FAILED")), (0, "", 0))


def case_threads_meet_the_same_names():
    found, names = marks(mt.same([PROGRAM, "threads"]))
    mt.equal(collections.Counter(m.text for m in found), {"name %d" % i: 4 for i in range(2000)})
    mt.equal(len(names), len(set(names.values())), "texts that were recorded twice: ids")


def case_forked_children_have_their_own():
    trace = mt.same([PROGRAM, "fork"])
    found, _ = marks(trace)
    by_process = collections.defaultdict(list)
    for m in found:
        by_process[m.process].append((m.what, m.text))
    mt.equal(len(by_process), 3)
    parent = [(BEGIN, "whole"), (POINT, "parent"), (POINT, "both"), (POINT, "after")]
    children = [[(POINT, "both"), (POINT, name), (END, "whole")] for name in ("fork", "clone")]
    mt.equal(sorted(by_process.values()), sorted([parent] + children))


def case_growth_that_is_freed_in_the_end():
    """Two sites grow at the same pace, and one block of each is alive at the end: limits are for both together, and the message says where."""
    trace = mt.shimmed([PROGRAM, "grow"]).trace
    trace.intact()
    grown = {s["stack"][0]["function"]: s for s in trace.json("leaks")["sites"] if s["kind"] == "linear"}
    mt.equal({name: (s["blocks"], s["bytes"]) for name, s in grown.items()}, {"keep_first": (1, 20480), "keep_second": (1, 10240)})
    for name, each in (("keep_first", 20480), ("keep_second", 10240)):
        mt.between(0.999 * each, grown[name]["slope_bytes_per_step"], 1.001 * each, "bytes a step of " + name)
    mt.equal(len({s["group"] for s in grown.values()}), 1, "groups")
    for limit, status in (("31K/step", 0), ("29K/step", 1)):
        done = mt.execute([mt.MEMTRACE, "leaks", "--fail-over", limit, trace.path])
        mt.equal(done.status, status, "status of " + limit)
    mt.check("keep_first" in done.err and "1 more at the same pace" in done.err and "30.0 KiB/step" in done.err, done.err)
    mt.check("30.0 KiB +/-" in done.out and "2 sites grow" in done.out, done.out)
    mt.check(all(len(line) <= 100 for line in done.out.splitlines()), "lines that are too long")


def case_more_names_than_are_kept():
    """65,536 texts are kept; the loss of others is counted, and their marks are still there."""
    trace = mt.shimmed([PROGRAM, "names", "65800"]).trace.settle()
    mt.check(trace.report["losses"]["unwritten_bytes"] >= 264 * 30, trace.report["losses"])
    counts = collections.Counter(line.split()[0] for line in trace.tool("dump").out.splitlines())
    mt.equal((counts["name"], counts["mark"]), (65536, 65801))


def case_long_and_odd_texts():
    texts = [m.text for m in marks(mt.same([PROGRAM, "long"]))[0]]
    mt.equal(texts, ["x" * 1023, "y" * 1022, "plain \"quoted\" \\ \n \x01 grüß"])


def case_signal_handlers():
    trace = mt.shimmed([PROGRAM, "signals"]).trace
    found, names = marks(trace)
    mt.equal(sum(1 for m in found if m.text.startswith("name")), 40000)
    mt.check(any(m.text.startswith("signal") for m in found), "no mark of a handler")
    mt.equal(len(names), len(set(names.values())), "texts that were recorded twice: ids")


def case_paused():
    """A child goes on as its parent was at the fork."""
    found, _ = marks(mt.shimmed([PROGRAM, "paused"], env={"MEMTRACE_PAUSED": "1"}).trace)
    mt.equal([m.text for m in found], ["seen", "seen by a child", "seen again"])


@mt.variants("gcc -std=c99 -pedantic", "gcc -O2 -no-pie -fno-pie", "clang -std=c99 -pedantic", "clang -no-pie -fno-pie",
             "g++ -std=c++98 -pedantic", "g++ -std=c++17 -O2", "clang++ -std=c++17")
def case_header(compiler):
    mt.need(compiler.split()[0])
    folder = mt.scratch("header")
    language = "c++" if "++" in compiler else "c"
    binary = os.path.join(folder, "a")
    source = '#include "memtrace.h"\nint main(void) { memtrace_start(); memtrace_phase_begin("p"); memtrace_step(4);' \
             'memtrace_mark("m"); memtrace_label(&binary, "l"); memtrace_phase_end("p"); memtrace_stop(); return 0; }\n'
    source = source.replace("\nint main", "\nstatic int binary;\nint main")
    subprocess.run(compiler.split() + ["-Wall", "-Wextra", "-Werror", "-I" + mt.TOP, "-x", language, "-", "-o", binary],
                   input=source.encode(), check=True)
    found, _ = marks(mt.same([binary]))
    mt.equal([m.what for m in found], [BEGIN, STEP, POINT, LABEL, END])


# ---- Python ----------------------------------------------------------------------------------------------------

SCRIPT = """
import sys, threading
sys.path.insert(0, %r)
import memtrace
memtrace.mark("before")
with memtrace.phase("train"):
    for n in range(2):
        memtrace.step(n)
@memtrace.phase("decorated")
def work():
    memtrace.phase_begin("gr\\u00fc\\u00df"); memtrace.phase_end()
work()
data = bytearray(100000)
memtrace.label(data, "caches:data")
memtrace.label(b"", "nothing")
memtrace.label(12345678, "number")
handle = memtrace.watch(None)  if not memtrace.loaded() else None
print(memtrace.loaded(), file=sys.stderr)
""" % os.path.join(mt.TOP, "scripts")


def case_python():
    without = mt.plain([mt.python(), "-c", SCRIPT])
    mt.equal((without.status, without.err), (0, "False\n"))
    done = mt.shimmed([mt.python(), "-c", SCRIPT])
    mt.equal((done.status, done.err), (0, "True\n"))
    found = [(m.what, m.text) for m in marks(done.trace)[0]]
    mt.equal(found, [(POINT, "before"), (BEGIN, "train"), (STEP, None), (STEP, None), (END, "train"), (BEGIN, "decorated"),
                     (BEGIN, "grüß"), (END, None), (END, "decorated"), (LABEL, "caches:data"), (LABEL, "number")])


TORCH = """
import sys, json
sys.path.insert(0, %r)
import memtrace, torch
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(300, 200), torch.nn.ReLU(), torch.nn.Linear(200, 100, bias=False))
model[2].weight.requires_grad = True
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
watch = memtrace.watch(model, optimizer)
truth = {"parameters:" + n: p.data_ptr() for n, p in model.named_parameters()}
gradients = []
for step in range(4):
    memtrace.step(step)
    model(torch.randn(8, 300)).square().sum().backward()
    gradients.append({"gradients:" + n: p.grad.data_ptr() for n, p in model.named_parameters()})
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
names = {id(p): n for n, p in model.named_parameters()}
for p, state in optimizer.state.items():
    for key, value in state.items():
        truth["optimizer:%%s %%s" %% (key, names[id(p)])] = value.data_ptr()
watch.remove()
model(torch.randn(8, 300)).sum().backward()
print(json.dumps([truth, gradients]))
""" % os.path.join(mt.TOP, "scripts")


def case_watch():
    """Every parameter, every step's gradients and the optimizer's state under their names, by PyTorch's own addresses."""
    if not mt.has_module("torch"):
        mt.skip("no PyTorch")
    done = mt.shimmed([mt.python(), "-c", TORCH])
    mt.equal(done.status, 0, done.err[-300:])
    truth, gradients = json.loads(done.out)
    steps, labels, step = collections.defaultdict(dict), {}, -1
    for m in marks(done.trace)[0]:
        if m.what == STEP:
            step = m.value
        elif m.text.startswith("gradients:"):
            steps[step][m.text] = m.value
        else:
            labels[m.text] = m.value
    mt.equal(labels, truth)
    mt.equal([steps[i] for i in range(4)], gradients)


mt.main()
