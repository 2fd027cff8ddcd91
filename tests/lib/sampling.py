"""A generated program with sampled stacks, over many seeds, against what it says it did itself."""
import json
import math
import os
import re
import shutil
import statistics

import mt

SITES = 8
MEAN = 16384
BLOCKS = 6000


def truth_of(done):
    return [(int(b), int(n)) for b, n in re.findall(r"^site \d+ (\d+) (\d+)$", done.out, re.M)]


def owners(trace):
    """Site number -> its owner in the JSON, by the stack it is called through."""
    peak = trace.json("peak", "--at", "end", "--by", "stack")
    found = {}
    for owner in peak["sites"]:
        names = [f["function"] or "" for f in owner["stack"]]
        for name in names:
            if re.fullmatch(r"site_\d", name):
                found[int(name[-1])] = owner
    return peak, found


def run(seed, mode):
    """`mode` "picked": blocks are sampled, not only their stacks."""
    env = {"MEMTRACE_RECORD": "sampled"} if mode == "picked" else {"MEMTRACE_STACKS": mode}
    env.update({"MEMTRACE_SAMPLE": str(MEAN), "MEMTRACE_SAMPLE_SEED": str(seed)})
    done = mt.shimmed([mt.program("sampled"), str(seed), str(BLOCKS)], env=env)
    mt.equal(done.status, 0, "status")
    return done


def all_equals_truth(seed):
    done = run(seed, "all")
    _, found = owners(done.trace)
    for k, (size, count) in enumerate(truth_of(done)):
        mt.equal((found[k]["bytes"], found[k]["blocks"]), (size, count), "site %d with all stacks" % k)
        mt.check("bytes_low" not in found[k], "an exact figure has an interval")


def sampled(seed, mode="sample"):
    """Estimate, low, high and truth of each site, and behind them of all together where that is an estimate; else it must be exact."""
    done = run(seed, mode)
    truth = truth_of(done)
    peak, found = owners(done.trace)
    whole = sum(size for size, _ in truth)
    host = done.trace.host
    if mode == "sample":
        rest = peak["host"]["bytes"] - whole
        mt.between(0, rest, 8192, "what is not the sites'")  # stdout's buffer
        mt.check(peak["host"]["blocks"] - sum(n for _, n in truth) in (0, 1), "blocks in all: %s" % peak["host"])
    shutil.rmtree(os.path.dirname(done.trace.path), ignore_errors=True)
    figures = []
    for k, (size, _) in enumerate(truth):
        o = found.get(k, {"bytes": 0, "bytes_low": 0, "bytes_high": 3.84 * MEAN})
        figures.append((o["bytes"], o.get("bytes_low", o["bytes"]), o.get("bytes_high", o["bytes"]), size))
    if mode != "sample":
        figures.append((host["live_bytes"], host["estimated"]["live_bytes_low"], host["estimated"]["live_bytes_high"], whole))
    return figures


def over(seeds, mode="sample"):
    rows = [sampled(seed, mode) for seed in seeds]
    covered = total = 0
    for k in range(len(rows[0])):
        column = [row[k] for row in rows]
        errors = [estimate - truth for estimate, _, _, truth in column]
        error = statistics.fmean(errors) / (statistics.stdev(errors) / math.sqrt(len(errors)))
        width = statistics.median((high - low) / 2 / truth for _, low, high, truth in column)
        bound = statistics.median(1.1 * 1.96 * math.sqrt(truth * MEAN) / truth + 0.5 * MEAN / truth for *_, truth in column)
        inside = sum(low <= truth <= high for _, low, high, truth in column)
        print("# site %d: %.0f KiB, mean error %+.2f standard errors, covered %.1f %%, median half-width %.1f %% (bound %.1f %%)" %
              (k, statistics.median(t for *_, t in column) / 1024, error, 100 * inside / len(rows), 100 * width, 100 * bound))
        mt.between(-3, error, 3, "site %d: mean error in standard errors" % k)
        mt.check(width <= bound, "site %d: median half-width %.3f of the truth, bound %.3f" % (k, width, bound))
        covered += inside
        total += len(rows)
    print("# covered in all: %.2f %% of %d" % (100 * covered / total, total))
    mt.between(0.93, covered / total, 0.97, "share of intervals that hold the truth")
