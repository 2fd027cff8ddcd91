#!/usr/bin/env python3
"""memtrace start and stop in a program that runs: figures are its own account of what it did in between, also in children and threads; what was not
recorded is said and is no error."""
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt


class Program:
    def __init__(self, **env):
        self.trace = mt.Trace(os.path.join(mt.scratch("trace"), "t"))
        self.child = subprocess.Popen([mt.program("switched")], env=mt.shim_env(self.trace.path, **env), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        mt.equal(self.child.stdout.readline(), "ready\n")
        self.pid = self.child.pid

    def do(self, *lines):
        for line in lines:
            self.child.stdin.write(line + "\n")
            self.child.stdin.flush()
            mt.equal(self.child.stdout.readline(), "done\n", line)
        return self

    def switch(self, what, whom=None):
        done = mt.execute([mt.MEMTRACE, what, whom or self.trace.path])
        mt.equal((done.status, done.err), (0, ""), "memtrace %s: %s" % (what, done))
        return self

    def end(self):
        self.child.communicate("q\n")
        mt.equal(self.child.returncode, 0, "status")
        return self.trace.settle()

    def main(self):
        return next(p for p in self.trace.processes if p["pid"] == self.pid)


@mt.variants("directory", "pid")
def case_begins_later(whom):
    p = Program(MEMTRACE_PAUSED="1").do("a 1000")
    p.switch("start", str(p.pid) if whom == "pid" else None).do("a 500", "f 300", "a 20").end()
    host, recorded = p.main()["host"], p.main()["recorded"]
    mt.equal((host["allocations"], host["frees"], host["live_bytes"]), (520, 0, 520000))
    mt.check(0 < recorded["from_s"] < recorded["to_s"], recorded)
    mt.equal((recorded["stops"], recorded["stopped_s"]), (0, 0))
    check = p.trace.tool("check")
    mt.equal(check.status, 0, "check: %s" % check)
    mt.check("300 frees of blocks from before the recording" in check.out, check.out)
    mt.equal(p.trace.report["losses"]["events"], 0)
    mt.check("was recorded from " in p.trace.tool("report").out, "the report does not say it")


def case_stops_and_goes_on():
    """Blocks that are freed meanwhile look alive, and those allocated are not known: both are said, none is a loss."""
    p = Program().do("a 100")
    p.switch("stop").do("a 1000", "f 40")
    p.switch("start").do("a 500", "f 60", "f 200")
    time.sleep(0.1)
    p.switch("stop").do("a 7").end()
    host, recorded = p.main()["host"], p.main()["recorded"]
    seen_again = 500  # blocks of the 40 that were freed may come again; they are allocations all the same
    mt.equal((host["allocations"], recorded["stops"]), (100 + seen_again, 2))
    mt.equal(host["frees"], 60)
    mt.check(0 < recorded["stopped_s"] < recorded["to_s"], recorded)
    check = p.trace.tool("check")
    mt.equal(check.status, 0, "check: %s" % check)
    mt.check("stopped 1 time in between" in check.out and "200 frees of blocks" in check.out, check.out)
    summary = p.trace.summary()
    mt.check("recorded from its start to " in summary and "what was freed meanwhile looks alive" in summary, summary)
    mt.equal((p.trace.report["losses"]["missed_frees"], p.trace.report["complete"]), (0, True))


@mt.variants("fork", "exec")
def case_children(how):
    """They begin as their parent is."""
    word = "k" if how == "fork" else "e"
    p = Program(MEMTRACE_PAUSED="1").do("%s 10" % word)
    p.switch("start").do("a 1", "%s 20" % word)
    p.switch("stop").do("f 1", "%s 30" % word)
    p.switch("start").do("a 1", "%s 40" % word).end()
    children = sorted(c["host"]["allocations"] for c in p.trace.processes if c["pid"] != p.pid and c["host"]["allocations"])
    mt.equal(children, [20, 40])


def case_threads():
    """Switched while four threads allocate: each block is seen whole or not at all, and the program goes on."""
    p = Program(MEMTRACE_PAUSED="1")
    p.child.stdin.write("t 300000\n")
    p.child.stdin.flush()
    for i in range(10):
        p.switch("start" if i % 2 == 0 else "stop")
        time.sleep(0.02)
    mt.equal(p.child.stdout.readline(), "done\n")
    p.switch("start").do("a 100").end()
    host = p.main()["host"]
    mt.between(100, host["allocations"], 1200100, "allocations")
    mt.check(host["allocations"] - host["frees"] <= 100 + 4 * 6, "alive that was freed: %s" % host)
    mt.equal(p.trace.tool("check").status, 0, "check")


def case_never_begun():
    p = Program(MEMTRACE_PAUSED="1").do("a 100")
    p.end()
    mt.equal(p.main()["host"]["allocations"], 0)
    mt.check("never recorded" in p.trace.summary(), p.trace.summary())


def case_by_the_program_itself():
    """memtrace_start() and memtrace_stop() leave the same."""
    done = mt.shimmed([mt.program("marks"), "paused"], env={"MEMTRACE_PAUSED": "1"})
    recorded = next(p for p in done.trace.processes if p["ppid"] == os.getpid() or not p["image"] and p["recorded"]["stops"])["recorded"]
    mt.equal(recorded["stops"], 1)
    mt.check(recorded["stopped_s"] > 0, recorded)


def case_nobody_to_switch():
    p = Program()
    p.end()
    for whom in (p.trace.path, "4194303", "/nonexistent"):
        done = mt.execute([mt.MEMTRACE, "start", whom])
        mt.check(done.status in (2, 3) and done.err.count("\n") == 1, "%s" % done)


def case_leaves_nothing_while_stopped():
    """Not an event of a million calls, and not a byte in the files of events."""
    def events_bytes():
        return sum(os.stat(os.path.join(p.trace.path, name)).st_blocks for name in os.listdir(p.trace.path) if not name.startswith("samples"))
    p = Program(MEMTRACE_PAUSED="1").do("t 1000")
    before = events_bytes()
    p.do("t 1000000")
    mt.equal(events_bytes(), before, "blocks of the trace's files")
    p.end()
    mt.equal([p.main()["host"][key] for key in ("allocations", "frees", "temporary")], [0, 0, 0])


mt.main()
