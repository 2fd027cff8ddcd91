#!/usr/bin/env python3
"""What was resident, and whose: processes with few calls, what allocators keep, limits that were met, files in /dev/shm. Programs that say
themselves what they had, each with a healthy twin."""
# timeout: 400
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt
from cgroup import Cgroup

MIB = 1 << 20
ONCE = mt.program("once")


def near(got, want, slack, what):
    mt.between(want - slack, got, want + slack, what)


def told(done):
    """{what: (ns, bytes)} of its lines."""
    return {line.split()[0]: tuple(map(int, line.split()[1:])) for line in done.out.splitlines()}


def samples(trace, kind="process"):
    rows = [json.loads(line) for line in trace.tool("dump", "--samples", "--json").out.splitlines()]
    return [r for r in rows if r["record"] == "sample" and r["kind"] == kind and (kind != "process" or r["traced"])]


def held(trace, kind):
    return [v for v in trace.report["verdicts"] if v["kind"] == kind]


# ---- a recorder in time


@mt.variants((), ("kept",))
def case_one_block_is_sampled(*end):
    """It makes two calls in all. What it had meanwhile is known, as it says itself, and none of it is an allocator's."""
    done = mt.shimmed([ONCE, "512", "0", "4", *end])
    mt.equal(done.status, 0, "%r" % done)
    done.trace.settle()
    said = told(done)
    between = [r for r in samples(done.trace) if said["touched"][0] < r["mono_ns"] < said["waited"][0]]
    mt.check(len(between) >= 2, "%d samples between the touch and the end" % len(between))
    for row in between:
        near(row["fields"].get("rss", said["touched"][1]), said["touched"][1], 8 * MIB, "resident")
    ledger = done.trace.report["system"]["ledger"]
    near(ledger["live"], 512 * MIB, 6 * MIB, "live")
    mt.between(0, ledger["kept"], 8 * MIB, "kept")


def case_a_block_that_is_touched_slowly_meets_the_limit():
    """The kernel kills it at the cgroup's limit, three seconds after its only call."""
    with Cgroup(200 * MIB) as group:
        output = os.path.join(mt.scratch("trace"), "t")
        env = mt.shim_env(output)
        preload = env.pop("LD_PRELOAD")
        done = mt.execute(group.command(["env", "LD_PRELOAD=" + preload, ONCE, "400", "80", "1"]), env=env)
        mt.equal(done.status, -9, "%r" % done)
        trace = mt.Trace(output)
        trace.settle()
    mt.equal(trace.process("once")["exit"]["oom_killed"], "yes")
    limit = held(trace, "limit")
    mt.equal(len(limit), 1, "verdicts of a limit")
    near(limit[0]["bytes"], 200 * MIB, 40 * MIB, "in use")
    mt.equal(trace.report["status"], "problem")


def case_a_short_command_starts_no_recorder():
    """What asks for little, or for address space alone, and what churns through much of it within a moment."""
    for command in (["sh", "-c", "for i in 1 2 3; do echo $i; done | sort | head -1"], [sys.executable, "-S", "-c", "for i in range(50): bytes(2 << 20)"]):
        output = os.path.join(mt.scratch("trace"), "t")
        mt.equal(mt.execute(command, env=mt.shim_env(output)).status, 0)
        mt.equal([name for name in os.listdir(output) if name.endswith(".trace") or name == "samples"], [], "files of a recorder after %s" % command)


# ---- kept by allocators


KEEPERS = mt.program("keepers")


def keepers(*arguments, **env):
    done = mt.shimmed([KEEPERS, *map(str, arguments)], env=env)
    mt.equal(done.status, 0, "%r" % done)
    done.trace.settle()
    words = done.out.split()
    done.resident, done.live = int(words[1]), int(words[3])
    return done


def case_workers_that_gave_back_keep_nothing():
    """Five forked workers share what their parent has, and had a block each that went back to the kernel."""
    trace = keepers("workers", 5, 300, 350, 5).trace
    mt.equal(held(trace, "retained"), [], "retained")


def case_arenas_that_peak_in_turn_keep_it_all():
    done = keepers("arenas", 12, 40, 4)
    kept, found = done.resident - done.live, held(done.trace, "retained")
    mt.equal(len(found), 1, "verdicts of what was retained")
    near(found[0]["bytes"], kept, 0.04 * kept, "retained")
    ledger = done.trace.report["system"]["ledger"]
    near(ledger["kept"] - ledger["unseen"], kept, 0.04 * kept, "kept in the ledger")
    mt.equal(ledger["unseen"], 0, "seen by no hook")


def case_arenas_that_gave_back_keep_nothing():
    """One screen, one figure: what was kept at the fullest moment is no contradiction."""
    trace = keepers("given", 12, 40, 4).trace
    mt.equal(held(trace, "retained"), [], "retained")
    why = [v["evidence"] for v in trace.report["ruled_out"] if v["kind"] == "retained"]
    mt.equal(len(why), 1, "why not retained")
    ledger = trace.report["system"]["ledger"]
    mt.check(ledger["kept"] < 16 * MIB or "used again or given back since" in why[0], "%s beside %s" % (why, ledger))


def case_what_no_hook_saw_is_no_allocators():
    """Memory by system calls of its own, and one block that keeps the recorder at it."""
    done = keepers("both", 200, 4)
    ledger = done.trace.report["system"]["ledger"]
    mt.equal(held(done.trace, "retained"), [], "retained")
    near(ledger["unseen"], 200 * MIB, 24 * MIB, "seen by no hook")
    near(ledger["live"], 100 * MIB, 10 * MIB, "live")


mt.main()
