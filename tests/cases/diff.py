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


# site: MiB on either side; those of a name that comes twice are alike but for their lines
SITES = {"grew": (4, 40), "nearly": (10, 99), "shrank": (10, 5), "same": (8, 8), "little": (0.5, 1), "new": (0, 2), "gone": (3, 0)}


@functools.lru_cache(None)
def pair(names, devices=1):
    """Two traces whose heap has those of SITES; a phase of 0.04 s, one of 0.3, and a process that does the same in both."""
    paths = []
    for side in range(2):
        t = writer.Trace(os.path.join(mt.scratch("%s-%d-%d" % ("-".join(names), devices, side)), "trace"))
        p, other = t.process(4711, ["/app/train.py"]), t.process(4712, ["/app/other.py"])
        other.malloc(MIB, other.stack(("/app/other.py", "<module>", 3)))
        p.begin("long")
        for name in names:
            if SITES[name][side]:
                p.malloc(int(SITES[name][side] * MIB), p.stack(("/app/train.py", "<module>", 30 + side), ("/app/lib.py", name, 3 + 7 * side)))
        p.at(p.now + 0.3)
        p.end_phase("long")
        p.begin("short")
        p.at(p.now + 0.04)
        p.end_phase("short")
        for n in range(devices):
            gpu.Pool(p, gpu.Device("GPU-%d" % n, 24 * GIB), n, context=0).alloc(64 * MIB, p.stack(("/app/train.py", "<module>", 40)))
        p.at(p.now + 0.2)
        other.at(p.now)
        t.save()
        paths.append(t.path)
    return paths


def screen(names, *words, devices=1, section="SITES"):
    """{what a row begins with: the rest of it} of a section."""
    done = mt.execute([mt.MEMTRACE, "diff", *words, *pair(names, devices)])
    mt.equal(done.status, 0, "status, %s" % done.err)
    lines = done.out.split("\n")
    at = [i for i, line in enumerate(lines) if line.startswith(section)]
    return lines[at[0] + 1:lines.index("", at[0])] if at else []


def firsts(lines):
    return [line.split()[0] for line in lines]


def case_sites_come_by_change_without_what_did_not():
    lines = screen(tuple(SITES))
    mt.equal(firsts(lines), ["nearly", "grew", "shrank", "gone", "new", "little"])
    ends = [" ".join(line.split("MiB")[-1].split()) for line in lines]
    mt.equal(ends[:5], ["+890.0 %", "x 10", "-50.0 %", "gone", "new"])
    mt.check(lines[5].endswith("+100.0 %"), lines[5])
    done = mt.execute([mt.MEMTRACE, "diff", "--json", *pair(tuple(SITES))])
    found = {r["site"].split()[0]: r["change_bytes"] for r in json.loads(done.out)["sites"] if r["kind"] == "heap"}
    for name, (before, after) in SITES.items():
        mt.equal(found[name], int((after - before) * MIB), name)


def case_rows_beyond_those_asked_for_are_counted():
    lines = screen(tuple(SITES), "-n", "2")
    mt.equal(firsts(lines)[:2], ["nearly", "grew"])
    rest = sum(after - before for before, after in list(SITES.values())[2:]) # as the screen has them: what changed most first
    mt.check("4 more, together %+.1f MiB: -n ROWS" % rest in lines[2] and len(lines) == 3, lines)
    done = mt.execute([mt.MEMTRACE, "diff", "--json", "-n", "2", *pair(tuple(SITES))])
    some = json.loads(done.out)
    every = json.loads(mt.execute([mt.MEMTRACE, "diff", "--json", "-n", "all", *pair(tuple(SITES))]).out)
    mt.equal((len(some["sites"]), some["sites"]), (2, every["sites"][:2]))
    mt.equal((some["sites_total"], some["sites_left_out"]), (len(every["sites"]), {
        "count": len(every["sites"]) - 2, "change_bytes": sum(s["change_bytes"] for s in every["sites"][2:])}))


@mt.variants(("one", 1), ("two", 2))
def case_the_sum_of_one_device_is_left_out(_name, devices):
    mt.equal("all" in firsts(screen(("same",), devices=devices, section="DEVICES")), devices == 2)


def case_what_did_not_change_is_left_out():
    mt.equal(firsts(screen(tuple(SITES), section="PROCESSES")), ["train.py"])
    mt.equal(screen(("same", "little"), section="SITES")[0].split()[0], "little")
    mt.equal(screen(("same", "little"), section="CATEGORIES"), [], "categories that changed by half a MiB")
    mt.equal(len(screen(("same", "new"), section="CATEGORIES")), 1, "categories that changed by 2 MiB")


def case_phases_take_a_tenth_of_a_second_or_a_mebibyte():
    lines = [line.split() for line in screen(("same", "little"), section="PHASES")]
    mt.equal([words[:2] for words in lines if words[0] in ("long", "short")], [["long", "time"]])
    lines = [line.split() for line in screen(("same", "new"), section="PHASES")]
    mt.equal([words[:2] for words in lines if words[0] in ("long", "short")], [["long", "time"], ["long", "host"], ["short", "host"]])


@mt.variants(("none", "new", None, 0), ("bytes", "new", str(2 * MIB), 0), ("a byte less", "new", str(2 * MIB - 1), 1),
             ("per cent", "new", "23%", 0), ("less per cent", "new", "22%", 1), ("both", "new", "23%,1M", 1), ("either", "new", "100%,3M", 0),
             ("little", "little", "5%", 0), ("less", "shrank", "0%,0", 0))
def case_fail_over(_name, changed, limits, status):
    """Beside 9 MiB that stay; what is less than a mebibyte is no percentage."""
    done = mt.execute([mt.MEMTRACE, "diff", *(["--fail-over", limits] if limits else []), *pair(("same", changed))])
    mt.equal(done.status, status, done.err)


mt.main()
