#!/usr/bin/env python3
"""memtrace export --format perfetto, as Perfetto's own trace_processor reads it: no error, and the figures are those of --json."""
import collections
import functools
import json
import os
import re
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../battery"))
import cases
import consumers
import golden_traces
import mt

ERRORS = "select name, value from stats where severity in ('error', 'data_loss') and value > 0"
COUNTERS = ("select coalesce(p.pid, 0), p.name, t.name, max(c.value), t.unit from counter c join process_counter_track t on c.track_id = t.id "
            "join process p using (upid) group by t.id")
ALL = ("select t.name, max(c.value) from counter c join counter_track t on c.track_id = t.id where t.id not in (select id from process_counter_track) "
       "group by t.id")
HEAPS = "select p.pid, h.heap_name, sum(h.size), sum(h.count), h.ts from heap_profile_allocation h join process p using (upid) group by 1, 2, 5"
SLICES = "select name, dur from slice where dur > 0"
INSTANTS = "select name from slice where dur = 0"
STACKS = ("select h.size, f.name, c.depth from heap_profile_allocation h join stack_profile_callsite c on h.callsite_id = c.id "
          "join stack_profile_frame f on c.frame_id = f.id where h.heap_name = 'heap' order by h.size desc limit 5")
OUTERMOST = "select distinct f.name from stack_profile_callsite c join stack_profile_frame f on c.frame_id = f.id where c.depth = 0"


def page(*words):
    return json.loads(mt.execute([mt.MEMTRACE, *words]).out)


@functools.lru_cache(None)
def busy():
    return mt.shimmed([mt.program("busy"), "20000", "1000", "300"]).trace.settle().path


@functools.lru_cache(None)
def battery():
    path = os.path.join(mt.scratch("battery"), "t")
    cases.make(path, "other_process_traced", 301, True)
    return path


@functools.lru_cache(None)
def golden(name):
    return golden_traces.unpack(name, mt.scratch("golden"))


TRACES = {"busy": busy, "battery": battery, "gpu": lambda: golden("gpu")}


@functools.lru_cache(None)
def asked(name, *words):
    consumers.path("trace_processor")
    out = os.path.join(mt.scratch("perfetto"), "out")
    done = mt.execute([mt.MEMTRACE, "export", "--format", "perfetto", "-o", out, *words, TRACES[name]()])
    mt.equal((done.status, done.out, done.err), (0, "", ""))
    keys = "errors counters all heaps slices instants stacks outermost".split()
    return dict(zip(keys, consumers.trace_processor(out, ERRORS, COUNTERS, ALL, HEAPS, SLICES, INSTANTS, STACKS, OUTERMOST)))


def moments(trace, *words):
    """{heap: [bytes, blocks]}"""
    peak = page("peak", "--json", *words, trace)
    found = {"heap": peak.get("host"), "map": peak.get("map"), "pinned": peak.get("pinned")}
    for d in peak["devices"]:
        found.update({"%s %s" % (d["name"], kind): d.get(kind) for kind in ("pool", "device")})
    return {kind: [m["bytes"], m["blocks"]] for kind, m in found.items() if m and m["bytes"]}


def peaks(heaps):
    """The first snapshot of each kind of memory."""
    return {heap: min(ns for _, h, *_, ns in heaps if h == heap) for _, heap, *_ in heaps}


def alive(heaps, until):
    """{heap: [bytes, blocks]} at a moment: rows are what came and went since the snapshot before."""
    sums = collections.defaultdict(lambda: [0, 0])
    for _, heap, size, count, ns in heaps:
        if ns <= until[heap]:
            sums[heap] = [sums[heap][0] + size, sums[heap][1] + count]
    return {heap: s for heap, s in sums.items() if s[0]}


@mt.variants(*[(name,) for name in TRACES], ("battery", "--at", "oom"))
def case_heap_profiles_are_those_of_peak(name, *words):
    got = asked(name, *words)
    mt.equal(got["errors"], [], "what trace_processor complains of")
    mt.equal(alive(got["heaps"], peaks(got["heaps"])), moments(TRACES[name](), *words))
    if not words:
        mt.equal(alive(got["heaps"], collections.defaultdict(lambda: 1 << 63)), moments(TRACES[name](), "--at", "end"), "at the end")


def case_each_process_has_its_own():
    pids = {p["pid"] for p in page("report", "--json", battery())["processes"]}
    heaps = asked("battery")["heaps"]
    peak = peaks(heaps)
    pools = {pid: size for pid, heap, size, _, ns in heaps if heap.endswith(" pool") and ns == peak[heap]}
    mt.equal((set(pools) <= pids, len(pools)), (True, 2), pools)
    for pid, size in pools.items():
        own = asked("battery", "--process", str(pid))
        mt.equal({p for p, *_ in own["heaps"]}, {pid}, "processes of --process")
        mt.check(size <= max(s for p, heap, s, *_ in own["heaps"] if heap.endswith(" pool")), "more at the common peak than at its own")


@mt.variants(*TRACES)
def case_counters_are_the_timeline(name):
    wanted = collections.Counter()
    for s in page("timeline", "--json", TRACES[name]())["series"]:
        high = max([p["high_bytes"] for p in s["points"]], default=0)
        if high:
            wanted[(s["pid"] or 0, "%s %s" % (s["device"], s["kind"]) if s["device"] else s["kind"], high)] += 1
    got = asked(name)
    found = collections.Counter((pid, what, int(high)) for pid, _, what, high, _ in got["counters"])
    found.update((0, what, int(high)) for what, high in got["all"])
    mt.equal(found, wanted)
    mt.equal({unit for *_, unit in got["counters"]} <= {"bytes", "sizeBytes", None}, True, got["counters"][:2])


@mt.variants(*TRACES)
def case_phases_steps_and_failures(name):
    report, got = page("report", "--json", TRACES[name]()), asked(name)
    names = collections.Counter(n for n, _ in got["slices"])
    for phase in report["phases"]:
        if phase["end_s"] > phase["start_s"]:
            mt.check(names[phase["name"]], "no slice %s in %s" % (phase["name"], names))
    if report["steps"]:
        mt.check(any(n.startswith("step") for n in names), names)
    wanted = sum(len(d["ooms"]) for d in report["devices"])
    mt.equal(len([i for i in got["instants"] if i[0].startswith("out of memory on ")]), wanted, "failures")


def case_processes_are_named_with_their_rank():
    consumers.path("trace_processor")
    trace, out = os.path.join(mt.scratch("ranks"), "t"), os.path.join(mt.scratch("perfetto"), "out")
    script = "".join("RANK=%d %s 400 200 10 & " % (rank, mt.program("busy")) for rank in (0, 12))
    mt.equal(mt.execute(["sh", "-c", script + "wait"], env=mt.shim_env(trace)).status, 0)
    mt.Trace(trace).settle()
    mt.equal(mt.execute([mt.MEMTRACE, "export", "--format", "perfetto", "-o", out, trace]).status, 0)
    names = dict(consumers.trace_processor(out, "select pid, name from process where pid > 0")[0])
    ranks = {p["pid"]: p["rank"] for p in page("report", "--json", trace)["processes"] if p["rank"] is not None}
    mt.equal(sorted(ranks.values()), [0, 12])
    mt.equal({pid: names.get(pid) for pid in ranks}, {pid: "busy rank %d" % rank for pid, rank in ranks.items()})


def case_known_stacks():
    got = asked("busy", "--all")
    mt.equal({re.sub(r" \(busy\.c:\d+\)$", "", name) for name, in got["outermost"]}, {"main"}, "outermost frames")
    mt.check(all(re.match(r"deep \(busy\.c:\d+\)$", frame) and depth > 2 for _, frame, depth in got["stacks"]), got["stacks"])


mt.main()
