#!/usr/bin/env python3
"""The first screen of the incidents and of their healthy twins: each number on it is compared with what the program, its driver, its
allocator or the kernel say of the same thing, and one that nobody compares is an error (tests/lib/audit.py)."""
# timeout: 600
import functools
import json
import os
import re
import shutil
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import audit
import audit_host
import fold
import goldens
import gpu
import mt
import places
import screen
from claims import within
from failures import FACTS, certain, compare_ooms, compare_refusals, device, is_explained, ruled_out

STRETCHES = 128  # of a run's steps: the blocks of a site are known at so many low points at most


@functools.lru_cache(None)
def run(name, *arguments):
    """One run of a scenario for all that is asked of it."""
    return audit.scenario(name, *arguments, timeout=150)


def line_of(scenario, text):
    return str(screen.line_of(os.path.join(gpu.SCENARIOS, scenario + ".py"), text))


def exact(done):
    """The same in the JSON, to the byte."""
    audit_host.exact(done)
    for oom in compare_ooms(done, [key for key in FACTS if all(facts[key] is not None for facts in done.account["ooms"])]):
        compare_refusals(done, oom)
        is_explained(oom["ledger"])


def well(done):
    """The screen of a run without a failure or a cause."""
    mt.equal((done.status, done.trace.report["status"], certain(done)), (0, "ok", []), "status, the report's and its verdicts")
    seen = audit.Audit(done)
    mt.equal((seen.why()[0], seen.has("OUT OF MEMORY"), seen.has("WHAT TO DO$")), ([], False, False), "causes, a failure, advice")
    return seen


def never(done, *sick):
    kinds = {v["kind"] for v in done.trace.report["verdicts"]}
    mt.check(not kinds & set(sick), "verdicts of the sick twin: %s" % kinds)


# ---- incident 1


def case_incident1():
    """The model is there three times on the device; a fourth copy is the file's, on the host."""
    done = run("incident1")
    goldens.compare("incident1", done.trace)
    seen, account, said = audit.Audit(done), done.account, done.account["ooms"][-1]
    mt.equal(certain(done, "cuda:0"), ["copies"])
    copies = [c for c in done.trace.report["copies"] if c["device"] == "cuda:0"]
    copy, context = account["t4"] - account["t3"], seen.driver.context[seen.driver.log[-1]["pid"]]
    mt.between(account["copy_bytes"], copy, 1.01 * account["copy_bytes"], "a copy, as the pool rounds it")
    mt.equal(sorted(o["bytes"] for o in copies[0]["owners"]), [copy, copy, account["t2"] - account["begin"]], "the copies, one with adapters")
    by_line = {p["name"].split()[-1]: p["kept_bytes"]["cuda:0 pool"] for p in done.trace.report["phases"] if "cuda:0 pool" in p["kept_bytes"]}
    mt.equal({n: by_line.get(n) for n in ("collect_final_params", "KVCache.__init__", "train")},
             {"collect_final_params": account["t3"] - account["trained"], "KVCache.__init__": account["t5"] - account["t4"],
              "train": account["trained"] - account["t2"]}, "what lines of the main script keep")
    made = {"incident1.py:" + line_of("incident1", text) for text in ("model = build_model", "= collect_final_params(", "inference = build_model")}
    for line, row in seen.each(r"^  1 copies +(FIGURE)   high   (\d+) sets of (\d+) blocks of the same sizes .* (FIGURE) each: (.*)$"):
        for group, want in ((1, 2 * copy), (2, len(made)), (3, account["copy_blocks"]), (4, copy)):
            seen.take(line, row, group, want, "copies")
        mt.equal(set(re.findall(r"incident1\.py:\d+", row[5])), made, "lines that made them")
    trained = "incident1.py:" + line_of("incident1", "optimizer.step()")
    seen.claim(r"^  no leak +(FIGURE) came at once \((PLACE) train\) and stayed$", said["kinds"]["optimizer"], trained, what="no leak")
    seen.claim(r"^  no phase peak +(PLACE) Model.forward needed no more than (PLACE) \((FIGURE)\)$",
               lambda place: places.source(place) == "inference(words, answer=True)",
               "incident1.py:" + line_of("incident1", "words = torch.zeros("), account["t5"] + 512 * 16, what="no phase peak")
    mt.equal(account["trained_gave"], 0, "what training gave back to the driver")
    peaks = {"incident1.py:" + line_of("incident1", text): size for text, size in (
        ("    model = build_model", account["t2"]), ("= train(model)", account["trained_peak"]), ("= collect_final_params(", account["t3"]),
        ("inference = build_model", account["t4"]), ("cache = KVCache()", account["t5"]))}
    peaks["incident1.py:%d" % (int(line_of("incident1", "with failing(")) + 1)] = said["peak_allocated_bytes"]
    seen.by_phase("cuda:0", peaks, freed=account["trained_peak"] - account["trained"])
    seen.claim(r"in the pool: little beside the copies \((FIGURE)\)$", 2 * copy, what="the copies, where fragmentation is ruled out")
    seen.claim(r"gives back (FIGURE)$", 2 * copy, what="what it gives back", section="WHAT TO DO")
    seen.alive(said["kinds"])
    seen.by_line({"incident1.py:" + line_of("incident1", text): of for text, of in (
        ("nn.Parameter(torch.empty(shape", (2 * copy, 2 * account["copy_blocks"])), ("weight.detach().clone()", (copy, account["copy_blocks"])),
        ("self.pages = ", (account["cache_bytes"], account["cache_blocks"])))})
    seen.largest(said["largest_blocks"])
    seen.finish()
    exact(done)


def case_incident1_healthy():
    done = run("incident1", "--healthy")
    seen = well(done)
    never(done, "copies")
    seen.alive_well(done.account["kinds"])
    seen.finish()
    exact(done)


# ---- incident 2


def case_incident2():
    done = run("incident2")
    goldens.compare("incident2", done.trace)
    seen, account, said, first = audit.Audit(done), done.account, done.account["ooms"][-1], done.account["first"]
    mt.equal(certain(done, "cuda:0"), ["other_process", "phase_peak"])
    ruled_out(done, "fragmentation", "leak")
    neighbours, total = {n["pid"]: n["bytes"] for n in account["neighbours"]}, said["total_bytes"]
    both, largest = sum(neighbours.values()), max(neighbours, key=neighbours.get)
    seen.claim(r"^  1 other process +(FIGURE)   high   (\d+) neighbours hold ([\d.]+) % of cuda:0, (\d+) most \((FIGURE)\); without either one of them it fits$",
               both, len(neighbours), 100 * both / total, largest, max(neighbours.values()), what="the neighbours")
    mt.check(all(size > said["tried_bytes"] - said["free_bytes"] for size in neighbours.values()), "without either it fits")
    phases = [p["peaks"]["cuda:0 pool"] for p in done.trace.report["phases"] if p["pid"] == first["pid"]
              and p["name"].split()[-1] in ("train", "evaluate")]
    mt.equal(phases[1:], [p["allocated"] for p in first["peaks"]], "peaks of its phases, after the warm-up")
    peaks, evaluate = sorted(p["allocated"] for p in first["peaks"]), "incident2.py:" + line_of("incident2", "evaluated = evaluate(")
    seen.claim(r"^  2 phase peak +(FIGURE)   medium   (PLACE) evaluate of neighbour (\d+) takes (FIGURE) \(else at most (FIGURE)\)", peaks[-1] - peaks[-2],
               evaluate, first["pid"], peaks[-1], peaks[-2], what="the neighbour's phase")
    mt.check(2 * peaks[-1] > total, "two runs do not fit beside each other then")
    seen.claim(r"^  no fragmentation +unused in our pool: (FIGURE) in all, largest hole (FIGURE); with the (FIGURE) free that is less than (FIGURE)$",
               said["reserved_bytes"] - said["allocated_bytes"], said["largest_hole_bytes"], said["free_bytes"], said["tried_bytes"], what="no fragmentation")
    seen.claim(r"^  1 keep fewer processes on cuda:0: (\d+) were on it$", len(neighbours) + 1, what="advice", section="WHAT TO DO")
    seen.claim(r"^  2 two runs must not be in (PLACE) evaluate together", evaluate, what="advice", section="WHAT TO DO")
    kinds = {name: said["kinds"][name] + first["kinds"][name] for name in said["kinds"]}
    seen.alive(kinds, outside=sum(account["libraries"].values()), either=2 * account["batch_bytes"])
    seen.largest(sorted(said["largest_blocks"] + first["largest_blocks"], reverse=True)[:5])
    seen.finish()
    exact(done)


def case_incident2_healthy():
    done = run("incident2", "--healthy")
    seen = well(done)
    never(done, "other_process", "phase_peak")
    seen.alive_well({name: done.account["kinds"][name] + done.account["first"]["kinds"][name] for name in done.account["kinds"]},
                    outside=sum(done.account["libraries"].values()), optimizer_later=done.account["kinds"]["optimizer"])
    seen.finish()
    exact(done)


# ---- incident 3


def grown(seen):
    """GROWTH and WHAT GROWS: the program's own high and low points, what it kept and how long its steps took."""
    account, table = seen.done.account, seen.growth()
    count, block = table["count"], account["block_bytes"]
    kept = {int(n): k for n, k in account["kept"].items()}
    mt.equal((table["pid"], table["kind"]), (seen.driver.log[-1]["pid"], "accelerating"))
    lasted = sorted(account["lasted_ns"])
    shares = [lasted[len(lasted) * part // 10] / 1e9 for part in (1, 9)]  # the median of somewhat different stretches of the same loop
    for line, head in seen.each(r"^GROWTH  .* of (\d+) python; ([\d,]+) steps \(([\d.]+) (m?s) each\)"):
        scale = 1e3 if head[4] == "ms" else 1
        for group, want in ((1, table["pid"]), (2, (account["failed_step"] - 1, account["failed_step"])), (3, (shares[0] * scale, shares[1] * scale))):
            seen.take(line, head, group, want, "steps")
    columns = [(i + 1) * count // 10 for i in range(10)]
    rows = {name: seen.each(r"^ +%s((?: +[\d.]+)+)$" % name, "GROWTH")[0] for name in ("step", "GiB high", "low")}
    for name, (line, row) in rows.items():
        mt.equal(len(row[1].split()), len(columns), "columns of %s" % name)
        for number, found in zip(columns, re.finditer(r"[\d.]+", row[1])):
            lows = [account["lows"][str(n)] for n in (number, number + 1) if str(n) in account["lows"]]  # at its begin or its end
            low, high = {"step": (number, number), "low": (min(lows), max(lows)), "GiB high": (account["highs"][str(number)],) * 2}[name]
            within(found[0] + ("" if name == "step" else " GiB"), low, high, "%s of step %d" % (name, number))
        line.claimed.append(row.span(1))
    rate = (kept[count] - kept[count - 4]) / 4 * block  # it becomes more every fourth step
    error = table["error"].value
    seen.claim(r"^  shape +accelerating: (FIGURE)/step now \((95) %: \+/- (FIGURE)\), \+(FIGURE)/step each (100)$", (rate - error, rate + error), "95",
               (1, 2 * block), (25 * block - 0.02 * rate, 25 * block + 0.02 * rate), "100", what="the shape")
    half = (count + 1) // 2
    seen.claim(r"^  forecast  half-way \(step (\d+)\): fails at (\d+) \((95) %: (\d+) to (\d+)\); it failed at step (\d+)$", (half - 1, half + 1),
               lambda text: abs(int(text) - account["failed_step"]) <= 0.1 * account["failed_step"], "95",
               lambda text: int(text) <= account["failed_step"], lambda text: int(text) >= account["failed_step"], account["failed_step"],
               what="the forecast")
    stretch = 1
    while count > STRETCHES * stretch:
        stretch *= 2
    begin = (count - 1) // stretch * stretch  # the low point of the last stretch
    seen.claim(r"^WHAT GROWS \(since step (\d+)\)$", (0, stretch), what="since when")
    total = kept[count] * block  # the failing step is at its low point when it begins; nothing was kept at first
    a_step = kept[begin] / begin
    seen.claim(r"^ +(\d+) %  main.save_activation  PLACE +(FIGURE)  ([\d.]+) blocks more a step, (FIGURE) each$", 100, total,
               (0.999 * a_step, 1.001 * a_step), block, what="what grows")
    return total, rate, block


def case_incident3():
    done = run("incident3")
    goldens.compare("incident3", done.trace)
    seen, account = audit.Audit(done), done.account
    mt.equal((certain(done), [kind for kind, *_ in seen.why()[0]]), (["leak"], ["leak"]), "verdicts")
    ruled_out(done, "capacity", "fragmentation", "other_process")
    total, rate, block = grown(seen)
    keeps = "incident3.py:" + line_of("incident3", "captured.append(out.float())")
    seen.claim(r"^  1 leak +(FIGURE)   high   (PLACE) main.save_activation keeps more: (FIGURE) since the start, (FIGURE) more each step, accelerating$",
               total, keeps, total, (rate - block, rate + block), what="the cause")
    seen.claim(r"what grew \((FIGURE)\) would", total, what="what grew, where fragmentation is ruled out")
    seen.alive(account["kinds"], either=account["batch_bytes"])
    seen.largest(account["ooms"][-1]["largest_blocks"])
    seen.claim(r"^  1 (PLACE) main.save_activation keeps what it makes", keeps, what="advice", section="WHAT TO DO")
    mt.equal(len(seen.each("save_activation", "WHAT TO DO")), 1, "lines of advice about one site")
    seen.finish()
    exact(done)


def case_incident3_healthy():
    done = run("incident3", "--healthy", "200")
    seen = well(done)
    never(done, "leak")
    mt.check(not seen.has("GROWTH") and not seen.has("WHAT GROWS"), "something grows: %s" % seen.text)
    seen.alive_well(done.account["kinds"])
    seen.finish()
    exact(done)


@functools.lru_cache(None)
def steps_of_incident3(*options):
    return run("incident3").trace.json("report", *options)["steps"]


def failed_step():
    return run("incident3").account["failed_step"]


def case_incident3_every_step_is_found():
    found = steps_of_incident3()
    mt.equal((found["source"], found["micro_steps"]), ("inferred", 1))
    mt.between(failed_step() - 1, found["count"], failed_step(), "steps")


def case_incident3_high_points_are_pytorchs():
    """max_memory_allocated() of a step, as the program asked now and then."""
    high = {s["number"]: s["high_bytes"]["cuda:0 pool"] for s in steps_of_incident3()["list"] if s["count"] == 1}
    asked = {int(n): b for n, b in run("incident3").account["highs"].items() if int(n) % 500}
    wrong = {n: (high[n], b) for n, b in asked.items() if n in high and high[n] != b}
    mt.equal(wrong, {})
    mt.check(len(set(asked) & set(high)) >= 3, "compared %s with %s" % (sorted(asked), len(high)))


def case_incident3_end_is_forecast_from_half_the_run():
    growth = steps_of_incident3("--to", "step:%d" % (failed_step() // 2))["growth"]["cuda:0 pool"]
    mt.equal(growth["kind"], "accelerating")
    runs_out = growth["runs_out_at_step"]
    mt.between(0.9 * failed_step(), runs_out["at"], 1.1 * failed_step(), "forecast of step %d" % failed_step())
    mt.equal(runs_out["level"], 0.95)
    mt.between(runs_out["low"], failed_step(), runs_out["high"], "step that failed, in the interval")


def case_incident3_screen_knows_no_more_than_half_the_run():
    """What it says of the first half after the end is what it says when it reads no further."""
    text = run("incident3").trace.tool("report").out
    said = re.search(r"half-way \(step (\d+)\): fails at (\d+) \(95 %: (\d+) to (\d+)\)", text)
    mt.check(said, "no forecast: %s" % text)
    half, *figures = map(int, said.groups())
    runs_out = steps_of_incident3("--to", "step:%d" % half)["growth"]["cuda:0 pool"]["runs_out_at_step"]
    for name, figure in zip(("at", "low", "high"), figures):
        mt.between(0.99 * figure, runs_out[name], 1.01 * figure, name)


def case_incident3_site_is_the_hook():
    sites = run("incident3").trace.json("leaks", "--device", "cuda:0", "--filter", "save_activation")["sites"]
    of_pool = [s for s in sites if s["mean_block_bytes"] == run("incident3").account["block_bytes"]]  # the others are its segments
    mt.equal([(s["kind"], s["how"], s["certainty"]) for s in of_pool], [("accelerating", "more blocks", "high")])


@functools.lru_cache(None)
def folded_incident3():
    """The same run as it is after the disk limit came near again and again."""
    path = os.path.join(mt.scratch("folded"), "t")
    shutil.copytree(run("incident3").trace.path, path)
    trace = mt.Trace(path)
    for _ in range(5):
        fold.fold(trace)
    return trace


def untimed(figures):
    """What folding leaves as it is to the byte; times are rounded."""
    return {k: v for k, v in figures.items() if k.endswith("_bytes") or k in ("retries", "outcome", "source", "verdict", "allocations", "frees")}


def case_incident3_folded_is_the_same_leak():
    whole, now = run("incident3").trace.report, folded_incident3().report
    mt.check(now["folded"]["blocks"] > 10**6, "too little was folded: %s" % now["folded"])
    mt.check(now["complete"], "folding makes it incomplete")
    mt.equal([(v["kind"], v["bytes"]) for v in now["verdicts"]], [(v["kind"], v["bytes"]) for v in whole["verdicts"]])
    for got, want in zip(now["devices"], whole["devices"]):
        mt.equal([untimed(o) for o in got["ooms"]], [untimed(o) for o in want["ooms"]])
        mt.equal((untimed(got), untimed(got["pool"])), (untimed(want), untimed(want["pool"])))
    mt.between(whole["steps"]["count"] - 2, now["steps"]["count"], whole["steps"]["count"], "steps")


def case_incident3_folded_fails_at_the_same_step():
    """The forecast from the first half, which was folded, and the high points of its steps as PyTorch saw them."""
    half = "step:%d" % (failed_step() // 2)
    now = folded_incident3()
    was, growth = (t.json("report", "--to", half)["steps"]["growth"]["cuda:0 pool"] for t in (run("incident3").trace, now))
    mt.equal((growth["kind"], growth["certainty"]), (was["kind"], was["certainty"]))
    mt.between(was["runs_out_at_step"]["low"], growth["runs_out_at_step"]["at"], was["runs_out_at_step"]["high"], "forecast")
    high = {s["number"]: s["high_bytes"]["cuda:0 pool"] for s in now.json("report")["steps"]["list"] if s["count"] == 1}
    asked = {int(n): b for n, b in run("incident3").account["highs"].items() if int(n) % 500}
    found = [n for n in asked if asked[n] in (high.get(n), high.get(n - 1), high.get(n - 2))]  # the first ones may be one
    mt.check(len(found) >= 3 and len(found) >= len(asked) - 1, "high points of %s, not all of %s" % (found, asked))


# ---- incident 5


@mt.variants(30, 1)
def case_incident5(layers):
    """Both fit: nothing is a problem, and each GPU's figures are PyTorch's and the driver's."""
    done = run("incident5", layers)
    if layers == 30:
        goldens.compare("incident5", done.trace)
    seen, account = well(done), done.account
    steps = done.trace.report["steps"] or {"growth": {}}  # what it does when all is loaded may be in a loop
    growing = [name for name, growth in steps["growth"].items() if name.startswith("cuda") and growth["kind"] != "none"]
    mt.equal((growing, seen.has("GROWTH  cuda")), ([], False), "what only loads grows in steps")
    mt.equal(sorted(seen.devices()), ["cuda:%d" % n for n in range(len(account["pools"]))], "devices")
    for number, facts in enumerate(account["pools"]):
        one = device(done, number)
        mt.equal((one["uuid"], one["pool"]["peak_allocated_bytes"], one["pool"]["peak_reserved_bytes"]),
                 ("GPU-" + account["uuids"][number], facts["peak_allocated_bytes"], facts["peak_reserved_bytes"]), "cuda:%d" % number)
    # what infers is a block of its own, which may be called an activation
    seen.alive_well({"parameters": account["pools"][0]["allocated_bytes"]})
    seen.finish()
    exact(done)


def case_incident5_diff():
    """Of what there was on all devices and on each, a part is left."""
    before, after = run("incident5", 30), run("incident5", 1)
    done = mt.execute([mt.MEMTRACE, "diff", "--json", before.trace.path, after.trace.path])
    mt.equal(done.status, 0, "status")
    rows = {(r["name"], r["figure"]): r for r in json.loads(done.out)["devices"]}
    for side, of in (("before_bytes", before), ("after_bytes", after)):
        for number, facts in enumerate(of.account["pools"]):
            mt.equal(rows["cuda:%d" % number, "pool peak"][side], facts["peak_allocated_bytes"], "cuda:%d %s" % (number, side))
        mt.equal(rows["all devices", "pool peak"][side], sum(f["peak_allocated_bytes"] for f in of.account["pools"]), side)


mt.main()
