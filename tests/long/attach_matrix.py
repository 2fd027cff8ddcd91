#!/usr/bin/env python3
"""memtrace start PID a hundred times (ATTACHES) for each of many programs, at random moments; a third of them are stopped and attached to again.
What each prints, its status and what it felt is as without. In how many it began to record, and how long that took, is printed as a line "# NAME: ...",
which docs/design/attach.md quotes."""
# serial
# timeout: 7200
import concurrent.futures
import glob
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import attaching
import mt

TIMES = int(os.environ.get("ATTACHES", "100"))
AT_ONCE = 3
IDLE = "import time; print('ready', flush=True); time.sleep(1.5); print('ended')"
BUSY = """import json, time
print("ready", flush=True)
until = time.time() + 1.5
while time.time() < until: held = [json.loads('[1, {"a": [3, 4]}]') for _ in range(1000)]
import decimal, sqlite3
print("ended", len(held))
"""
TRAIN = """import time, torch
torch.set_num_threads(2)
model = torch.nn.Linear(100, 100)
best = torch.optim.SGD(model.parameters(), 0.1)
print("ready", flush=True)
until = time.time() + 2
while time.time() < until:
    loss = model(torch.rand(64, 100)).pow(2).mean()
    best.zero_grad(); loss.backward(); best.step()
print("ended")
"""
NODE_IDLE = "console.log('ready'); setTimeout(() => console.log('ended'), 1500)"
NODE_BUSY = "console.log('ready'); t = Date.now(); a = []; while (Date.now() - t < 1500) { a.push(JSON.stringify({a: t})); if (a.length > 9999) a = [] } console.log('ended')"


def interpreters():
    """Each CPython that can be found, once."""
    found = {}
    for path in sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3"))) + [os.path.join(folder, "python3" + minor) for folder in os.environ["PATH"].split(":") + ["/usr/bin"] for minor in ("", ".8", ".9", ".10", ".11", ".12", ".13", ".14")]:
        if os.access(path, os.X_OK):
            done = subprocess.run([path, "-c", "import sys; print(sys.version.split()[0], sys.executable)"], capture_output=True, text=True, check=False)
            if done.returncode == 0:
                version, real = done.stdout.split()
                found.setdefault(version, real)
    return found


def targets():
    for kind in ("malloc", "dlopen", "fork", "vector", "wait", "signals"):
        yield "C: " + kind, lambda kind=kind: attaching.attachee(kind, 1), attaching.WHOLE
    for version, path in sorted(interpreters().items()):
        yield "Python %s, idle" % version, lambda path=path: attaching.Target([path, "-c", IDLE]), ("ended\n", "", 0)
        yield "Python %s, busy" % version, lambda path=path: attaching.Target([path, "-c", BUSY]), ("ended 1000\n", "", 0)
    if mt.has_module("torch"):
        yield "PyTorch training", lambda: attaching.Target([mt.python(), "-W", "ignore", "-c", TRAIN], env={"PYTHONWARNINGS": "ignore"}), ("ended\n", None, 0)
    if shutil.which("node"):
        yield "node, idle", lambda: attaching.Target(["node", "-e", NODE_IDLE]), ("ended\n", "", 0)
        yield "node, busy", lambda: attaching.Target(["node", "-e", NODE_BUSY]), ("ended\n", "", 0)


def ended(done):
    """On a busy machine the program may be over."""
    return any(text in done.err for text in ("nobody is recorded", "no such process", "has ended", "no program", "no memory"))


def one(make, want, number):
    """Seconds that it took, or None: no safe place was found, which is said."""
    target = make()
    time.sleep(random.uniform(0, 0.6))
    begin = time.monotonic()
    done = target.memtrace("start", str(target.pid))
    took = time.monotonic() - begin
    if number % 3 == 0 and done.status == 0:
        stop = target.memtrace("stop", str(target.pid))
        mt.check(stop.status == 0 or ended(stop), stop)
        again = target.memtrace("start", str(target.pid))
        mt.check(again.status == 0 or ended(again), again)
    out, err, status = target.end()
    mt.equal((out, status), (want[0], want[2]), "what it printed and its status (%s), attached: %s" % (err, done))
    if want[1] is not None:
        mt.equal(err, want[1], "stderr")
    if done.status == 0:
        check = target.trace().tool("check")
        mt.equal(check.status, 0, "check: %s" % check)
    else:
        mt.check("safe place" in done.err or ended(done), done)
    shutil.rmtree(target.folder, ignore_errors=True)
    return took if done.status == 0 else None


def case_matrix():
    for name, make, want in targets():
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            took = list(pool.map(lambda number: one(make, want, number), range(TIMES)))
        attached = [t for t in took if t is not None]
        mt.check(attached, "%s: never attached" % name)
        mt.say("# %s: %d of %d attached; median %.2f s, longest %.2f s" % (name, len(attached), TIMES, statistics.median(attached), max(attached)))


def case_redis_under_load():
    if not shutil.which("redis-server") or not shutil.which("redis-benchmark"):
        mt.skip("no redis")
    took = []
    for number in range(max(TIMES // 10, 1)):
        port = str(17000 + number)
        target = attaching.Target(["redis-server", "--port", port, "--save", "", "--loglevel", "warning"], ready=None)
        mt.until(lambda: subprocess.run(["redis-cli", "-p", port, "ping"], capture_output=True, check=False).stdout == b"PONG\n", "redis")
        load = subprocess.Popen(["redis-benchmark", "-p", port, "-n", "20000", "-q", "-t", "set,get"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for _ in range(3):
            time.sleep(random.uniform(0, 0.1))
            begin = time.monotonic()
            target.start()
            took.append(time.monotonic() - begin)
            mt.equal(target.memtrace("stop", str(target.pid)).status, 0)
        mt.equal((load.wait(60), load.stderr.read()), (0, b""), "redis-benchmark")
        subprocess.run(["redis-cli", "-p", port, "shutdown", "nosave"], check=False, capture_output=True)
        mt.equal(target.end()[2], 0, "status of redis")
    mt.say("# redis under load: %d attaches; median %.2f s, longest %.2f s" % (len(took), statistics.median(took), max(took)))


def case_killed_at_random():
    """SIGKILL of memtrace start after a random time."""
    def one_of(_):
        target = attaching.attachee(random.choice(("malloc", "wait", "vector", "signals", "fork", "dlopen")), 1)
        start = subprocess.Popen([*attaching.START, str(target.pid)], env=dict(mt.clean_env(), MEMTRACE_OUTPUT=target.output), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        time.sleep(random.uniform(0, 0.25))
        os.killpg(start.pid, signal.SIGKILL)
        start.wait()
        mt.equal(target.end(), attaching.WHOLE)
        shutil.rmtree(target.folder, ignore_errors=True)
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(one_of, range(TIMES)))
    mt.say("# killed at a random moment: %d of %d went on" % (TIMES, TIMES))


if __name__ == "__main__":
    mt.main()
