#!/usr/bin/env python3
"""CUDA graphs: which segments are private, and what is in them, equals PyTorch's snapshot; holes of private pools are no fragmentation."""
# timeout: 300
import functools
import json
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import gpu
import mt

COMMON = "0,0"
EXPANDABLE = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}


@functools.lru_cache(None)
def run(*arguments, expandable=False):
    done = gpu.scenario("graph_pools", *arguments, paused=True, env=EXPANDABLE if expandable else None)
    done.trace.settle()
    return done


def device(done):
    return done.trace.report["devices"][0]


def layout(done, at):
    """What frag says of the device at that moment."""
    said = done.trace.tool("frag", "--json", "--device", "cuda:0", "--at", at)
    mt.equal(said.status, 0, said.err)
    return json.loads(said.out)["devices"][0]


def sums(pools):
    return {key: sum(p[key] for p in pools) for key in ("reserved", "allocated")}


def compare(done, at, told):
    """The segments of each of PyTorch's pools are one pool here. TOLD: by PyTorch's id."""
    seen = layout(done, at)
    by_address, here = {s["address"]: s["private_pool"] for s in seen["segments"]}, {}
    for name, pool in told.items():
        numbers = {by_address[a] for a in pool["segments"]}
        mt.equal(len(numbers), 1, "pools here of PyTorch's %s" % name)
        here[name] = numbers.pop()
    mt.equal(here[COMMON], None, "the common pool")
    mt.equal(len(set(here.values())), len(told), "private pools: %s" % here)
    private = [p for name, p in told.items() if name != COMMON]
    mt.equal(sum(len(p["segments"]) for p in told.values()), seen["segment_count"], "segments")
    mt.equal({k: seen["graphs"][k + "_bytes"] for k in ("reserved", "allocated")}, sums(private), "of private pools")
    mt.equal(seen["graphs"]["largest_hole_bytes"], max(p["hole"] for p in private), "their largest hole")
    mt.equal(seen["graphs"]["pools"], len(private), "private pools")
    mt.equal(seen["common_hole_bytes"], told[COMMON]["hole"], "the common pool's largest hole")
    return seen, private


def certain(done):
    return [v["kind"] for v in done.trace.report["verdicts"] if v["certainty"] != "low"]


def ruled_out(done, kind):
    return [r["evidence"] for r in done.trace.report["ruled_out"] if r["kind"] == kind]


def compare_failure(done):
    told, (oom,) = done.account["ooms"][0], device(done)["ooms"]
    for key in ("requested_bytes", "free_bytes", "allocated_bytes", "reserved_bytes", "largest_hole_bytes", "retries"):
        mt.equal(oom[key], told[key], key)
    seen, private = compare(done, "oom", told["pools"])
    mt.equal({k: oom["graphs"][k + "_bytes"] for k in ("reserved", "allocated")}, sums(private), "the failure's private pools")
    mt.equal(oom["ledger"]["graphs_reserved"] - oom["ledger"]["graphs_allocated"], sums(private)["reserved"] - sums(private)["allocated"])
    mt.equal(oom["graphs"]["captures"], 6)
    mt.equal(seen["graphs"]["captures"], 6)
    return oom, told


@mt.variants((False,), (True, "--warm"))
def case_holes_of_graphs(expandable, *how):
    done = run(*how, expandable=expandable)
    oom, told = compare_failure(done)
    unused = oom["graphs"]["reserved_bytes"] - oom["graphs"]["allocated_bytes"]
    mt.check(unused + oom["free_bytes"] > oom["requested_bytes"], "the scenario's holes are too small: %s" % oom)
    mt.equal((oom["capturing"], oom["usable_hole_bytes"]), (False, told["pools"][COMMON]["large_hole"]))
    mt.equal(certain(done), ["retained"], "verdicts")
    if not how:  # the healthy twin takes as much beside its graphs
        mt.equal(told["largest_block_bytes"], run("--healthy").account["end"]["largest_block_bytes"])
    verdict = done.trace.report["verdicts"][0]
    mt.equal(verdict["bytes"], unused)
    mt.check("private pools of 6 CUDA graphs" in verdict["evidence"] and "graph_pool_handle" in verdict["advice"], verdict)
    mt.check(ruled_out(done, "fragmentation") and ruled_out(done, "capacity"), done.trace.report["ruled_out"])
    screen = done.trace.tool("report").out
    mt.check("unused, graphs'" in screen and "no fragmentation" in screen, screen)


def case_the_same_holes_of_the_common_pool():
    done, graphs = run("--common"), run()
    oom, = device(done)["ooms"]
    mt.equal((oom["graphs"], layout(done, "oom")["graphs"]), (None, None))
    for key in ("requested_bytes", "free_bytes", "reserved_bytes", "largest_hole_bytes"):
        mt.equal(oom[key], device(graphs)["ooms"][0][key], "in both: " + key)
    mt.equal(certain(done), ["fragmentation"], "verdicts: it is the first request of its kind, and as much again would fit without holes")
    holes = [v for v in done.trace.report["verdicts"] if v["kind"] == "fragmentation"]
    mt.equal([(v["certainty"], v["bytes"]) for v in holes], [("medium", oom["reserved_bytes"] - oom["allocated_bytes"])], "its holes")


def case_asked_in_a_capture():
    done = run("--capture")
    oom, told = compare_failure(done)
    common = told["pools"][COMMON]
    mt.equal((oom["capturing"], oom["usable_hole_bytes"]), (True, 0))
    mt.equal(certain(done), ["retained"], "verdicts")
    verdict = done.trace.report["verdicts"][0]
    mt.equal(verdict["bytes"], common["hole"], "what one empty_cache() had returned")
    mt.check("in a capture" in verdict["evidence"] and "empty_cache" in verdict["advice"], verdict)


def case_one_pool_for_all():
    done = run("--healthy")
    mt.equal((done.status, done.trace.report["status"], certain(done)), (0, "ok", []), done.err[-300:])
    seen, _ = compare(done, "end", done.account["pools"])
    mt.equal(seen["graphs"]["captures"], 6)
    pool = device(done)["pool"]
    mt.equal(pool["graphs_reserved_bytes"], seen["graphs"]["reserved_bytes"])
    mt.equal(pool["graphs_live_bytes"], seen["graphs"]["allocated_bytes"])


@mt.variants(("False", 3), ("True", 5))
def case_any_graphs(expandable, seed):
    """What is private is never taken for common, nor the other way round; no two of PyTorch's pools are one here. A pool may be several: those of
    captures that never used the same segment."""
    env = {"MEMTRACE_PAUSED": "1", "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:" + expandable}
    done = gpu.run([gpu.python(), os.path.join(mt.TOP, "tests/programs/graph_random.py"), str(seed)], env=env, devices="420M", context="64M")
    mt.equal(done.status, 0, done.err[-300:])
    done.trace.settle()
    pools, seen, of = done.account["pools"], layout(done, "end"), {}
    here = {s["address"]: s for s in seen["segments"]}
    mt.equal(sorted(here), sorted(int(a) for p in pools.values() for a in p), "segments")
    for name, segments in pools.items():
        for address, figures in segments.items():
            s = here[int(address)]
            mt.equal([s["size_bytes"], s["used_bytes"], s["largest_hole_bytes"]], figures, "segment %s of %s" % (address, name))
            mt.equal(s["private_pool"] is None, name == COMMON, "segment %s of %s is common" % (address, name))
            mt.equal(of.setdefault(s["private_pool"], name), name, "pool %s" % s["private_pool"])
    mt.check(len(pools) > 2, "too few pools: %s" % list(pools))
    pool = device(done)["pool"]
    mt.equal([pool["graphs_reserved_bytes"], pool["graphs_live_bytes"]], [seen["graphs"]["reserved_bytes"], seen["graphs"]["allocated_bytes"]])
    mt.equal([device(done)["num_ooms"], device(done)["retries"]], done.account["ooms_and_retries"], "OOMs and retries")
    captured = [o["capturing"] for o in device(done)["ooms"]]
    mt.equal(captured.count(True), done.account["in_captures"], "failures in captures")
    mt.check(True in captured and False in captured, "nothing failed in a capture, or beside one: %s" % captured)


def case_other_readers():
    """The independent decoder sees the captures that the dump has."""
    done = run()
    fields = [line.split() for line in done.trace.tool("dump").out.splitlines() if line.startswith("device-alloc ")]
    mt.equal(len({f[15] for f in fields if len(f) > 15}), 6, "captures in the dump")
    decoded = mt.execute([sys.executable, os.path.join(mt.TOP, "scripts/decode.py"), done.trace.path])
    mt.equal([line.split() for line in decoded.out.splitlines() if line.startswith("device-alloc ")], fields, "device-alloc of decode.py")


mt.main()
