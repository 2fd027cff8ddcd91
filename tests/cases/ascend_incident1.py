#!/usr/bin/env python3
"""Incident 1 (copies at the peak) and its fix on the Ascend stand-in: the trace has what the program says of itself, to the byte, and each number
on the first screen is compared with what the program, its driver, its allocator or the kernel say of the same thing (tests/lib/audit.py)."""
import functools
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import ascend
import audit
import audit_host
import gpu
import mt
import places
import screen

MODEL = 29536614400  # Qwen3-14B in 16 bits
REQUEST = 3111649280
SMALL = 1024  # bytes of a block that is too small to be looked at as part of a copy


@functools.lru_cache(None)
def scenario(script):
    return audit.known(lambda env, preload: ascend.scenario("incident1/" + script, preload=preload, MEMTRACE_PAUSED="1", **env), "python " + script)


def line_of(script, text):
    return "%s:%d" % (script, screen.line_of(os.path.join(gpu.SCENARIOS, "incident1", script), text))


def alive(events):
    """[(bytes of device memory, blocks)] after each change."""
    sizes, course = {}, [(0, 0)]
    for what, _, kind, _, addr, size, _, _ in events:
        if what == "alloc" and kind == "device":
            sizes[addr] = size
        elif what == "free":
            sizes.pop(addr)
        course.append((sum(sizes.values()), len(sizes)))
    return course


def phases(done):
    return {p["name"]: p for p in done.account["phases"]}


def case_it_fails_as_it_did():
    done = scenario("main.py")
    (said,), failed = done.account["ooms"], "OutOfMemory" in done.err
    mt.check(done.status == 1 and failed, "it did not run out of memory: %s" % done)
    done.trace.intact()
    ascend.compare(done.run)
    mt.equal([p["host_bytes"] + p["device_bytes"] for p in done.account["phases"]], [MODEL * n for n in (1, 2, 3, 4)], "t1 to t4")
    events = next(iter(done.run.events().values()))
    failures = [i for i, e in enumerate(events) if e[0] == "fail"]
    mt.equal([events[i][4] for i in failures], [REQUEST], "failed requests")
    before = events[failures[0] - 1]
    mt.equal((before[0], before[4], before[5]), ("info", said["free_bytes"], said["total_bytes"]), "free and total")
    mt.equal(max(alive(events))[0], done.account["device_peak"], "peak of the device")
    mt.between(2 * MODEL, done.trace.host["peak_bytes"], 2 * MODEL + (16 << 20), "peak of the heap: two dictionaries and the interpreter")
    audit_host.exact(done)


def case_the_fix_works():
    done = scenario("fixed.py")
    mt.equal((done.status, done.account["ooms"]), (0, []), "status, failures")
    done.trace.intact()
    ascend.compare(done.run)
    mt.equal([p["device_bytes"] for p in done.account["phases"]][:4], [0, MODEL, MODEL, MODEL], "device memory in t1 to t4")
    events = next(iter(done.run.events().values()))
    mt.equal(max(alive(events))[0], done.account["device_peak"], "peak of the device")
    mt.between(MODEL, done.trace.host["peak_bytes"], MODEL + (16 << 20), "peak of the heap: one dictionary at a time")
    audit_host.exact(done)


def for_what(seen, **bytes_of):
    seen.categories_are({name.replace("_", " "): (size, size) for name, size in bytes_of.items()}, 0)


def only_grows(seen, most):
    """What loads is a fact: its bytes, since when in the run, and a rate at which they are made in less time than that takes,
    or how long it took: less than a second."""
    seconds, host = seen.report["duration_s"], max(p["host_bytes"] for p in phases(seen.done).values())
    took = lambda text: float(text) <= min(1, seconds)
    seen.claim(r"^ +grows +(FIGURE)   \w+   more of the heap stays allocated, by (PLACE) [\w.<>]+(?: and (\d+) more sites? at the same pace)?: (FIGURE)"
               r"(?:, (FIGURE) more each second| within ([\d.]+) s), \w+,", (1, host), lambda place: "np." in places.source(place) or "numpy" in places.source(place),
               lambda sites: int(sites) < 10, (1, host), (host / seconds / 10, 1e15), took, what="what only loads on the host", section="GROWS",
               count=(0, 1))
    seen.claim(r"^ +grows +(FIGURE)   \w+   more of npu:0 stays allocated, by (PLACE) Tensor.__init__(?: and (\d+) more sites? at the same pace)?: (FIGURE) since "
               r"(?:the start|second ([\d.]+))(?:, (FIGURE) more each second| within ([\d.]+) s), \w+,", (1, most), lambda place: "aclrtMallocAlign32" in places.source(place),
               lambda sites: int(sites) < 10, (1, most), lambda since: float(since) < seconds, (most / seconds / 10, 1e15), took, what="what only loads", section="GROWS",
               count=(0, 1))


def case_every_figure_of_the_screen():
    done = scenario("main.py")
    seen, account, (said,), phase = audit.Audit(done), done.account, done.account["ooms"], phases(done)
    mt.equal((done.trace.report["status"], [v["kind"] for v in done.trace.report["verdicts"]]), ("problem", ["copies"]), "status, verdicts")
    copy = phase["t4"]["device_bytes"] - phase["t3"]["device_bytes"]
    sets, large = phase["t4"]["device_bytes"] // copy, [size for size in account["tensor_bytes"] if size >= SMALL]
    made = [line_of("main.py", text) for text in ("inference_model = qwen.Model(", "training_model = qwen.Model(")]
    seen.claim(r"^  1 copies +(FIGURE)   high   copies, if one can go: (\d+) sets of (\d+) blocks of the same sizes .* (FIGURE) each: (PLACE) <module>, (PLACE) <module>$",
               (sets - 1) * copy, sets, len(large), copy, *made, what="copies")
    kinds = {"parameters": phase["t4"]["device_bytes"], "kv_cache": account["cache_bytes"], "unknown": account["activations_bytes"]}
    mt.equal(sum(kinds.values()), said["allocated_bytes"], "what is for what")
    seen.claim(r"^  no other process +all of npu:0 but (FIGURE) was ours or free", seen.driver.context[done.log[0]["pid"]], what="no other process")
    # what windows of time have at their low points is somewhere between, and whether it came in jumps depends on how long they took
    makes = lambda place: "aclrtMallocAlign32" in places.source(place)
    seen.claim(r"^  no leak +(FIGURE) came (?:at once|in (\d) jumps) \((PLACE) Tensor.__init__\) and stayed$", (1, said["allocated_bytes"]),
               lambda count: count in "23", makes, what="no leak", count=(0, 1))
    seen.claim(r"^  leak\? +(PLACE) Tensor.__init__ grew by (FIGURE) while ", makes,
               (1, said["allocated_bytes"]), what="no leak", count=(0, 1))
    only_grows(seen, said["allocated_bytes"])
    seen.by_phase("npu:0", {line_of("main.py", text): size for text, size in (
        ("training_model = qwen.Model(", phase["t2"]["device_bytes"]), ("training_model.train(", account["trained_peak"]),
        ("= training_model.to_numpy(", phase["t3"]["device_bytes"]), ("inference_model = qwen.Model(", phase["t4"]["device_bytes"]),
        ("inference_model.generate(", said["allocated_bytes"]))})
    seen.claim(r"gives back (FIGURE)$", (sets - 1) * copy, what="what it gives back", section="WHAT TO DO")
    seen.claim(r"^ALIVE THEN \(npu:0: (FIGURE) at (TIME)\)$", said["allocated_bytes"], seen.ledger_time(), what="what was alive")
    for_what(seen, **kinds)
    seen.largest(said["largest_blocks"])
    seen.finish()


def case_every_figure_of_the_fix():
    done = scenario("fixed.py")
    mt.equal((done.trace.report["status"], done.trace.report["verdicts"]), ("ok", []), "status, verdicts")
    seen, account = audit.Audit(done), done.account
    mt.equal((seen.why()[0], seen.has("OUT OF MEMORY"), seen.has("WHAT TO DO$")), ([], False, False), "causes, a failure, advice")
    growing = [s for s in done.trace.asked("leaks", "-n", "100000", "--by", "site")["sites"] if s["outlook"] in ("leaks", "grows", "backlog")]
    seen.claim(r"^nothing failed: (PLACE) Tensor.__init__ only grew, (FIGURE), and (\d+) more sites? \(memtrace leaks\)$",
               lambda place: "aclrtMallocAlign32" in places.source(place), (1, max(alive(next(iter(done.run.events().values()))))[0]),
               lambda text: int(text) < len(growing), what="what only loads", count=(0, 1))
    for_what(seen, parameters=phases(done)["t4"]["device_bytes"], kv_cache=account["cache_bytes"],
             unknown=account["activations_bytes"] + account["head_bytes"])
    peak, blocks = max(alive(next(iter(done.run.events().values()))))
    only_grows(seen, peak)
    seen.claim(r"^ +(FIGURE) +100.0 %  (\d+) blocks  Tensor.__init__ ", peak, blocks, what="who has it", section="LARGEST OWNERS of npu")
    seen.finish()


def case_smaller_by_a_factor():
    done = ascend.scenario("incident1/main.py", SCENARIO_SCALE="16")
    mt.equal((done.status, done.account["ooms"]), (0, []), "16 times smaller it fits")
    mt.equal(done.account["phases"][0]["host_bytes"] // 1000000, MODEL // 16 // 1000000, "megabytes of the dictionary")
    ascend.compare(done.run)


mt.main()
