#!/usr/bin/env python3
"""The first screen of the incidents and of their healthy twins: each number on it is compared with what the program, its driver, its
allocator or the kernel say of the same thing, and one that nobody compares is an error (tests/lib/audit.py)."""
# timeout: 1200
import json
import os
import re
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import audit
import audit_host
import goldens
import gpu
import mt
import places
import screen

from failures import FACTS, certain, compare_ooms, compare_refusals, device, is_explained, ruled_out


@mt.once
def run(name, *arguments):
    """One run of a scenario for all that is asked of it."""
    return audit.scenario(name, *arguments, timeout=400)


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
    seen.claim(r"^  no leak +(PLACE) half grew by (FIGURE) at first, then stopped", "incident1.py:" + line_of("incident1", "return nn.Parameter(torch.empty(shape, dtype=torch.float16"), 2 * copy,
               what="no leak")
    seen.claim(r"^  no phase peak +(PLACE) Model.forward needed no more than (PLACE) main \((FIGURE)\)$",
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


@mt.long
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
    seen.claim(r"^  1 other process +(FIGURE)   high   (\d+) neighbours hold ([\d.]+) % of cuda:0, (\d+) most \((FIGURE)\); without either one of them it fits;"
               r" (PLACE) bytes_of of (\d+) holds (FIGURE)$", both, len(neighbours), 100 * both / total, largest, max(neighbours.values()),
               "account.py:" + line_of("account", "return torch.empty(int(count)"), first["pid"], first["largest_blocks"][0], what="the neighbours")
    mt.check(all(size > said["tried_bytes"] - said["free_bytes"] for size in neighbours.values()), "without either it fits")
    phases = [p["peaks"]["cuda:0 pool"] for p in done.trace.report["phases"] if p["pid"] == first["pid"]
              and p["name"].split()[-1] in ("train", "evaluate")]
    mt.equal(phases[1:], [p["allocated"] for p in first["peaks"]], "peaks of its phases, after the warm-up")
    peaks, evaluate = sorted(p["allocated"] for p in first["peaks"]), "incident2.py:" + line_of("incident2", "evaluated = evaluate(")
    seen.claim(r"^  2 phase peak +(FIGURE)   medium   (PLACE) evaluate of neighbour (\d+) takes (FIGURE) \(else at most (FIGURE)\)", peaks[-1] - peaks[-2],
               evaluate, first["pid"], peaks[-1], peaks[-2], what="the neighbour's phase")
    mt.check(2 * peaks[-1] > total, "two runs do not fit beside each other then")
    layers = 14 * (4096 * 4096 + 4096) * 4
    seen.claim(r"^  no leak +(PLACE) Model.__init__.<genexpr> grew by (FIGURE) at first, then", "incident2.py:" + line_of("incident2", "nn.ModuleList("),
               layers, what="no leak")
    seen.claim(r"^  no fragmentation +unused in our pool: (FIGURE) in all, largest hole (FIGURE); with the (FIGURE) free that is less than (FIGURE)"
               r" \((FIGURE) are for other streams or sizes\)$", said["unused_large_bytes"], said["large_hole_bytes"], said["free_bytes"], said["tried_bytes"],
               said["unused_small_bytes"], what="no fragmentation")
    seen.claim(r"^  1 keep fewer processes on cuda:0: (\d+) were on it, or let (PLACE) bytes_of of (\d+) hold less$", len(neighbours) + 1,
               "account.py:" + line_of("account", "return torch.empty(int(count)"), first["pid"], what="advice", section="WHAT TO DO")
    seen.claim(r"^  2 two runs must not be in (PLACE) evaluate together", evaluate, what="advice", section="WHAT TO DO")
    kinds = {name: said["kinds"][name] + first["kinds"][name] for name in said["kinds"]}
    seen.alive(kinds, outside=sum(account["libraries"].values()), either=2 * account["batch_bytes"])
    seen.by_line({"account.py:" + line_of("account", "return torch.empty(int(count)"): ((kinds["rest"] - (1 << 29), kinds["rest"]), lambda text: int(text) >= 2),
                  "incident2.py:" + line_of("incident2", "optimizer.step()"): (kinds["optimizer"], 58),
                  "incident2.py:" + line_of("incident2", "nn.ModuleList("): (2 * layers, 56)})
    seen.largest(sorted(said["largest_blocks"] + first["largest_blocks"], reverse=True)[:5])
    seen.finish()
    exact(done)


@mt.long
def case_incident2_healthy():
    done = run("incident2", "--healthy")
    seen = well(done)
    never(done, "other_process", "phase_peak")
    seen.alive_well({name: done.account["kinds"][name] + done.account["first"]["kinds"][name] for name in done.account["kinds"]},
                    outside=sum(done.account["libraries"].values()), optimizer_later=done.account["kinds"]["optimizer"])
    seen.finish()
    exact(done)


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
    seen.claim(r"^nothing failed: (PLACE) bytes_of only grew, (FIGURE) on each of (\d+) devices ",
               "account.py:" + line_of("account", "return torch.empty(int(count)"),
               (account["pools"][0]["allocated_bytes"], account["pools"][0]["peak_allocated_bytes"]), len(account["pools"]), what="what only loads")
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


if __name__ == "__main__":
    mt.main()
