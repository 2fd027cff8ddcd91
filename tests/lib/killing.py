"""SIGKILL at a random moment: whatever had returned before is in the trace."""
import concurrent.futures
import os
import random
import shutil
import signal
import subprocess
import time

import mt
import oplog

VICTIMS = ("target", "both", "recorder")


class Shot:
    """One run that is shot at. `moment` = seconds after its start, `flags` = the program's, `record` = MEMTRACE_RECORD."""

    def __init__(self, seed, victim, moment, flags, record="all"):
        cwd = mt.scratch("kill")
        self.seed, self.victim, self.moment, self.flags, self.record = seed, victim, moment, flags, record
        self.log = os.path.join(cwd, "log")
        self.trace = mt.Trace(os.path.join(cwd, "t"))
        self.recorder_pid = 0
        # Slow, so that a random moment is a different one; where the recorder is shot, with more than a block of events.
        load = (25, 500, flags, 8000) if victim == "target" else (30, 1500, flags, 2000)
        command = [mt.program("oracle"), self.log] + [str(a) for a in (seed, 3) + load]
        self.out = open(os.path.join(cwd, "out"), "w+")
        self.child = subprocess.Popen(command, env=mt.shim_env(self.trace.path, MEMTRACE_RECORD=record), cwd=cwd, stdout=self.out, stderr=self.out,
                                      start_new_session=True)
        self.started = time.monotonic()

    def __str__(self):
        return "seed %d, %s at %.3f s, flags %s" % (self.seed, self.victim, self.moment, self.flags)

    def fire(self):
        if self.victim != "target":
            self.wait_for_recorder()
        time.sleep(max(0, self.started + self.moment - time.monotonic()))
        if self.victim != "recorder":
            self.child.kill()
        if self.victim != "target":
            self.shoot_recorder()

    def wait_for_recorder(self):
        """Their moment counts from when there is one; a program that ended without one had none to lose."""
        while not self.trace.recorder() and self.child.poll() is None:
            time.sleep(0.005)
        self.recorder_pid = self.trace.recorder()
        self.started = time.monotonic()

    def shoot_recorder(self):
        if self.recorder_pid:
            try:
                os.kill(self.recorder_pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def finish(self):
        self.child.wait(60)
        end = time.monotonic() + 60
        while mt.of_group(self.child.pid):  # children outlive a killed parent, even before they have a log
            mt.check(time.monotonic() < end, "%s: a child goes on" % self)
            time.sleep(0.01)
        if self.victim == "recorder":
            self.out.seek(0)
            said = self.out.read()
            mt.check((self.child.returncode, said) == (0, "done\n"), "%s: status %s, output %r" % (self, self.child.returncode, said))
        self.out.close()
        self.trace.settle()

    def examine(self):
        """Returns how many operations were compared."""
        logs = oplog.read(self.log) if os.path.exists(self.log) else {}
        if not self.trace.exists() or self.trace.tool("check").status == 3:
            mt.check(not any(log.ops for log in logs.values()), "%s: there is no trace" % self)
            return 0  # killed while it was being made
        checked = self.trace.tool("check")
        mt.check(checked.status == 0, "%s: %s" % (self, checked))
        lost = self.trace.json("report")["losses"]["events"]
        mt.check(lost == 0, "%s: %d events lost" % (self, lost))
        done = self.trace.tool("dump")
        mt.check(done.status == 0, "%s: %s" % (self, done))
        images = {image.pid: image for image in oplog.parse_dump(done.out).values()}
        self.compare_sums([log for log in logs.values() if log.ops], images)
        if self.record == "young":
            return sum(len(log.ops) for log in logs.values())
        return sum(self.compare(log, images) for log in logs.values() if log.ops)

    def compare(self, log, images):
        mt.check(log.pid in images, "%s: process %d is not in the trace" % (self, log.pid))
        threads = images[log.pid].threads()
        for tid in {op.tid for op in log.ops}:
            wanted = list(oplog.as_events(op for op in log.ops if op.tid == tid))
            missing, extra = oplog.find_in_order(wanted, oplog.undone(threads[tid]))
            mt.check(missing is None, "%s: %s had returned and is not in the trace (%d of thread %d are in the log)" %
                     (self, missing, len(wanted), tid))
            # Not in the log: what libc allocates, and the call in flight.
            extra = [e for e in extra if e.kind != "unmap"]
            mt.check(len(extra) < 40, "%s: %d events too many, such as %s" % (self, len(extra), extra[:3]))
        return len(log.ops)

    def compare_sums(self, logs, images):
        """Also where small blocks have no events they are in the totals, and each that is alive is there."""
        figures = {p["pid"]: p["host"] for p in self.trace.json("report")["processes"]}
        for pid in {log.pid for log in logs}:
            mt.check(pid in images, "%s: process %d is not in the trace" % (self, pid))
            own = [log for log in logs if log.pid == pid]
            in_flight = len({op.tid for log in own for op in log.ops})
            expected = oplog.Expected()
            for log in own:
                expected = expected + oplog.Expected().add_all(log.ops)
            live, wanted = oplog.live_of(images[pid]), +expected.live
            gone = [k for k in wanted if live.get(k[0]) != k[1]]
            mt.check(len(gone) <= in_flight, "%s: alive in the log of %d, not in the trace: %s" % (self, pid, gone[:5]))
            extra = len(live) - sum(wanted.values())
            mt.check(extra < 40, "%s: %d blocks of %d alive beyond its log" % (self, extra, pid))
            for what in ("allocations", "frees"):
                beyond = figures[pid][what] - getattr(expected, what)
                mt.check(-in_flight <= beyond < 40, "%s: %d %s of %d beyond its log" % (self, beyond, what, pid))


def moments(count, seed):
    """A third each; a third of them in the first 50 ms (of the target, or of the recorder)."""
    rng = random.Random(seed)
    for i in range(count):
        moment = rng.uniform(0, 0.05) if i % 9 < 3 else rng.uniform(0, 1.5)
        yield seed * 1000 + i, VICTIMS[i % 3], moment, ("m", "mfb", "hb", "f")[i // 3 % 4]


def shoot(plan):
    shot = Shot(*plan)
    try:
        shot.fire()
        shot.finish()
        return shot.examine()
    finally:
        if mt.of_group(shot.child.pid):
            os.killpg(shot.child.pid, signal.SIGKILL)
        shot.child.wait()
        shutil.rmtree(os.path.dirname(shot.log), ignore_errors=True)


def volley(count, seed, record="all"):
    """Some at a time: most of the time is waiting. A thread each, so that nobody's moment waits for another's end."""
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        compared = sum(pool.map(shoot, ((*moment, record) for moment in moments(count, seed))))
    print("# %d operations compared" % compared)
    mt.check(compared > 100 * count, "only %d operations were compared" % compared)
