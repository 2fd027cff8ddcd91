#!/usr/bin/env python3
"""Losses that are kept with their graphs, in real training on the CPU: one leak of many sites at the same pace; and its healthy twin."""
import functools
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

SCENARIO = os.path.join(mt.TOP, "tests/scenarios/retained_graph.py")
NODES = 0.05  # of what a graph keeps: its nodes beside the tensors


@functools.lru_cache(None)
def run(*arguments):
    if not mt.has_module("torch"):
        mt.skip("PyTorch is not installed")
    done = mt.shimmed([mt.python(), SCENARIO, *arguments], env={"MEMTRACE_PAUSED": "1"}, timeout=100)
    mt.equal(done.status, 0, "status of %s" % done)
    done.trace.settle()
    done.account = json.loads(done.out.partition("ACCOUNT ")[2])
    return done


def case_one_leak_of_many_sites():
    done = run()
    account, report = done.account, done.trace.report
    (verdict,) = report["verdicts"]
    mt.equal((verdict["kind"], verdict["device"], verdict["certainty"]), ("leak", "host", "high"))
    each, steps = account["kept_each"], account["steps"]  # what the last one keeps is alive at the end, too
    mt.between(each * (steps - 1), verdict["bytes"], each * steps * (1 + NODES), "bytes of the verdict")
    mt.check(verdict["sites"][0].endswith(" Block.forward") and "those of " in verdict["advice"] and "one thing (a list, a cache; in PyTorch a loss kept with its graph)" in verdict["advice"], verdict)
    mt.equal((report["steps"]["source"], report["steps"]["count"]), ("inferred", account["steps"]), "steps")


def case_a_step_keeps_what_pytorch_says():
    """The slopes of all stacks together are the storages that PyTorch saves for one loss, and the graph's own nodes."""
    done = run()
    sites = [s for s in done.trace.json("leaks")["sites"] if s["kind"] == "linear" and s["certainty"] == "high"]
    slope = sum(s["slope_bytes_per_step"] for s in sites)
    each = done.account["kept_each"]
    mt.between(each, slope, each * (1 + NODES), "growth of all sites a step")
    forward = [s for s in sites if any(f["function"] == "Block.forward" for f in s["stack"])]
    mt.check(len(forward) >= 4, "sites of the forward pass: %d" % len(forward))


def case_the_screen():
    text = run().trace.tool("report").out
    for words in ("at the same pace", "Block.forward  retained_graph.py:", "which object holds the blocks"):
        mt.check(words in text, "%r is not in %s" % (words, text))


@mt.long
def case_healthy_twin():
    report = run("--healthy").trace.report
    mt.equal((report["status"], report["verdicts"]), ("ok", []), "status, verdicts")
    mt.equal([s for s in run("--healthy").trace.json("leaks")["sites"] if s["kind"] in ("linear", "accelerating")], [], "what grows")


mt.main()
