#!/usr/bin/env python3
"""Sampled stacks: estimates with intervals against the truth. tests/long/sampling.py has 1,000 seeds, test_sample.c as many without processes."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt
import sampling


def case_all_stacks_are_exact():
    sampling.all_equals_truth(1)
    sampling.all_equals_truth(2)


def case_intervals_over_100_seeds():
    sampling.over(range(1, 101))


def case_same_seed_same_stacks():
    mt.equal(sampling.sampled(5), sampling.sampled(5), "the second time")


def case_screen_says_so():
    done = sampling.run(3, "sample")
    for command in ("report", "peak", "leaks"):
        text = done.trace.tool(command).out
        mt.check("stacks were sampled" in text and " to " in text, "%s shows no range: %s" % (command, text[:1500]))


def case_threads_and_sizes_are_exact():
    """Every event says who made it and how large: nothing to estimate."""
    done = sampling.run(3, "sample")
    total = done.trace.json("peak", "--at", "end")["host"]["bytes"]
    for by in ("thread", "process", "size"):
        sites = done.trace.json("peak", "--at", "end", "--by", by)["sites"]
        mt.equal(sum(s["bytes"] for s in sites if s["memory"] == "heap"), total, "sum by " + by)
        mt.check(not any("bytes_low" in s for s in sites), "by %s has intervals" % by)


def case_large_blocks_are_exact():
    """A mean of 1 byte: every block is large."""
    env = {"MEMTRACE_STACKS": "sample", "MEMTRACE_SAMPLE": "1"}
    done = mt.shimmed([mt.program("sampled"), "4", "500"], env=env)
    _, found = sampling.owners(done.trace)
    for k, (size, count) in enumerate(sampling.truth_of(done)):
        if size:
            mt.equal((found[k]["bytes"], found[k]["blocks"], "bytes_low" in found[k]), (size, count, False), "site %d" % k)


mt.main()
