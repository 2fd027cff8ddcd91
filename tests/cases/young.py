#!/usr/bin/env python3
"""MEMTRACE_RECORD=young: small blocks that die soon are sums. What the program's own log says must be in the trace all
the same: totals, and each block that is alive, whoever freed, forked, or was killed."""
# timeout: 400
import os
import shutil
import signal
import subprocess
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import killing
import mt
import oplog
import oracle

def left_out(run):
    """How many small blocks became sums, over all processes."""
    return sum((p["young"] or {"blocks": 0})["blocks"] for p in run.trace.processes)


def same_live(run, idle):
    """At the end the same blocks are alive, to the address and byte, in each process."""
    images = {image.pid: image for image in oplog.parse_dump(run.trace.tool("dump").out).values()}
    overhead = idle.overhead()
    index_of = {log.pid: i for i, log in run.logs.items() if i == 0 or oracle.THREADS <= i < oplog.LOGS - 1}
    for pid, expected in run.expected.items():
        live = oplog.live_of(images[pid])
        wanted = +expected.live
        gone = [k for k in wanted if live.get(k[0]) != k[1]]
        mt.check(not gone, "process %d: alive in the log, not in the trace: %s" % (pid, gone[:5]))
        beyond = len(live) - sum(wanted.values())
        mt.equal(beyond, overhead[index_of[pid]]["live_blocks"], "blocks of %d alive beyond the log" % pid)


def near_peaks(run, idle):
    """Too low by no more than is said, and never too high."""
    main, quiet = run.processes[run.main_pid], idle.processes[idle.main_pid]
    young = main["young"]
    lacks = run.peak + quiet["host"]["peak_bytes"] - idle.peak - main["host"]["peak_bytes"]
    mt.between(0, lacks, young["uncertain_bytes"], "bytes that the peak lacks")


def young_run(*arguments):
    os.environ["RECORD"] = "young"
    try:
        return oracle.Run(*arguments)
    finally:
        del os.environ["RECORD"]


def compare(seed, flags, rounds=6, ops=1500, how=mt.shimmed, pace=0):
    run, idle = young_run(seed, rounds, ops, flags, pace, how), oracle.Run(seed, rounds, 0, flags, 0, mt.shimmed)
    figures = [f for f in oplog.Expected().figures() if "h" not in flags or f != "temporary"]
    oracle.same_totals(run, idle, figures)
    if "n" not in flags:
        near_peaks(run, idle)
    if "m" in flags:
        oracle.same_maps(run)
    same_live(run, idle)
    mt.check(left_out(run) > 100, "only %d blocks were young" % left_out(run))
    return run, idle


@mt.variants(1, 2, 3)
def case_heap_maps_forks(seed):
    compare(seed, "mf")


@mt.variants(4, 5)
def case_handed_over(seed):
    compare(seed, "hf")


def case_threads_are_born():
    compare(6, "bf", rounds=20, ops=300)


@mt.variants((8, "mf"), (9, "h"))
def case_with_a_recorder(seed, flags):
    """It takes what is left in the table when the process has ended."""
    run, _ = compare(seed, flags, rounds=12, ops=2000, pace=15000, how=oracle.supervised)
    mt.check(not any(f.endswith(".young") for f in run.trace.files()), "the table is still there: %s" % run.trace.files())


def case_without_a_recorder():
    compare(10, "mf", how=oracle.alone)


def case_recorder_killed():
    compare(11, "m", rounds=12, ops=2000, pace=20000, how=oracle.recorder_killed)


PAIRS = 300000


def deep(record, env=None, **how):
    run = mt.shimmed([mt.program("deep"), "5", str(PAIRS)], env={"MEMTRACE_RECORD": record, "MEMTRACE_LIMIT": "24M"}, **how)
    return run.trace


def case_nobody_reads_the_rings():
    """Half of the limit is for them. With `auto` blocks are young before it is used up, and it is said when."""
    alone = {"shim": shutil.copy(mt.SHIM, mt.scratch())}
    everything, trace = deep("all", **alone), deep("auto", **alone).intact()
    mt.check(everything.losses().get("events", 0) > 100000, "what is to be prevented: %s" % everything.losses())
    mt.check(PAIRS <= trace.host["allocations"] < PAIRS + 100, "%d allocations" % trace.host["allocations"])
    record = trace.processes[0]["record"]
    mt.equal((record["mode"], [c["mode"] for c in record["changes"]]), ("auto", ["young"]))
    mt.between(0, record["changes"][0]["from_s"], trace.report["duration_s"])
    mt.check("small blocks as totals from " in trace.tool("report").out, "the report does not say it")


def case_and_back():
    """A recorder is stopped until blocks are young. When it has caught up all are recorded again."""
    trace = mt.Trace(os.path.join(mt.scratch("trace"), "t"))
    child = subprocess.Popen([mt.program("deep"), "5", "2000000000"], env=mt.shim_env(trace.path, MEMTRACE_RECORD="auto", MEMTRACE_LIMIT="24M"))
    try:
        mt.until(trace.recorder, "a recorder")
        os.kill(trace.recorder(), signal.SIGSTOP)
        mt.until(lambda: "as totals from" in trace.tool("check").out, "young blocks")
        os.kill(trace.recorder(), signal.SIGCONT)
        mt.until(lambda: "all events again" in trace.tool("check").out, "all events again")
    finally:
        child.kill()
        child.wait()
    # nobody empties the rings of a stopped recorder: what is lost then is counted, and not asked here
    mt.equal(trace.settle().processes[0]["record"]["changes"][1]["mode"], "all")


def case_nine_shots():
    """SIGKILL (tests/long/kill.py: 100 more)."""
    killing.volley(9, 31, record="young")


if __name__ == "__main__":
    mt.main()
