"""Programs that memtrace is attached to while they run. See tests/programs/attachee.c."""
import os
import subprocess
import time

import mt

START = [mt.MEMTRACE, "start"]


class Target:
    """A program that runs without the library."""

    def __init__(self, command, ready=b"ready\n", env=None, **options):
        self.folder = mt.scratch("attached")
        self.output = os.path.join(self.folder, "t")
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(mt.clean_env(), **(env or {})), cwd=self.folder, **options)
        if ready:
            mt.equal(self.child.stdout.readline(), ready, "the program begins")
        self.pid = self.child.pid

    def memtrace(self, *words, env=None, output=True):
        settings = {"MEMTRACE_OUTPUT": self.output} if output else {}
        return mt.execute([mt.MEMTRACE, *words], env=dict(mt.clean_env(), **settings, **(env or {})), timeout=60)

    def start(self, had_children=False, **env):
        """had_children: one that is alive just then is named."""
        done = self.memtrace("start", str(self.pid), env=env)
        named = had_children and "1 process that it has started before is not recorded" in done.err
        mt.check(done.status == 0 and (named or not done.err), "memtrace start: %s" % done)
        return self

    def ask(self, line):
        self.child.stdin.write((line + "\n").encode())
        self.child.stdin.flush()
        return self.child.stdout.readline().decode().strip()

    def end(self, line=b""):
        """Its output, errors and status."""
        try:
            out, err = self.child.communicate(line, timeout=60)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.communicate()
            return "hangs", "", None
        return out.decode(), err.decode(), self.child.returncode

    def trace(self):
        return mt.Trace(self.output).settle()


def attachee(kind, seconds=2, *more, **options):
    return Target([mt.program("attachee"), kind, str(seconds), *more], **options)


WHOLE = ("attachee ended: 0 faults\n", "", 7)


def state(pid):
    with open("/proc/%d/status" % pid, encoding="utf-8") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def wait_for(condition, seconds=10):
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.02)
    return condition()
