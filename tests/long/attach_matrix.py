#!/usr/bin/env python3
"""memtrace start PID and stop for each of many programs at random moments, again and again; every third is attached to once more after that. What each
prints, its status and what it felt is as without. Every third time the program also runs without: what a step of its work takes, and the longest that a step
took beyond what it waits for, are told by the program itself. The figures are printed as rows of the table in docs/design/attach.md.
ATTACHES sets how often, else each row's own number; ATTACH_ROWS=WORD,... takes the rows that have one of these words."""
# serial
# timeout: 7200
import concurrent.futures
import glob
import itertools
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

AT_ONCE = 2  # of those that wait, three
PYTHON = """import time, json
%s
steps = longest = 0
print("ready", flush=True)
cpu, begin = time.process_time(), time.perf_counter()
now = begin
while now - begin < 1.5:
    %s
    last, now = now, time.perf_counter()
    steps, longest = steps + 1, max(longest, now - last - %g)
import decimal, sqlite3
print("ended")
print("steps", steps, now - begin, time.process_time() - cpu, longest)
"""
IDLE = PYTHON % ("", "time.sleep(0.1)", 0.1)
BUSY = PYTHON % ("", "held = [json.loads('[1, {\"a\": [3, 4]}]') for _ in range(100)]", 0)
TRAIN = PYTHON % ("""import torch
torch.set_num_threads(2)
model = torch.nn.Linear(100, 100)
best = torch.optim.SGD(model.parameters(), 0.1)
def train():
    loss = model(torch.rand(64, 100)).pow(2).mean()
    best.zero_grad(); loss.backward(); best.step()
""", "train()", 0)
NODE = """console.log('ready')
const begin = performance.now(), cpu = process.cpuUsage()
let now = begin, steps = 0, longest = 0
function took(waits) { const last = now; now = performance.now(); steps++; longest = Math.max(longest, now - last - waits); return now - begin < 1500 }
function end() {
    const used = process.cpuUsage(cpu)
    console.log('ended\\nsteps', steps, (now - begin) / 1e3, (used.user + used.system) / 1e6, longest / 1e3)
}
%s"""
NODE_IDLE = NODE % "function wait() { if (took(100)) setTimeout(wait, 100); else end() } setTimeout(wait, 100)"
NODE_BUSY = NODE % "let held = []; do { for (let i = 0; i < 1000; i++) held.push(JSON.stringify({a: now + i})); if (held.length > 9999) held = [] } while (took(0)); end()"
# Two threads; objects for its collector, and memory outside of its heap.
JAVA = """class Work {
    static volatile double held, longest;
    static long steps;
    static double now() { return System.nanoTime() / 1e9; }
    static void work() {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < 200; i++) text.append(i).append(new int[100].length);
        var outside = new java.util.zip.Deflater();
        held = text.length() + outside.getTotalIn();
        outside.end();
    }
    static void run(boolean idle, boolean counts, double begin) throws Exception {
        for (double last = begin, now; last - begin < 1.5; last = now) {
            if (idle) Thread.sleep(100); else work();
            now = now();
            synchronized (Work.class) { longest = Math.max(longest, now - last - (idle ? 0.1 : 0)); if (counts) steps++; }
        }
    }
    public static void main(String[] words) throws Exception {
        boolean idle = words[0].equals("idle");
        var system = (com.sun.management.OperatingSystemMXBean) java.lang.management.ManagementFactory.getOperatingSystemMXBean();
        System.out.println("ready");
        long cpu = system.getProcessCpuTime();
        double begin = now();
        Thread other = new Thread(() -> { try { run(idle, false, begin); } catch (Exception e) { System.exit(9); } });
        other.start();
        run(idle, true, begin);
        other.join();
        System.out.println("ended\\nsteps " + steps + " " + (now() - begin) + " " + (system.getProcessCpuTime() - cpu) / 1e9 + " " + longest);
    }
}
"""


def interpreters():
    """Each CPython since 3.8 that can be found, once."""
    found = {}
    for path in sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3"))) + [os.path.join(folder, "python3" + minor) for folder in os.environ["PATH"].split(":") + ["/usr/bin"] for minor in ("", ".8", ".9", ".10", ".11", ".12", ".13", ".14")]:
        if os.access(path, os.X_OK):
            done = subprocess.run([path, "-c", "import sys; print(sys.version.split()[0], sys.executable)"], capture_output=True, text=True, check=False)
            if done.returncode == 0 and int(done.stdout.split(".")[1]) >= 8:
                version, real = done.stdout.split()
                found.setdefault(version, real)
    return dict(sorted(found.items(), key=lambda row: [int("".join(c for c in part if c.isdigit()) or 0) for part in row[0].split(".")]))


def java():
    """The folder of its class, or None."""
    if not shutil.which("java") or not shutil.which("javac"):
        return None
    folder = mt.scratch("java")
    with open(os.path.join(folder, "Work.java"), "w", encoding="utf-8") as f:
        f.write(JAVA)
    done = mt.execute(["javac", "-d", folder, os.path.join(folder, "Work.java")], timeout=100)
    mt.equal(done.status, 0, done)
    return folder


def version_of(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return [w for w in (done.stdout + done.stderr).replace('"', " ").replace("=", " ").split() if w.strip("v")[:1].isdigit()][0].strip("v")


def targets():
    """Name, how often, what makes it, and what it prints, on stderr, and ends with."""
    words = {"malloc": "four threads in malloc and free without a pause", "dlopen": "a thread in dlopen and dlclose without a pause, one in malloc",
             "fork": "a thread that forks without a pause, one in malloc", "vector": "vector registers and errno that are checked",
             "wait": "threads in sleep, poll and read", "signals": "a signal every millisecond", "suspend": "sigsuspend, which each signal of another process must end",
             "naps": "one thread that sleeps in eight ways"}
    for kind, name in words.items():
        yield name, 30, lambda kind=kind: attaching.attachee(kind, 1, "steps"), attaching.WHOLE
    for version, path in interpreters().items():
        yield "Python %s, idle" % version, 12, lambda path=path: attaching.Target([path, "-c", IDLE]), ("ended\n", "", 0)
        yield "Python %s, busy" % version, 12, lambda path=path: attaching.Target([path, "-c", BUSY]), ("ended\n", "", 0)
    if shutil.which("node"):
        version = version_of("node", "--version")
        yield "node %s, idle" % version, 30, lambda: attaching.Target(["node", "-e", NODE_IDLE]), ("ended\n", "", 0)
        yield "node %s, busy" % version, 30, lambda: attaching.Target(["node", "-e", NODE_BUSY]), ("ended\n", "", 0)
    folder = java()
    for how in ("idle", "busy") if folder else ():
        yield "java %s, %s" % (version_of("java", "-version"), how), 30, lambda how=how: attaching.Target(["java", "-cp", folder, "Work", how]), ("ended\n", "", 0)
    if mt.has_module("torch"):
        yield "PyTorch %s, training" % version_of(mt.python(), "-c", "import torch; print(torch.__version__)"), 100, lambda: attaching.Target([mt.python(), "-W", "ignore", "-c", TRAIN], env={"PYTHONWARNINGS": "ignore"}), ("ended\n", None, 0)


def ended(done):
    """On a busy machine the program may be over."""
    return any(text in done.err for text in ("nobody is recorded", "no such process", "has ended", "no program", "no memory"))


class Round:
    """What one run of a program showed: seconds that attaching took, or None; its own figures."""
    took = wall = cpu = longest = None
    timed, over = True, False

    def __init__(self, target, want):
        self.target, self.want = target, want

    def attach(self):
        begin = time.monotonic()
        done = self.target.memtrace("start", str(self.target.pid))
        if done.status == 0:
            self.took = time.monotonic() - begin
        else:
            self.over = ended(done)
            mt.check("safe place" in done.err or self.over, done)
        return done.status == 0

    def stop(self):
        stop = self.target.memtrace("stop", str(self.target.pid))
        mt.check(stop.status == 0 or ended(stop), stop)

    def again(self):
        self.timed = False
        again = self.target.memtrace("start", str(self.target.pid))
        mt.check(again.status == 0 or ended(again), again)

    def end(self):
        out, err, status = self.target.end()
        said, _, figures = out.partition("steps ")
        mt.equal((said, status), (self.want[0], self.want[2]), "what it printed and its status (%s), attached: %s" % (err, self.took))
        if self.want[1] is not None:
            mt.equal(err, self.want[1], "stderr")
        steps, wall, cpu, self.longest = (float(word) for word in figures.split())
        self.wall, self.cpu = wall / steps, cpu / steps
        if self.took is not None:
            check = self.target.trace().tool("check")
            mt.equal(check.status, 0, "check: %s" % check)
        shutil.rmtree(self.target.folder, ignore_errors=True)
        return self


def attached_run(make, want, number):
    run = Round(make(), want)
    time.sleep(random.uniform(0, 0.6))
    if run.attach():
        run.stop()
        if number % 3 == 2:
            run.again()
    return run.end()


def one(make, want, number):
    """A run that is attached to and, every third time, one that is not. A program that was over before is none."""
    runs = [attached_run(make, want, number)]
    for _ in range(5):
        if runs[0].over:
            runs = [attached_run(make, want, number)]
    if number % 3 == 0:
        runs.append(Round(make(), want).end())
    return runs


def is_idle(name):
    return any(word in name for word in ("idle", "sleep", "sigsuspend"))


HEAD = ("program", "attached", "median", "longest", "a step", "its CPU", "longest pause", "without")


def ratio(with_it, without):
    return "%.2f x" % (statistics.median(with_it) / statistics.median(without)) if with_it and without else "-"


def row(name, attached, times, figures):
    """Of the runs that were attached to and stopped, and of those without."""
    with_it, without = figures
    pause = ["%.3f s" % statistics.median(r[2] for r in rows) if rows else "-" for rows in figures]
    took = ["%.2f s" % statistics.median(attached), "%.2f s" % max(attached)]
    return (name, "%d of %d" % (len(attached), times), *took, ratio([r[0] for r in with_it], [r[0] for r in without]),
            "-" if is_idle(name) else ratio([r[1] for r in with_it], [r[1] for r in without]), *pause)


def tell(cells):
    mt.say("# | %s |" % " | ".join(cells))


def redis(times):
    """A server under load. Its steps are requests, as redis-benchmark counts them."""
    ports = itertools.count(17000)

    def load(attach):
        port = str(next(ports))
        target = attaching.Target(["redis-server", "--port", port, "--save", "", "--loglevel", "warning"], ready=None)
        ask = ["redis-cli", "-p", port]
        mt.until(lambda: subprocess.run([*ask, "ping"], capture_output=True, check=False).stdout == b"PONG\n", "redis")
        benchmark = subprocess.Popen(["redis-benchmark", "-p", port, "-n", "40000", "--csv", "-t", "set,get"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        took = []
        if attach:
            time.sleep(random.uniform(0, 0.5))
            begin = time.monotonic()
            target.start()
            took.append(time.monotonic() - begin)
            mt.equal(target.memtrace("stop", str(target.pid)).status, 0)
        out, err = benchmark.communicate(timeout=60)
        mt.equal((benchmark.returncode, err), (0, ""), "redis-benchmark")
        tests = [[float(cell.strip('"')) for cell in line.split(",")[1:]] for line in out.splitlines()[1:]]
        usage = dict(line.split(":") for line in mt.execute([*ask, "info", "cpu"]).out.split() if ":" in line)
        subprocess.run([*ask, "shutdown", "nosave"], check=False, capture_output=True)
        mt.equal(target.end()[2], 0, "status of redis")
        if attach:
            mt.equal(target.trace().tool("check").status, 0)
        shutil.rmtree(target.folder, ignore_errors=True)
        cpu = float(usage["used_cpu_sys"]) + float(usage["used_cpu_user"])
        return took, (sum(1 / t[0] for t in tests), cpu, max(t[-1] for t in tests) / 1e3)

    runs, others = [], []
    for number in range(times):
        runs.append(load(True))
        if number % 3 == 0:
            others.append(load(False))
    return row("redis %s under load" % version_of("redis-server", "--version"), [t for took, _ in runs for t in took], times, ([f for _, f in runs], [f for _, f in others]))


def case_matrix():
    wanted = os.environ.get("ATTACH_ROWS", "").split(",")
    rows = []
    for name, times, make, want in targets():
        if not any(word in name for word in wanted):
            continue
        times = int(os.environ.get("ATTACHES", times))
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE + is_idle(name)) as pool:
            rounds = list(pool.map(lambda number: one(make, want, number), range(times)))
        attached = [runs[0].took for runs in rounds if runs[0].took is not None]
        mt.check(attached, "%s: never attached" % name)
        timed = [runs[0] for runs in rounds if runs[0].took is not None and runs[0].timed]
        figures = [[(r.wall, r.cpu, r.longest) for r in some] for some in (timed, [runs[1] for runs in rounds if len(runs) > 1])]
        rows.append(row(name, attached, times, figures))
        tell(rows[-1])
    if shutil.which("redis-server") and shutil.which("redis-benchmark") and any(word in "redis under load" for word in wanted):
        rows.append(redis(int(os.environ.get("ATTACHES", 30))))
        tell(rows[-1])
    mt.say("# all of them:")
    for cells in (HEAD, ["---"] * len(HEAD), *rows):
        tell(cells)


def case_killed_at_random():
    """SIGKILL of memtrace start after a random time."""
    times = int(os.environ.get("ATTACHES", "100"))
    def one_of(_):
        target = attaching.attachee(random.choice(("malloc", "wait", "vector", "signals", "fork", "dlopen")), 1)
        start = subprocess.Popen([*attaching.START, str(target.pid)], env=dict(mt.clean_env(), MEMTRACE_OUTPUT=target.output), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        time.sleep(random.uniform(0, 0.25))
        os.killpg(start.pid, signal.SIGKILL)
        start.wait()
        mt.equal(target.end(), attaching.WHOLE)
        shutil.rmtree(target.folder, ignore_errors=True)
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(one_of, range(times)))
    mt.say("# killed at a random moment: %d of %d went on" % (times, times))


if __name__ == "__main__":
    mt.main()
