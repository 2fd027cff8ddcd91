#!/usr/bin/env python3
"""memtrace export: the figures are those of peak --json, the stacks the program's, and a consumer can read it."""
import collections
import functools
import json
import os
import re
import shutil
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../battery"))
import cases
import golden_traces
import mt


def run(*words):
    return mt.execute([mt.MEMTRACE, *words])


def without_place(name):
    """Of `deep (busy.c:12)` the function."""
    return re.sub(r" \([^()]*:\d+\)$", "", name)


def folded(trace, *words):
    """{(frames outermost first): bytes} and {kind of memory: bytes}, parsed as flamegraph.pl does it."""
    done = run("export", "--format", "folded", *words, trace)
    mt.equal((done.status, done.err), (0, ""), "export %s" % (words,))
    stacks, sums = collections.Counter(), collections.Counter()
    for line in done.out.splitlines():
        match = re.fullmatch(r"(.*) (\d+)", line)
        mt.check(match, "a line that is none: %r" % line)
        frames = [without_place(name) for name in match[1].split(";")]
        mt.check(len(frames) >= 2 and all(frames), "empty names: %r" % line)
        stacks[tuple(frames)] += int(match[2])
        sums[frames[0]] += int(match[2])
    return stacks, sums


def moments(trace, *words):
    """{kind of memory: bytes} of peak --json."""
    page = json.loads(run("peak", "--json", *words, trace).out)
    found = {"heap": page.get("host"), "map": page.get("map"), "pinned": page.get("pinned")}
    for device in page["devices"]:
        found.update({"%s %s" % (device["name"], kind): device.get(kind) for kind in ("pool", "device")})
    return {kind: moment["bytes"] for kind, moment in found.items() if moment and moment["bytes"]}


@functools.lru_cache(None)
def busy():
    return mt.shimmed([mt.program("busy"), "20000", "1000", "300"]).trace.settle().path


@functools.lru_cache(None)
def device():
    path = os.path.join(mt.scratch("battery"), "t")
    cases.make(path, "other_process_traced", 301, True)
    return path


def opened(form, trace, *words):
    """What speedscope makes of an export, and the export."""
    folder = os.environ.get("SPEEDSCOPE", os.path.join(mt.VENV, "npm/node_modules/speedscope"))
    if not shutil.which("node") or not os.path.isdir(folder):
        mt.skip("no speedscope (scripts/setup check, or SPEEDSCOPE=FOLDER of the npm package)")
    exported = run("export", "--format", form, *words, trace)
    mt.equal((exported.status, exported.err), (0, ""), "export %s" % (words,))
    path = os.path.join(mt.scratch("speedscope"), "profile." + form)
    with open(path, "w", encoding="utf-8") as file:
        file.write(exported.out)
    done = mt.execute(["node", os.path.join(mt.TOP, "tests/lib/speedscope.js"), folder, path], env=mt.clean_env())
    page = json.loads(done.out)
    if "it's empty" in page.get("alert", ""):
        return {"shared": {"frames": []}, "profiles": []}, exported.out
    mt.check("profiles" in page, "speedscope says %r" % page.get("alert"))
    return page, exported.out


def speedscope(trace, *words):
    """What speedscope has understood: [(name, unit, {(frames outermost first): bytes})] of each profile. A frame is (name, file, line)."""
    page, exported = opened("speedscope", trace, *words)
    ours = [json.dumps(f) for f in json.loads(exported)["shared"]["frames"]]
    mt.equal(len(set(ours)), len(ours), "frames, each once: speedscope takes each for a function of its own")
    frames = [(without_place(f["name"]), f.get("file"), f.get("line")) for f in page["shared"]["frames"]]
    for f in page["shared"]["frames"]:
        mt.check(not f.get("line") or f["name"].endswith(" (%s:%d)" % (os.path.basename(f["file"]), f["line"])), "a name without its place: %s" % f)
    return [(p["name"], p["unit"], weights(p, frames)) for p in page["profiles"]]


def weights(profile, frames):
    """Bytes of each stack, from what was open between two events."""
    stacks, stack, at = collections.Counter(), [], 0
    for event in profile["events"]:
        if event["at"] != at:
            stacks[tuple(stack)] += event["at"] - at
            at = event["at"]
        if event["type"] == "O":
            stack.append(frames[event["frame"]])
        else:
            mt.equal(stack.pop(), frames[event["frame"]], "what is closed")
    mt.equal((stack, at, sum(stacks.values())), ([], profile["endValue"], profile["endValue"]), "end of %s" % profile["name"])
    return stacks


def as_folded(profiles):
    """As folded() has it."""
    stacks = collections.Counter()
    for name, _, found in profiles:
        for frames, size in found.items():
            stacks[(name, *(re.sub(r"[^\x20-\x7e]", "?", f[0]).replace(";", ":") for f in frames))] += size
    return stacks


WAYS = [(), ("--at", "end"), ("--at", "0.01"), ("--from", "0.001", "--to", "0.02"), ("--device", "host"), ("--no-python",), ("--all-frames",)]


@mt.variants(*WAYS)
def case_sums_are_those_of_peak(*words):
    for trace in (busy(), device()):
        mt.equal(dict(folded(trace, *words)[1]), moments(trace, *words), "bytes of each kind of memory %s" % (words,))


@mt.variants(("--at", "oom"), ("--device", "cuda:0"))
def case_sums_of_a_device(*words):
    sums = folded(device(), *words)[1]
    mt.equal(dict(sums), moments(device(), *words))
    mt.check(any(kind.endswith(" pool") for kind in sums), sums)


@mt.variants("devices", "gpu", "killed", "system", "tree")
def case_sums_of_golden_traces(name):
    trace = golden_traces.unpack(name, mt.scratch("golden"))
    pids = [p["pid"] for p in json.loads(run("report", "--json", trace).out)["processes"]]
    for words in [()] + [("--process", str(pid)) for pid in pids]:
        mt.equal(dict(folded(trace, *words)[1]), moments(trace, *words), "bytes of each kind of memory %s" % (words,))


def case_known_stacks():
    """Outermost first, and what is left out of the picture is not in the file."""
    stacks, sums = folded(busy(), "--all")
    through = {frames: size for frames, size in stacks.items() if "busy" in frames}
    mt.check(sum(through.values()) >= 0.99 * sums["heap"], "%d of %d bytes are busy()'s" % (sum(through.values()), sums["heap"]))
    for frames in through:
        names = [name for name in frames if name in ("main", "busy", "deep")]
        mt.equal(names, ["main", "busy"] + ["deep"] * (len(names) - 2), "order of %s" % (frames,))
        mt.equal((frames[0], frames[-1]), ("heap", "deep"), "ends of %s" % (frames,))


PROGRAM = """
def keep(size):
    kept.append(bytearray(size))
kept = []
name = "a;b\\n7 8\\x1b[2J"
keep.__code__ = keep.__code__.replace(co_name=name, **({"co_qualname": name} if hasattr(keep.__code__, "co_qualname") else {}))
def outer():
    keep(300000)
outer()
"""


def case_names_mean_nothing():
    """Neither ';' nor a line's end in a name parts anything."""
    path = os.path.join(mt.scratch("program"), "names.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    trace = mt.shimmed([mt.python(), path]).trace.settle().path
    stacks, sums = folded(trace)
    mt.equal(dict(sums), moments(trace))
    found = [frames for frames in stacks if any(name.startswith("a:b") for name in frames)]
    mt.check(found, "no such name: %s" % [frames[-3:] for frames in stacks][:20])
    mt.check(all("a:b?7 8?[2J" in frames for frames in found), found)
    mt.check(all("outer" in frames for frames in found), found)


@mt.variants((), ("--at", "end"), ("--from", "0.001", "--to", "0.02"), ("--device", "host"), ("--no-python",))
def case_speedscope_reads_the_same(*words):
    """One profile a kind of memory, in bytes, with the stacks of folded and the sums of peak."""
    for trace in (busy(), device()):
        profiles = speedscope(trace, *words)
        mt.equal({name: sum(stacks.values()) for name, _, stacks in profiles}, moments(trace, *words), "bytes of each profile %s" % (words,))
        mt.equal({unit for _, unit, _ in profiles} - {"bytes"}, set(), "units")
        mt.equal(as_folded(profiles), folded(trace, *words)[0], "stacks %s" % (words,))


@mt.variants((), ("--at", "end"))
def case_speedscope_reads_folded(*words):
    """As one profile, of which each line is a stack with its bytes."""
    for trace in (busy(), device()):
        page, _ = opened("folded", trace, *words)
        profile, = page["profiles"]
        mt.equal(weights(profile, [without_place(f["name"]) for f in page["shared"]["frames"]]), folded(trace, *words)[0], "stacks %s" % (words,))


@mt.variants("devices", "gpu", "tree")
def case_speedscope_reads_golden_traces(name):
    trace = golden_traces.unpack(name, mt.scratch("golden"))
    profiles = speedscope(trace)
    mt.equal({kind: sum(stacks.values()) for kind, _, stacks in profiles}, moments(trace))
    mt.equal(as_folded(profiles), folded(trace)[0], "stacks")


def case_speedscope_shows_places():
    """The line of a frame calls the next one."""
    with open(os.path.join(mt.TOP, "tests/programs/busy.c"), encoding="utf-8") as file:
        source = file.readlines()
    seen = set()
    for frames in speedscope(busy(), "--device", "host")[0][2]:
        for (caller, file, line), (name, _, _) in zip(frames, frames[1:]):
            if caller in ("main", "busy", "deep"):
                mt.equal(os.path.basename(file), "busy.c")
                mt.check(name + "(" in source[line - 1], "%s:%s of %s() calls %s(): %r" % (file, line, caller, name, source[line - 1]))
                seen.add((caller, name))
    mt.check({("main", "busy"), ("busy", "deep"), ("deep", "deep")} <= seen, seen)


def case_speedscope_has_names_as_they_are():
    path = os.path.join(mt.scratch("program"), "names.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    trace = mt.shimmed([mt.python(), path]).trace.settle().path
    profiles = speedscope(trace)
    found = [frames for _, _, stacks in profiles for frames in stacks if any(f[0] == "a;b\n7 8\x1b[2J" for f in frames)]
    mt.check(found and all(any(f == ("outer", path, 8) for f in frames) for frames in found), found)
    mt.equal({kind: sum(stacks.values()) for kind, _, stacks in profiles}, moments(trace))


def case_speedscope_without_stacks():
    trace = mt.shimmed([mt.program("busy"), "2000", "100", "300"], env={"MEMTRACE_STACKS": "none"}).trace.settle().path
    profiles = speedscope(trace)
    mt.equal({kind: dict(stacks) for kind, _, stacks in profiles}, {kind: {(("(no stack)", None, None),): size} for kind, size in moments(trace).items()})


def case_no_stacks():
    trace = mt.shimmed([mt.program("busy"), "2000", "100", "300"], env={"MEMTRACE_STACKS": "none"}).trace.settle().path
    stacks, sums = folded(trace)
    mt.equal(set(stacks), {(kind, "(no stack)") for kind in sums})
    mt.equal(dict(sums), moments(trace))


def many():
    """A Python program with 800 lines that keep as much each, and one that keeps half of all."""
    path = os.path.join(mt.scratch("program"), "many.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write("import json, decimal\nkeep = [bytearray(3 << 20)]\n" + "".join("def f%d(): keep.append(bytearray(3000))\nf%d()\n" % (i, i) for i in range(800)))
    return mt.shimmed([mt.python(), path]).trace.settle().path


def case_small_stacks_are_together():
    """What is below 0.1 % of its kind is one stack, and so are imported modules; each byte is there. --all tells each, -n the largest."""
    trace = many()
    heap = {words: {frames: size for frames, size in folded(trace, "--device", "host", *words)[0].items()} for words in ((), ("--all",), ("-n", "3"), ("-n", "all"))}
    sums = {words: sum(found.values()) for words, found in heap.items()}
    mt.equal(set(sums.values()), {moments(trace)["heap"]}, "bytes")
    most, names = 0.001 * sums[()], {("heap", "(smaller stacks)"), ("heap", "imported modules")}
    mt.check(names < set(heap[()]), "together: %s" % [f for f in heap[()] if len(f) == 2])
    labels = [frames for frames in heap[()] if len(frames) == 2]
    mt.equal([(frames, size) for frames, size in heap[()].items() if size < most and frames not in labels], [], "told though it is small")
    mt.check(len(heap["--all",]) > 800 and not names & set(heap["--all",]) and len(heap[()]) < 100, "%d stacks, of all %d" % (len(heap[()]), len(heap["--all",])))
    mt.equal((heap["-n", "all"], len([f for f in heap["-n", "3"] if f not in labels])), (heap["--all",], 3))


def case_speedscope_opens_on_what_failed():
    _, exported = opened("speedscope", device())
    page = json.loads(exported)
    mt.equal(page["profiles"][page["activeProfileIndex"]]["name"], "cuda:0 pool")


def case_format_is_asked_for():
    for words, text in (((), "--format: which one? There is folded, speedscope"), (("--format", "fodled"), "did you mean 'folded'?"),
                        (("--format", "xyz"), "unknown value 'xyz'; there is folded, speedscope"), (("--format", "folded", "--json"), "--json is no option of export")):
        done = run("export", *words, busy())
        mt.equal((done.status, done.out), (2, ""), "%r" % done)
        mt.check(text in done.err, done.err)


mt.main()
