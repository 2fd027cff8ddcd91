#!/usr/bin/env python3
"""Pools and phases of Ascend's frameworks, told through mstx: the program prints what it told."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import ascend
import mt

HOOK = os.path.join(mt.BUILD, "libmemtrace_libascend_kernel_hook.so")


def pools(name="pools", **more):
    run = ascend.Run([os.path.join(ascend.folder(), name)], plain=False, **more)
    mt.equal(run.done.status, 0, "status (%s)" % run.done)
    run.trace.intact()
    return run


def told(run):
    """(pool, sizes, frees) of each line."""
    rows = [line.split() for line in run.done.out.splitlines() if " alloc " in line]
    return [(r[0], [int(n) for n in r[2:6]], int(r[7])) for r in rows]


def seen(run, kind):
    return [e for e in next(iter(run.events().values())) if e[2] == kind]


def check_blocks(run):
    want = told(run)
    mt.equal([w[0] for w in want], ["ptaCaching", "mindsporeMemPool", "msleaks", "ptaWorkspace"], "what the program told")
    blocks, spaces = seen(run, "pool"), seen(run, "workspace")
    mt.equal([e[5] for e in blocks if e[0] == "alloc"], sum([w[1] for w in want[:3]], []), "blocks of pools")
    mt.equal(len([e for e in blocks if e[0] == "free"]), sum(w[2] for w in want[:3]), "blocks given back")
    mt.equal([e[5] for e in spaces if e[0] == "alloc"], want[3][1], "workspaces: their own bytes, not the sum that is told")
    mt.equal(len([e for e in spaces if e[0] == "free"]), want[3][2], "workspaces given back")
    mt.equal({e[3] for e in blocks + spaces if e[0] == "alloc"}, {"NPU-0"}, "their device")


def case_asked_for_by_the_variable():
    check_blocks(pools(MEMTRACE_ASCEND_POOL="1"))


def case_asked_for_by_the_name():
    check_blocks(pools(shim=HOOK))


def case_not_asked_for():
    run = pools()
    mt.check("not wanted" in run.done.out, "the frameworks tell of their pools without being asked: %s" % run.done)
    mt.equal(seen(run, "pool") + seen(run, "workspace"), [], "blocks")


def case_run_and_children():
    """memtrace run in a process that is recorded: one library, not two; blanks become colons."""
    shell = "exec %s run --no-report -o %s -- /bin/sh -c 'echo $LD_PRELOAD; exec %s'"
    trace = os.path.join(mt.scratch("trace"), "t")
    command = ["/bin/sh", "-c", shell % (mt.MEMTRACE, trace, os.path.join(ascend.folder(), "pools"))]
    env = ascend.settings(MEMTRACE_ASCEND_POOL="1", LD_PRELOAD="libm.so.6 " + HOOK)
    done = mt.execute(command, env=mt.clean_env(**env))
    mt.equal((done.status, done.out.splitlines()[0]), (0, HOOK + ":libm.so.6"), "status, LD_PRELOAD (%s)" % done)
    mt.check("ptaWorkspace alloc" in done.out, "the pools were not told: %s" % done)


def case_other_preloads_stay():
    run = ascend.Run(["/bin/sh", "-c", "echo $LD_PRELOAD"], plain=False, shim=mt.SHIM + " libm.so.6", MEMTRACE_ASCEND_POOL="1")
    mt.equal(run.done.out.strip(), HOOK + ":libm.so.6", "LD_PRELOAD")


@mt.variants("pools", "pools-profiled")
def case_ranges_are_phases(name):
    """Ranges that overlap end by their ids; a profiler that wants to know too is told everything."""
    run = pools(name)
    mt.check("ids differ: 1" in run.done.out, "ids of ranges: %s" % run.done.out)
    names = {r["id"]: r["name"] for r in run.records("name")}
    marks = [(r["class"], names.get(r["size"], ""), r["other"]) for r in run.records("mark") if r["source"] == 2]
    mt.equal([m[1] for m in marks if m[0] == 3], ["epoch", "load", "step"], "begun")
    mt.equal([m[1] for m in marks if m[0] == 1], ["step start", "moment"], "moments")
    ids = {m[1]: m[2] for m in marks if m[0] == 3}
    mt.equal([m[2] for m in marks if m[0] == 4], [ids["epoch"], ids["step"], ids["load"]], "ends")
    if name == "pools-profiled":
        mt.check("profiler: 1 marks, 2 starts, 2 ends, domains yes" in run.done.out, "the profiler was not told: %s" % run.done.out)


def case_profiler_and_pools():
    run = pools("pools-profiled", MEMTRACE_ASCEND_POOL="1")
    check_blocks(run)


mt.main()
