"""Programs that the recorder looks at while they run, and what it wrote of them."""
import json
import os
import signal
import struct
import subprocess
import time

import mt

PROGRAM = mt.program("resident")


def rows(trace, kind=None, pid=None, record="sample"):
    done = trace.tool("dump", "--samples", "--json")
    mt.equal(done.status, 0, "status of %s" % done)
    found = [json.loads(line) for line in done.out.splitlines()]
    return [r for r in found if r["record"] == record and kind in (None, r["kind"]) and pid in (None, r["pid"])]


class Running:
    """The program under the shim until it is ready, and what /proc says of it. It goes on until end() or stop()."""

    def __init__(self, *arguments, program=(PROGRAM,), env=None, supervised=False, group=None, outside=()):
        self.output = os.path.join(mt.scratch("trace"), "t")
        command = [*program, *map(str, arguments)]
        environment = mt.shim_env(self.output, **(env or {}))
        if supervised or group:
            command = [*outside, mt.MEMTRACE, "run", "-o", self.output, "--", *(group.command(command) if group else command)]
            environment = mt.clean_env(**(env or {}))
        self.child = subprocess.Popen(command, env=environment, cwd=mt.scratch(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL, start_new_session=True)
        self.lines, self.trace, self.failed_ns = [], mt.Trace(self.output), 0

    def ready(self, *words):
        """Waits for lines that begin so, each of them with a pid."""
        words = words or ("READY",)
        found = lambda: [next((line for line in self.lines if line.startswith(word)), None) for word in words]
        while not all(found()):
            line = self.child.stdout.readline().decode()
            mt.check(line, "the program ended: %s" % self.lines)
            self.lines.append(line.rstrip())
        self.pids, self.ready_ns = [int(line.split()[1]) for line in found()], time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        self.pid = self.pids[0]
        return self

    def tell(self, line=""):
        self.child.stdin.write(line.encode() + b"\n")
        self.child.stdin.flush()

    def fail(self):
        """The shim counts failed device allocations in the session; here the test does. The recorder looks, and writes down all it has."""
        self.failed_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        with open(os.path.join(self.output, "session"), "r+b") as file:
            offset = mt.session_offset("failures")
            file.seek(offset)
            count = struct.unpack("<I", file.read(4))[0]
            file.seek(offset)
            file.write(struct.pack("<I", count + 1))

    def sampled(self, enough, what):
        """Has the recorder look until `enough` of the rows of samples is true, and returns them."""
        found = []

        def look():
            nonlocal found
            if not self.trace.recorder():
                return False
            found = rows(self.trace)
            answered = max((r["mono_ns"] for r in found), default=0) >= self.failed_ns
            if answered and found and enough(found):
                return True
            if answered:
                self.fail()
        mt.until(look, "a sample of " + what, pause=0.1)
        return found

    def seen(self, *fields, count=1, pid=None):
        """Waits for so many samples of the process as it is from READY on, one of them with these fields."""
        def enough(found):
            mine = [r["fields"] for r in found if r["kind"] == "process" and r["pid"] == (pid or self.pid) and r["mono_ns"] >= self.ready_ns]
            return len(mine) >= count and any(all(f in fields_of for f in fields) for fields_of in mine)
        self.sampled(enough, "%s, %s" % (self.child.args, fields))
        return self

    def proc(self, name, pid=None):
        fields = {}
        with open("/proc/%d/%s" % (pid or self.pid, name)) as file:
            for line in file:
                words = line.replace(":", " ").split()
                if len(words) > 1 and words[1].isdigit():
                    fields[words[0]] = int(words[1]) * 1024
        return fields

    def end(self):
        self.child.stdin.close()
        self.child.stdout.read()
        self.child.stdout.close()
        self.child.wait()
        return self.trace.settle()

    def stop(self):
        """All processes end and no sample sees only some of them."""
        recorder = self.trace.recorder()
        os.kill(recorder, signal.SIGSTOP)
        os.killpg(self.child.pid, signal.SIGKILL)
        mt.until(lambda: not mt.of_group(self.child.pid), "the end of all processes")
        os.kill(recorder, signal.SIGCONT)
        return self.end()
