#!/usr/bin/env python3
"""memtrace live on running programs: by directory and by pid, until they end, with and without alerts."""
import json
import os
import pty
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import consumers
import mt

PROGRAM = """
import select, sys
kept = []
while not select.select([sys.stdin], [], [], 0.1)[0]:
    kept.append(bytearray(1 << 20))
"""


# Threads, and children that come and go; it has 7 MiB from the first on.
CHURN = """
import os, select, sys, threading, time
last, stop = bytearray(7 << 20), []
def work(kept):
    while not stop:
        for i in range(300):
            kept[i % 100] = bytearray(1000 + i)
        time.sleep(0.001)
threads = [threading.Thread(target=work, args=([None] * 100,)) for _ in range(3)]
for t in threads: t.start()
for n in range(3):
    time.sleep(0.7)
    if os.fork() == 0:
        mine = [bytearray(2000) for _ in range(500)]
        time.sleep(0.5)
        os._exit(0)
    os.wait()
select.select([sys.stdin], [], [])
stop.append(1)
for t in threads: t.join()
os._exit(0)
"""


class Running:
    """A program under the shim, until end(): one that keeps 1 MiB every 0.1 s, or another."""

    def __init__(self, program=PROGRAM, **env):
        self.path = os.path.join(mt.scratch("trace"), "t")
        self.child = subprocess.Popen([mt.python(), "-c", program], env=mt.shim_env(self.path, **env), cwd=mt.scratch(), stdin=subprocess.PIPE)
        mt.until(lambda: mt.Trace(self.path).files(".info"), "a process in the trace")

    def __enter__(self):
        return self

    def end(self):
        self.child.stdin.close()
        return self.child.wait(mt.WAIT)

    def __exit__(self, *_):
        self.child.kill()
        self.child.wait()


def live(program, *words, looks=2, status=0):
    """Its lines; the program ends when it has looked so often at something on the heap."""
    child = subprocess.Popen([mt.MEMTRACE, "live", *map(str, words)], stdout=subprocess.PIPE, text=True)
    lines = []
    while len([heap for heap in heaps(lines) if heap > 5 << 20]) < looks:
        line = child.stdout.readline()
        mt.check(line, "it ended: %s" % lines)
        lines.append(line.rstrip("\n"))
    mt.equal(program.end(), 0, "the program's status")
    lines += child.communicate(timeout=mt.WAIT)[0].splitlines()
    mt.equal(child.returncode, status, "status")
    return lines


def heaps(lines):
    """Bytes of each look."""
    units = {"B": 1, "KiB": 1024, "MiB": 1 << 20, "GiB": 1 << 30}
    return [float(m.group(1)) * units[m.group(2)] for m in (re.search(r"heap ([\d.]+) (\w+)", line) for line in lines) if m]


def case_until_it_ends():
    with Running() as program:
        lines = live(program, program.path)
    looks = heaps(lines)
    mt.check(max(looks) > looks[0], "heaps %s" % looks)
    mt.check(lines[-1].endswith("ended"), "last line %r" % lines[-1])


def case_what_it_has_in_the_end_is_what_report_finds():
    """Some thousand events between two looks, processes that come and go: nothing is missed, nothing counted twice."""
    with Running(CHURN) as program:
        lines = live(program, program.path, looks=3)
    report = mt.Trace(program.path).report
    mt.equal(len(report["processes"]), 4, "processes")
    mt.check(lines[-1].endswith("ended"), "last line %r" % lines[-1])
    mt.between(0.99 * report["host"]["live_bytes"], heaps(lines)[-1], 1.01 * report["host"]["live_bytes"], "heap of %r" % lines[-1])


def case_by_pid():
    with Running() as program:
        lines = live(program, program.child.pid)
    mt.check("resident" in lines[0], "lines %s" % lines)


def case_alerts():
    """Any machine is full to a thousandth of a per cent."""
    with Running() as program:
        lines = live(program, "--alert", "0.001%", program.path, status=1)
    alerts = [line for line in lines if line.startswith("ALERT: machine is ")]
    mt.equal(len(alerts), 1, "alerts in %s" % lines)
    with Running() as program:
        lines = live(program, "--alert", "100", program.path)
    mt.check(not any("ALERT" in line for line in lines), "lines %s" % lines)


def case_interrupted():
    with Running() as program:
        child = subprocess.Popen([mt.MEMTRACE, "live", program.path], stdout=subprocess.PIPE, text=True)
        child.stdout.readline()
        child.send_signal(signal.SIGINT)
        mt.equal(child.wait(30), 0, "status")
        mt.check(program.child.poll() is None, "the program has ended with it")


def case_json():
    """A line a look; the last one has what report finds."""
    with Running() as program:
        child = subprocess.Popen([mt.MEMTRACE, "live", "--json", "--alert", "0.001%", program.path], stdout=subprocess.PIPE, text=True)
        looks = []
        while not looks or looks[-1]["heap_bytes"] < 6 << 20:
            looks.append(json.loads(child.stdout.readline()))
        mt.equal(program.end(), 0)
        looks += [json.loads(line) for line in child.communicate(timeout=mt.WAIT)[0].splitlines()]
    mt.equal(child.returncode, 1, "status with an alert")
    mt.check(all(look["running"] for look in looks[:-1]) and not looks[-1]["running"], "running: %s" % [look["running"] for look in looks])
    mt.check(looks[0]["resident_bytes"] > 1 << 20 and looks[0]["processes"][0]["pid"] == program.child.pid, looks[0])
    mt.equal({g["name"]: g["level"] for g in looks[-1]["gauges"]}["machine"], "alert")
    mt.equal(looks[-1]["heap_bytes"], mt.Trace(program.path).report["host"]["live_bytes"], "heap at the end")


PARSED = """
import json, sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families
with open(sys.argv[1]) as file:
    families = list(text_string_to_metric_families(file.read()))
print(json.dumps([[f.name, f.type, f.unit, [[s.name, s.labels, s.value] for s in f.samples]] for f in families]))
"""


def case_openmetrics():
    """As Prometheus's own parser reads it, which is strict; the file is whole at any time."""
    with Running() as program:
        out = os.path.join(mt.scratch("metrics"), "train.prom")
        child = subprocess.Popen([mt.MEMTRACE, "live", "--json", "--openmetrics", out, program.path], stdout=subprocess.PIPE, text=True)
        mt.until(lambda: os.path.exists(out), "a file")
        before = os.stat(out).st_ino
        mt.until(lambda: os.stat(out).st_ino != before, "another file")
        families = json.loads(consumers.script(PARSED, out))
        mt.equal({name: samples[0][2] for name, _, _, samples in families}["memtrace_running"], 1)
        mt.equal(program.end(), 0)
        last = json.loads(child.communicate(timeout=mt.WAIT)[0].splitlines()[-1])
    mt.equal((child.returncode, os.listdir(os.path.dirname(out))), (0, ["train.prom"]))
    found = {name: (kind, unit, samples) for name, kind, unit, samples in json.loads(consumers.script(PARSED, out))}
    mt.equal({name: unit for name, (_, unit, _) in found.items() if name.endswith("_bytes")}, {name: "bytes" for name in found if name.endswith("_bytes")})
    mt.equal(found["memtrace_heap_bytes"][2], [["memtrace_heap_bytes", {"pid": str(program.child.pid), "process": last["processes"][0]["name"], "id": "0", "rank": ""},
                                               last["heap_bytes"]]])
    mt.equal({s[1]["device"]: s[2] for s in found["memtrace_capacity_bytes"][2]}, {g["name"]: g["total_bytes"] for g in last["gauges"]})
    mt.equal((found["memtrace_steps"][0], found["memtrace_running"][2][0][2]), ("counter", 0))


def case_ranks():
    """In rows of the screen, in JSON, and as a label."""
    with Running(RANK="7") as program:
        out = os.path.join(mt.scratch("metrics"), "train.prom")
        done = subprocess.Popen([mt.MEMTRACE, "live", "--json", "--openmetrics", out, program.path], stdout=subprocess.PIPE, text=True)
        look = {"processes": []}
        while not look["processes"] or not look["heap_bytes"]:
            look = json.loads(done.stdout.readline())
        families = {name: samples for name, _, _, samples in json.loads(consumers.script(PARSED, out))}
        master, slave = pty.openpty()
        screen = subprocess.Popen([mt.MEMTRACE, "live", program.path], stdin=slave, stdout=slave, env=mt.clean_env(TERM="xterm"))
        os.close(slave)
        text = b""
        while b"PROCESS" not in text or b"machine" not in text.split(b"PROCESS")[1]:
            text += os.read(master, 65536)
        for child in (done, screen):
            child.terminate()
        done.communicate(timeout=mt.WAIT)
        screen.wait(mt.WAIT)
        os.close(master)
    mt.equal([p["rank"] for p in look["processes"]], [7])
    mt.equal([s[1]["rank"] for s in families["memtrace_heap_bytes"]], ["7"])
    row = re.search(r"%d .*" % program.child.pid, re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text.decode()))
    mt.check(row and " rank 7 " in row[0], "%s in %s" % (row, text))


def case_openmetrics_that_can_not_be_written():
    with Running() as program:
        done = mt.execute([mt.MEMTRACE, "live", "--openmetrics", "/nowhere/x", program.path])
    mt.equal((done.status, done.err.count("\n"), "/nowhere/x" in done.err), (3, 1, True), done.err)


@mt.variants(("--alert", "much"), ("--alert", "0"), ("999999999",), ("a", "b"))
def case_wrong_usage(*words):
    done = mt.execute([mt.MEMTRACE, "live", *words])
    mt.check(done.status in (2, 3) and len(done.err.splitlines()) == 1, "%s" % done)


mt.main()
