#!/usr/bin/env python3
"""A program that does random operations in several threads and keeps its own log: the trace equals the log to the byte.

pthread_create allocates for itself. What it does is measured in a run of the same threads, forks and barriers without any
operation: everything must exceed that run by exactly what the log says.
"""
# timeout: 400
import os
import shutil
import subprocess
import sys
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt
import oplog

THREADS, SPIKE, MAP_SPIKE = 4, 2 << 30, 8 << 30
HAND_OVER_FIGURES = ("allocations", "frees", "allocated_bytes", "failed", "live_bytes", "live_blocks")


def supervised(command, cwd):
    return mt.supervised(command, cwd=cwd)


def alone(command, cwd):
    folder = mt.scratch()
    return mt.shimmed(command, cwd=cwd, shim=shutil.copy(mt.SHIM, folder))


def recorder_killed(command, cwd):
    """As often as one comes."""
    trace = mt.Trace(os.path.join(mt.scratch("trace"), "t"))
    child = subprocess.Popen(command, env=mt.shim_env(trace.path), cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    end, killed = time.monotonic() + 60, 0
    while child.poll() is None and time.monotonic() < end:
        recorder = trace.recorder()
        if recorder and killed < 2:
            time.sleep(0.05 * killed)
            try:
                os.kill(recorder, 9)
                killed += 1
            except ProcessLookupError:
                pass  # ended by itself
        time.sleep(0.01)
    out, err = child.communicate(timeout=10)
    mt.check(killed, "no recorder came")
    done = mt.Done(command, child.returncode, out.decode(), err.decode())
    done.trace = trace
    return done


class Run:
    def __init__(self, seed, rounds, ops, flags, pace=0, how=mt.shimmed):
        cwd = mt.scratch()
        log = os.path.join(cwd, "log")
        command = [mt.program("oracle"), log] + [str(a) for a in (seed, THREADS, rounds, ops, flags, pace)]
        done = how(command, cwd=cwd)
        mt.check(done.status == 0 and done.out == "done\n" and (not done.err or how == supervised), str(done))
        self.trace = done.trace.intact()
        self.logs = oplog.read(log)
        self.flags, self.rounds = flags, rounds
        self.processes = {p["pid"]: p for p in self.trace.processes}
        self.main_pid = self.logs[0].pid
        self.expect()

    def spikes(self, r):
        """How many records of thread 0 after barrier r are the spike's."""
        return 0 if "n" in self.flags else 4 if "m" in self.flags else 2

    def expect(self):
        """What each process must show: main's threads round by round, its children from the state at their fork."""
        parts = {t: oplog.rounds(self.logs[t]) for t in range(THREADS)}
        each = [oplog.Expected() for _ in range(THREADS)]
        self.expected, self.peak, self.map_peak = {}, 0, 0
        for r in range(self.rounds + 1):
            for t in range(THREADS):
                each[t].add_all(parts[t][r][self.spikes(r - 1) if t == 0 and r else 0:])
            if r == self.rounds:
                break
            self.peak = max(self.peak, sum(e.live_bytes for e in each) + (0 if "n" in self.flags else SPIKE))
            self.map_peak = max(self.map_peak, sum(e.ranges.bytes() for e in each) + MAP_SPIKE)
            self.expect_child(THREADS + 2 * r, each)
            each[0].add_all(parts[0][r + 1][:self.spikes(r)])
        self.each = each + ([oplog.Expected().add_all(self.logs[oplog.LOGS - 1].ops)] if "b" in self.flags else [])
        self.expected[self.main_pid] = total(self.each)

    def expect_child(self, index, each):
        before = total(each)
        for log in (self.logs.get(index), self.logs.get(index + 1)):
            if log and "f" in self.flags:
                before = before.child().add_all(log.ops)
                self.expected[log.pid] = before

    def overhead(self):
        """By index of the log: what the report has beyond the log."""
        by_pid = {log.pid: i for i, log in self.logs.items() if i == 0 or THREADS <= i < oplog.LOGS - 1}
        out = {}
        for pid, expected in self.expected.items():
            host = self.processes[pid]["host"]
            out[by_pid[pid]] = {k: host[k] - v for k, v in expected.figures().items()}
        return out


def total(each):
    out = oplog.Expected()
    for e in each:
        out = out + e
    return out


def same_totals(run, idle, names=None):
    mt.equal(len(run.processes), len(run.expected), "processes")
    before, got = idle.overhead(), run.overhead()
    for index, figures in got.items():
        wrong = {k: v - before[index][k] for k, v in figures.items() if v != before[index][k] and (not names or k in names)}
        mt.check(not wrong, "the report of log %d has too much of %s" % (index, wrong))


def same_peaks(run, idle):
    main, quiet = run.processes[run.main_pid], idle.processes[idle.main_pid]
    mt.equal(main["host"]["peak_bytes"] - run.peak, quiet["host"]["peak_bytes"] - idle.peak, "peak beyond the log's")
    if "m" in run.flags:
        mt.equal(main["map"]["peak_bytes"] - run.map_peak, quiet["map"]["peak_bytes"] - idle.map_peak, "mapped peak")
    for pid, expected in run.expected.items():
        if pid != run.main_pid:
            mt.equal(run.processes[pid]["host"]["peak_bytes"], expected.peak, "a child's peak")


def same_maps(run):
    for pid, expected in run.expected.items():
        mt.equal(run.processes[pid]["map"]["live_bytes"], expected.ranges.bytes(), "mapped bytes")
        mt.equal(run.processes[pid]["map"]["inherited_bytes"], expected.inherited_ranges.bytes(), "inherited mapped bytes")


def same_records(run, idle):
    """Every operation is in the dump, in its thread's order, and what lives at the end is the same blocks."""
    done = run.trace.tool("dump")
    mt.equal(done.status, 0, "status of dump")
    images = {image.pid: image for image in oplog.parse_dump(done.out).values()}
    for index, log in run.logs.items():
        threads = images[log.pid].threads()
        for tid in {op.tid for op in log.ops}:
            wanted = [e for e in oplog.as_events([op for op in log.ops if op.tid == tid])]
            missing, extra = oplog.find_in_order(wanted, oplog.undone(threads[tid]))
            mt.check(missing is None, "log %d has %s, the trace doesn't" % (index, missing))
            extra = [e for e in extra if e.kind != "unmap"]
            mt.check(len(extra) < 40, "%d events that are not in log %d: %s" % (len(extra), index, extra[:5]))
    live = oplog.live_of(images[run.main_pid])
    wanted = (+run.expected[run.main_pid].live)
    gone = [k for k in wanted if live.get(k[0]) != k[1]]
    mt.check(not gone, "alive in the log, not in the trace: %s" % gone[:5])
    mt.equal(len(live) - sum(wanted.values()), idle.overhead()[0]["live_blocks"], "blocks alive beyond the log")


def compare(seed, flags, rounds=6, ops=1500, how=mt.shimmed, pace=0):
    run, idle = Run(seed, rounds, ops, flags, pace, how), Run(seed, rounds, 0, flags, 0, mt.shimmed)
    same_totals(run, idle, HAND_OVER_FIGURES if "h" in flags else None)
    if "n" not in flags:
        same_peaks(run, idle)
    if "m" in flags:
        same_maps(run)
    same_records(run, idle)
    return run, idle


@mt.variants(1, 2, 3)
def case_heap_maps_forks(seed):
    compare(seed, "mf")


@mt.variants(4, 5)
def case_handed_over(seed):
    run, _ = compare(seed, "hf")
    for pid, expected in run.expected.items():
        mt.between(0, run.processes[pid]["host"]["temporary"], expected.frees, "temporary")


def case_threads_are_born():
    compare(6, "bf", rounds=20, ops=300)


def case_bounds_between_barriers():
    """No spike: the peak is somewhere between barriers, at least their highest and at most what all threads' peaks sum to."""
    run, idle = compare(7, "n")
    overhead = idle.processes[idle.main_pid]["host"]["peak_bytes"]
    mt.between(run.peak, run.processes[run.main_pid]["host"]["peak_bytes"], sum(e.peak for e in run.each) + overhead, "peak")


@mt.variants((8, "mf"), (9, "h"))
def case_with_a_recorder(seed, flags):
    """Long enough for blocks to be written."""
    run, _ = compare(seed, flags, rounds=12, ops=2000, pace=15000)
    mt.check(any(f.endswith(".trace") for f in run.trace.files()), "no recorder wrote a block: %s" % run.trace.files())


def case_without_a_recorder():
    compare(10, "mf", how=alone)


def case_recorder_killed():
    compare(11, "m", rounds=12, ops=2000, pace=20000, how=recorder_killed)


def case_memtrace_run():
    compare(12, "mf", how=supervised)


if __name__ == "__main__":
    mt.main()
