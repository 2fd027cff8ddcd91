#!/usr/bin/env python3
"""memtrace diff by category, on written traces whose blocks are known one by one."""
import functools
import json
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../battery"))
import mt
import gpu
import trace as writer

MIB, GIB = 1 << 20, 1 << 30
LINEAR = (gpu.SITE + "torch/nn/modules/linear.py", "Linear.__init__", 96)
# bytes by category, at the peak of the heap and of the device
BEFORE = {"host": {"input_pipeline": 96 * MIB}, "cuda:0": {"kv_cache": 512 * MIB, "parameters": 256 * MIB, "optimizer": 512 * MIB}}
AFTER = {"host": {"input_pipeline": 32 * MIB}, "cuda:0": {"activations": 64 * MIB, "parameters": 256 * MIB, "optimizer": 128 * MIB}}
STACKS = {"parameters": (("/app/model.py", "Net.__init__", 10), LINEAR), "optimizer": (gpu.ADAM,)}


@functools.lru_cache(None)
def written(which):
    """Categories are told by the stack where STACKS has one, else by a label. Twice as much comes and goes before the peak's end."""
    t = writer.Trace(os.path.join(mt.scratch(which), "trace"))
    p = t.process(4711, ["/app/train.py"])
    pool = gpu.Pool(p, gpu.Device("GPU-1", 24 * GIB), context=0)
    stack = p.stack(("/app/train.py", "<module>", 30))
    for category, size in (BEFORE if which == "before" else AFTER)["cuda:0"].items():
        p.at(p.now + 0.2)
        frames = STACKS.get(category, ())
        block = pool.alloc(size, p.stack(("/app/train.py", "<module>", 20), *frames))
        if not frames:
            p.label(block, category + ":x")
    size = (BEFORE if which == "before" else AFTER)["host"]["input_pipeline"]
    p.label(p.malloc(size, stack), "input_pipeline:batch")
    p.at(p.now + 0.2)
    t.save()
    return t.path


def diff(*words, status=0):
    done = mt.execute([mt.MEMTRACE, "diff", *words, written("before"), written("after")])
    mt.equal(done.status, status, "%s: status, %s" % (words, done.err))
    return done


def rows(*words):
    return json.loads(diff("--json", *words).out)["categories"]


def told(side, *words):
    """{space: {category: bytes}} as diff has one side."""
    spaces = {}
    for r in rows(*words):
        if r[side] is not None:
            spaces.setdefault(r["name"], {})[r["figure"]] = r[side]
    return spaces


@mt.variants(("before_bytes", "before"), ("after_bytes", "after"))
def case_categories_are_those_of_the_blocks(side, which):
    want = BEFORE if which == "before" else AFTER
    mt.equal(told(side), want, which)
    done = mt.execute([mt.MEMTRACE, "report", "--json", written(which)])
    said = {space: {c: n for c, n in all_of.items() if n} for space, all_of in json.loads(done.out)["categories"].items()}
    mt.equal(told(side), said, "as report has them")


def case_changes_come_by_size():
    found = [(r["name"], r["figure"], r["change_bytes"], r["change_percent"] and round(r["change_percent"], 6)) for r in rows()]
    mt.equal(found, [("cuda:0", "kv_cache", -512 * MIB, None), ("cuda:0", "optimizer", -384 * MIB, -75.0),
                     ("host", "input_pipeline", -64 * MIB, round(100 * (32 - 96) / 96, 6)), ("cuda:0", "activations", 64 * MIB, None),
                     ("cuda:0", "parameters", 0, 0.0)])


def case_the_screen_has_what_changed():
    lines = diff().out.split("\n")
    at = next(i for i, line in enumerate(lines) if line.startswith("CATEGORIES"))
    part = lines[at + 1:lines.index("", at)]
    mt.equal([line.split()[:2] for line in part], [["cuda:0", "kv_cache"], ["cuda:0", "optimizer"], ["host", "input_pipeline"],
                                                   ["cuda:0", "activations"]])
    mt.check("gone" in part[0] and "-75.0 %" in part[1] and "new" in part[3], "screen: %s" % part)


@mt.variants(("host", "host"), ("cuda:0", "cuda:0"))
def case_one_space_alone(device, space):
    mt.equal(told("before_bytes", "--device", device), {space: BEFORE[space]})


def case_a_run_is_itself():
    done = mt.execute([mt.MEMTRACE, "diff", "--json", written("after"), written("after")])
    mt.equal([r["change_bytes"] for r in json.loads(done.out)["categories"]], [0] * 4)


mt.main()
