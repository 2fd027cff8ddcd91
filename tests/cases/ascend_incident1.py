#!/usr/bin/env python3
"""Incident 1 (copies at the peak) and its fix on the Ascend stand-in: the trace has what the program says of itself, to the byte."""
import functools
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import ascend
import mt
import screen

MODEL = 29536614400  # Qwen3-14B in 16 bits
REQUEST = 3111649280
SMALL = 1024  # bytes of a block that is too small to be looked at as part of a copy


@functools.lru_cache(None)
def scenario(script):
    return ascend.scenario("incident1/" + script)


@functools.lru_cache(None)
def shown(script):
    run, _ = scenario(script)
    run.trace.settle()
    return screen.Screen(run.trace.tool("report").out)


def live(events):
    """Highest sum of device memory, and what is alive in the end."""
    sizes, now, peak = {}, 0, 0
    for what, _, kind, _, addr, size, _, _ in events:
        if what == "alloc" and kind == "device":
            sizes[addr] = size
            now += size
            peak = max(peak, now)
        elif what == "free":
            now -= sizes.pop(addr)
    return peak, now


def case_it_fails_as_it_did():
    run, account = scenario("main.py")
    mt.check(run.done.status == 1 and "OutOfMemory" in run.done.err, "it did not run out of memory: %s" % run.done)
    run.trace.intact()
    ascend.compare(run)
    mt.equal([p["host_bytes"] + p["device_bytes"] for p in account["phases"]], [MODEL * n for n in (1, 2, 3, 4)], "t1 to t4")
    events = next(iter(run.events().values()))
    failures = [i for i, e in enumerate(events) if e[0] == "fail"]
    mt.equal([events[i][4] for i in failures], [REQUEST], "failed requests")
    before = events[failures[0] - 1]
    mt.equal((before[0], before[4], before[5]), ("info", account["failure"]["free"], account["failure"]["total"]), "free and total")
    mt.equal(live(events)[0], account["device_peak"], "peak of the device")
    host = run.trace.host["peak_bytes"]
    mt.between(2 * MODEL, host, 2 * MODEL + (16 << 20), "peak of the heap: two dictionaries and the interpreter")


def case_the_fix_works():
    run, account = scenario("fixed.py")
    mt.equal((run.done.status, account["failure"]), (0, None), "status, failure")
    run.trace.intact()
    ascend.compare(run)
    mt.equal([p["device_bytes"] for p in account["phases"]][:4], [0, MODEL, MODEL, MODEL], "device memory in t1 to t4")
    events = next(iter(run.events().values()))
    mt.equal(live(events)[0], account["device_peak"], "peak of the device")
    mt.between(MODEL, run.trace.host["peak_bytes"], MODEL + (16 << 20), "peak of the heap: one dictionary at a time")


def case_every_figure_of_the_screen():
    (run, account), seen = scenario("main.py"), shown("main.py")
    said, failure, phase = account["failure"], seen.failure(), {p["name"]: p for p in account["phases"]}
    mt.equal(failure["exact"].value, said["bytes"], "bytes asked for")
    for name, exact in [("asked", said["bytes"]), ("free", said["free"]), ("short", said["bytes"] - said["free"]), ("total", said["total"])]:
        failure[name].shows(exact, name)
    mt.equal(failure["block"], None, "a block of another size")
    model, host = phase["t4"]["device_bytes"] - phase["t3"]["device_bytes"], max(p["host_bytes"] for p in account["phases"])
    _, evidence, figure, _ = seen.verdict("copies")
    figure.shows(model, "what the second copy holds")
    large = [size for size in account["tensor_bytes"] if size >= SMALL]
    count, blocks, each = seen.numbers(evidence, r"(\d+) sets of (\d+) blocks .* (%s) each" % screen.FIGURE)
    mt.equal((count.value, blocks.value), (phase["t4"]["device_bytes"] // model, len(large)), "copies, blocks of each")
    each.shows(model, "a copy")
    pid = failure["pid"]
    seen.compare_ledger({(pid, "allocated"): said["held"], (None, "free"): said["free"], (None, "total"): said["total"],
                         (None, "unexplained"): said["total"] - said["free"] - said["held"]})
    seen.peaks()[pid][1].shows(account["device_peak"], "most")
    every, of = seen.categories()
    every.shows(said["held"], "alive then")
    for name, exact in [("parameters", phase["t4"]["device_bytes"]), ("kv cache", account["cache_bytes"]), ("unknown", account["activations_bytes"])]:
        of[name].shows(exact, name)
    heap, how = seen.processes()[pid]
    heap.shows(host, "the heap's peak: the dictionaries, and the interpreter", more=16 << 20)
    mt.equal(how, "exit %d" % run.done.status, "how it ended")
    seen.host_adds_up(screen.memory_of_machine())
    seen.numbers(seen.text[seen.text.index("\nDO\n"):], r"gives back\s+(%s)" % screen.FIGURE)[0].shows(model, "what it gives back")


def case_the_screen_of_the_fix():
    (run, account), seen = scenario("fixed.py"), shown("fixed.py")
    mt.equal((run.trace.report["status"], run.trace.report["verdicts"]), ("ok", []), "status, verdicts")
    mt.equal((seen.why()[0], seen.has("OUT OF MEMORY"), seen.has("DO$")), ([], False, False), "causes, a failure, advice")
    rows = {name: (pid, figure) for pid, name, figure, _ in seen.ledger()}
    pid = rows["allocated"][0]
    rows["allocated"][1].shows(account["device_peak"], "allocated at the peak")
    seen.peaks()[pid][1].shows(account["device_peak"], "most")
    seen.devices()["npu:0"]["peak"].shows(account["device_peak"], "the device's peak")
    _, of = seen.categories()
    model = next(p["device_bytes"] for p in account["phases"] if p["name"] == "t4")
    for name, exact in [("parameters", model), ("kv cache", account["cache_bytes"]),
                        ("unknown", account["activations_bytes"] + account["head_bytes"])]:
        of[name].shows(exact, name)
    seen.processes()[pid][0].shows(max(p["host_bytes"] for p in account["phases"]), "the heap's peak", more=16 << 20)


def case_smaller_by_a_factor():
    run, account = ascend.scenario("incident1/main.py", SCENARIO_SCALE="16")
    mt.equal((run.done.status, account["failure"]), (0, None), "16 times smaller it fits")
    mt.equal(account["phases"][0]["host_bytes"] // 1000000, MODEL // 16 // 1000000, "megabytes of the dictionary")
    ascend.compare(run)


mt.main()
