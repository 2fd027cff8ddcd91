#!/usr/bin/env python3
"""memtrace holders --scan: what a program of C and C++ has lost, and who has the rest."""
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import json_page
import mt


class Running:
    """A program under the library that has said "ready"."""

    def __init__(self, command, **env):
        self.trace = mt.Trace(os.path.join(mt.scratch(), "t%d" % len(os.listdir(mt.scratch()))))
        self.program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(mt.shim_env(self.trace.path), **env), text=True)
        self.said = []
        for line in self.program.stdout:
            if line == "ready\n":
                break
            self.said.append(line)

    def __enter__(self):
        return self

    def scan(self, *options):
        done = mt.execute([mt.MEMTRACE, "holders", "--scan", *options, str(self.program.pid)])
        mt.equal((done.status, done.err), (0, ""), "status and stderr of %s" % done.out)
        return done.out

    def end(self):
        self.program.communicate("x")
        mt.equal(self.program.returncode, 0, "the program's status")

    def __exit__(self, *_):
        self.program.kill()
        self.program.wait()


def scan(seed):
    """((blocks, bytes) that the program of this seed has lost, as it knows itself; the scan's JSON)."""
    with Running([mt.program("scan_random"), str(seed)]) as running:
        lost = [tuple(map(int, line.split()[2:])) for line in running.said]
        root = json.loads(running.scan("--json", "-n", "0"))
        running.end()
    return tuple(map(sum, zip(*lost))), root


def case_random():
    """Blocks of each allocating function, held by variables, containers, threads, and through each other; to the byte."""
    for seed in (1, 2, 3):
        truth, root = scan(seed)
        mt.equal((root["lost_blocks"], root["lost_bytes"]), truth, "seed %d: what is lost" % seed)
        mt.equal(sum(r["blocks"] for r in root["lost"]), root["lost_blocks"], "the sum of lost rows")
        mt.equal(sum(r["bytes"] for r in root["held"]) + root["lost_bytes"], root["bytes"], "the sum of all rows")
        mt.check(root["complete"] and 0 < root["stopped_s"] < 2, "how long it stood still: %s" % root["stopped_s"])


def case_owners():
    """Who has what, by symbols and by the lines that made it."""
    with Running([mt.program("scan_owners")]) as running:
        root, screen = json.loads(running.scan("--json", "-n", "0")), running.scan("-n", "0")
        running.end()
    by = {}
    for r in root["held"]:
        by.setdefault((r["held_by"], r["name"]), []).append(r)
    for what, name, blocks, each in (("global", "cache", 40, 1000), ("global", "table", 10, 3000), ("global", "keep_static::kept", 1, 5000),
                                     ("kernel", "epoll", 1, 7000)):
        rows = by.get((what, name), [])
        mt.check(rows, "%s %s has no row: %s" % (what, name, list(by)))
        mt.between(blocks * each, sum(r["bytes"] for r in rows), blocks * each + 1000, name)
        mt.check(any("scan_owners.cc" in (f["file"] or "") for f in rows[0]["stack"]), "who made it: %s" % rows[0]["stack"])
    threads = [r for r in root["held"] if r["held_by"] in ("stack", "register") and "waiter" in r["name"]]
    mt.between(8000 + 9000, sum(r["bytes"] for r in threads), 17500, "what the thread has in a variable and a thread-local one")
    mt.equal([(r["bytes"], r["blocks"], r["first_blocks"]) for r in root["lost"]], [(6000, 3, 1), (600, 1, 1), (600, 1, 1)], "what is lost")
    mt.equal([r["stack"][0]["function"] for r in root["lost"]], ["make_chain()", "lose()", "lose()"], "who made what is lost")
    mt.check("LOST 7.0 KiB" in screen and screen.count("scan_owners.cc:42 lose") == 1 and "cache (scan_owners)" in screen and "scan_owners.cc" in screen, screen)


def case_json_page():
    """Each key is on docs/JSON.md with its type, and each of the page is there."""
    found = json_page.Printed(json_page.page()["holders --scan"])
    with Running([mt.program("scan_owners")]) as running:
        for options in ((), ("-n", "1")):
            for name, value in json.loads(running.scan("--json", *options)).items():
                found.take(value, name)
    mt.equal((found.unknown, sorted(set(found.wanted) - set(found.types))), ({}, []), "keys that are not on the page, or not printed")
    for key, types in found.types.items():
        kind = json_page.page()["holders --scan"][found.wanted[key]]
        mt.check(json_page.fits(kind, types), "%s is %s, not %s" % (key, types, kind))


def case_hostile_names():
    """A program, a thread and a directory may be called anything."""
    name = "\x1b[31mscan\n\u202e'\"<b>"
    folder = os.path.join(mt.scratch(), name)
    os.mkdir(folder)
    program = shutil.copy(mt.program("scan_owners"), os.path.join(folder, name))
    with Running([program], THREAD="\x1b[5m\r<i>") as running:
        screen, root = running.scan("-n", "0"), json.loads(running.scan("--json", "-n", "0"))
        running.end()
    mt.check(not set(screen) & set("\x1b\r\u202e") and "LOST" in screen, "what a terminal would obey: %r" % screen)
    mt.check([r for r in root["held"] if r["name"] == "cache" and r["library"] == program], "the library's path")
    mt.check([r for r in root["held"] if "\x1b[5m\r<i>" in (r["name"] or "")], "the thread's name")


def case_nothing_changes():
    """Sleeps, waits and reads go on as if nobody had looked, and it may be asked again and again."""
    code = ("import ctypes, os, select, threading, time\n"
            "libc = ctypes.CDLL(None)\n"  # which does not call again after EINTR, as Python does
            "e = select.epoll(); r, w = os.pipe(); e.register(r)\n"
            "found = []\n"
            "def wait(): found.append(libc.epoll_wait(e.fileno(), ctypes.create_string_buffer(12), 1, -1))\n"
            "t = threading.Thread(target=wait); t.start()\n"
            "print('ready', flush=True)\n"
            "begin = time.monotonic(); done = libc.usleep(2000000); slept = time.monotonic() - begin\n"
            "os.write(w, b'x'); t.join()\n"
            "print(found[0], done, slept > 1.99, libc.read(0, ctypes.create_string_buffer(1), 1))\n")
    with Running([mt.python(), "-S", "-c", code]) as running:
        for _ in range(3):
            running.scan()
        out, _ = running.program.communicate("x")
    mt.equal((out, running.program.returncode), ("1 0 True 1\n", 0), "what it printed, and its status")


def case_refused():
    """What has nothing to scan."""
    trace = mt.shimmed([mt.program("scan_random"), "1"], stdin=b"x").trace.settle()
    done = mt.execute([mt.MEMTRACE, "holders", "--scan", trace.path])
    mt.check(done.status == 2 and "--scan: needs the pid of a program" in done.err, done.err)
    done = mt.execute([mt.MEMTRACE, "holders", "--scan", str(os.getpid())])
    mt.check(done.status == 3 and "not recorded" in done.err, done.err)


def case_attached():
    """What was made before the recording is not known: nothing that it holds is called lost."""
    with subprocess.Popen([mt.program("scan_owners"), "later"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        try:
            program.stdout.readline()
            path = os.path.join(mt.scratch(), "attached")
            done = mt.execute([mt.MEMTRACE, "start", str(program.pid)], env=dict(os.environ, MEMTRACE_OUTPUT=path))
            if done.status:
                mt.skip("no program can be attached to here: %s" % done.err)
            program.stdin.write("x")
            program.stdin.flush()
            program.stdout.readline()
            done = mt.execute([mt.MEMTRACE, "holders", "--scan", "--json", str(program.pid)])
            mt.equal(done.status, 0, "status of %s" % done)
            root = json.loads(done.out)
            mt.equal((root["complete"], root["lost_blocks"]), (False, 2), "what is lost")
            mt.check([r for r in root["held"] if r["held_by"] == "unknown" and r["bytes"] >= 40000], "what older blocks hold")
        finally:
            program.kill()


if __name__ == "__main__":
    mt.main()
