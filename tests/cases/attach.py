#!/usr/bin/env python3
"""memtrace start PID of a program that was not preloaded: it is as without, what is recorded is exact from a moment on, and after memtrace stop it is as
before. Where it can't be, nothing of it is touched, and a line says why. tests/long/attach_matrix.py does it a hundred times each."""
# timeout: 400
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import attaching
import mt
from attaching import WHOLE, attachee


@mt.variants("malloc", "dlopen", "fork", "vector", "wait", "signals", "suspend", "naps")
def case_program_is_as_without(kind):
    for _ in range(2):
        target = attachee(kind, 1.5)
        time.sleep(random.uniform(0, 0.3))
        target.start(had_children=kind == "fork")
        mt.equal(target.end(), WHOLE, kind)
        check = target.trace().tool("check")
        mt.equal(check.status, 0, "check: %s" % check)


@mt.variants("malloc", "vector", "wait", "signals")
def case_memtrace_dies_at_each_step(kind):
    """SIGKILL of it, wherever it is: the call returns by itself."""
    for step in range(1, 8):
        target = attachee(kind, 0.8)
        done = target.memtrace("start", str(target.pid), env={"TEST_ATTACH_DIES_AT": str(step)})
        mt.equal(done.status, 3, "memtrace was not killed: %s" % done)
        mt.equal(target.end(), WHOLE, "killed at step %d" % step)


def case_events_are_exact():
    """What the program allocated and freed since, by its own account; blocks from before are known as such."""
    account = os.path.join(mt.scratch("account"), "account")
    target = attachee("leak", 2, account).start()
    os.kill(target.pid, signal.SIGUSR1)
    mt.check(attaching.wait_for(lambda: os.path.exists(account) and os.path.getsize(account)), "no account")
    mt.equal(target.end(), WHOLE)
    trace = target.trace()
    with open(account, encoding="utf-8") as f:
        own = json.load(f)
    mt.equal(mt.blocks_of(trace.sites(), "grow"), (own["bytes"], own["live"]), "what is alive")
    host = trace.report["processes"][0]["host"]
    mt.check(host["allocations"] - own["allocations"] in range(0, 6), "allocations %d, by its account %d" % (host["allocations"], own["allocations"]))
    check = trace.tool("check")
    mt.check("%d frees of blocks from before the recording" % own["before"] in check.out, check.out)
    mt.equal((trace.report["losses"]["events"], trace.report["losses"]["missed_frees"]), (0, 0))
    for words in (["report"], ["leaks"], ["peak"], ["timeline"], ["frag"], ["whatif", "--host", "MALLOC_ARENA_MAX=1"], ["diff", trace.path]):
        said = mt.execute([mt.MEMTRACE, *words, trace.path]).out
        mt.check("blocks from before are not known" in " ".join(said.split()), "%s says: %s" % (words, said[:600]))


def case_leak_is_found():
    """What was born since is known by the time of its birth: the line that goes on growing is named, what it had before is no part of it."""
    target = attachee("talk", 0)
    target.ask("a 1000")
    target.start()
    for _ in range(80):
        target.ask("a 20")
        time.sleep(0.02)
    mt.equal(target.end(b"q\n"), WHOLE)
    trace = target.trace()
    mt.equal(mt.blocks_of(trace.sites(), "grow"), (80 * 20 * 10000, 80 * 20), "what is alive since")
    (site,) = [s for s in trace.sites() if any(f["function"] == "grow" for f in s["stack"])]
    mt.equal((site["outlook"], site["grown_bytes"]), ("grows", 80 * 20 * 10000), site)
    said = trace.tool("leaks").out
    mt.check("grow" in said and "blocks from before are not known" in " ".join(said.split()), said)


def case_stop_and_again():
    """After memtrace stop words and environment are as before; attached again, they lead to the hooks again."""
    target = attachee("talk", 0)
    before = target.ask("w")
    target.start()
    mt.equal(target.ask("w").split()[:2], ["libmemtrace.so", "libmemtrace.so"])
    mt.check(target.ask("w").endswith(" " + target.output), "children join the session: %s" % target.ask("w"))
    target.ask("a 10")
    mt.equal(target.memtrace("stop", str(target.pid)).status, 0)
    target.ask("a 1000")
    after = target.ask("w").split()
    mt.equal((after[0], after[2:]), (before.split()[0], before.split()[2:]), "after memtrace stop")
    target.start()
    mt.equal(target.ask("w").split()[:2], ["libmemtrace.so", "libmemtrace.so"], "attached again")
    target.ask("a 20")
    mt.equal(target.end(b"q\n"), WHOLE)
    trace = target.trace()
    _, blocks = mt.blocks_of(trace.sites(), "grow")
    mt.check(30 <= blocks <= 31, "%d blocks: 10 and 20, and the one that may have come before the stop was seen" % blocks)
    mt.equal(trace.report["processes"][0]["recorded"]["stops"], 1)


def case_what_comes_later():
    """Libraries that are loaded later, and children."""
    target = attachee("talk", 0).start()
    mt.equal((target.ask("l"), target.ask("s")), ("1", str(3 << 8)))
    mt.equal(target.end(b"q\n"), WHOLE)
    trace = target.trace()
    mt.check(any(s["bytes"] == 777777 for s in trace.sites()), "what a later library allocated")
    mt.check(any(p["command"][0].endswith("sh") for p in trace.report["processes"]), trace.report["processes"])


def case_loader_is_at_work():
    """A thread loads a library that waits for a lock of the only other thread: if that one waited for the loader now, both would for ever."""
    constructor = """#include <pthread.h>
#include <stdlib.h>
__attribute__((constructor)) static void init(void) {
	pthread_mutex_t *lock = (void *)strtoul(getenv("LOCK"), NULL, 16);
	pthread_mutex_lock(lock); pthread_mutex_unlock(lock);
}
"""
    program = """#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *load(void *path) { return dlopen(path, RTLD_NOW); }
int main(int n, char **a) {
	char text[32];
	pthread_t loader;
	void *got = NULL;
	snprintf(text, sizeof(text), "%p", (void *)&lock);
	setenv("LOCK", text, 1);
	pthread_mutex_lock(&lock);
	pthread_create(&loader, NULL, load, a[n - 1]);
	usleep(200000);
	puts("ready");
	fflush(stdout);
	for (volatile long i = 0, until = time(NULL) + 3; time(NULL) < until;) i++;
	pthread_mutex_unlock(&lock);
	pthread_join(loader, &got);
	puts(got ? "loaded" : "not loaded");
	return read(0, text, 1);
}
"""
    library = built("slow.so", constructor, "-shared", "-fPIC")
    target = attaching.Target([built("loads", program, "-ldl", "-lpthread"), library]).start()
    mt.equal(target.end(), ("loaded\n", "", 0))


def case_fork_is_under_way():
    """Before glibc 2.36 whoever registers a handler waits while a fork's handlers run, and one of these may wait for the thread that is asked to: here the
    function does so itself. The call is undone, and the next one attaches."""
    library = """#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
pthread_mutex_t under_way = PTHREAD_MUTEX_INITIALIZER;
int registered;
int __register_atfork(void (*a)(void), void (*b)(void), void (*c)(void), void *d) {
	int (*real)(void (*)(void), void (*)(void), void (*)(void), void *) = dlvsym(RTLD_NEXT, "__register_atfork", "GLIBC_2.3.2");
	pthread_mutex_lock(&under_way);
	registered++;
	pthread_mutex_unlock(&under_way);
	return real(a, b, c, d);
}
"""
    program = """#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
extern pthread_mutex_t under_way;
extern int registered;
static void *wait_for_end(void *end) { return pthread_barrier_wait(end), NULL; }
int main(void) {
	pthread_barrier_t end;
	pthread_t other;
	char line[9];
	pthread_mutex_lock(&under_way);
	pthread_barrier_init(&end, NULL, 2);
	pthread_create(&other, NULL, wait_for_end, &end);
	puts("ready");
	while (fflush(stdout), fgets(line, sizeof(line), stdin) && *line == 'u')
		printf("%d\\n", (pthread_mutex_unlock(&under_way), registered));
	free(malloc(100));
	pthread_barrier_wait(&end);
	pthread_join(other, NULL);
	printf("ended %d\\n", registered);
	return 3;
}
"""
    folder = mt.scratch("forks")
    with open(os.path.join(folder, "map"), "w", encoding="utf-8") as f:
        f.write("GLIBC_2.3.2 { global: __register_atfork; }; NONE { global: *; };\n")
    path = built("libforks.so", library, "-shared", "-fPIC", "-Wl,--version-script=" + os.path.join(folder, "map"), "-ldl", "-lpthread")
    target = attaching.Target([built("forks", program, "-Wl," + path + ",-rpath," + os.path.dirname(path), "-lpthread")])
    refused = target.memtrace("start", str(target.pid))
    mt.check(refused.status == 3 and "was just forking: try again" in refused.err, refused)
    mt.equal(target.ask("u"), "0", "what waited was undone")
    target.start()
    mt.equal(target.end(b"q\n"), ("ended 1\n", "", 3))
    mt.equal(target.trace().tool("check").status, 0)


def case_run_pid():
    """memtrace run --pid: until the program ends, and until Ctrl-C; then the report, and the program is as before."""
    target = attachee("talk", 0)
    recorder = subprocess.Popen([mt.MEMTRACE, "run", "--pid", str(target.pid), "-o", target.output], env=mt.clean_env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    mt.check("recording process %d" % target.pid in recorder.stderr.readline(), "it does not say that it records")
    target.ask("a 100")
    recorder.send_signal(signal.SIGINT)
    out, err = recorder.communicate(timeout=60)
    mt.equal((recorder.returncode, out), (0, "%s: recording stops in 1 process\n" % target.output), err)
    mt.check("was attached to" in err and "grow" in err, err)
    target.ask("a 10")
    mt.check(target.ask("w").split()[0] != "libmemtrace.so", "after Ctrl-C it is hooked")
    mt.equal(target.end(b"q\n"), WHOLE)
    target = attachee("malloc", 0.5)
    recorder = subprocess.Popen([mt.MEMTRACE, "run", "--pid", str(target.pid), "-o", target.output], env=mt.clean_env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    recorder.stderr.readline()
    mt.equal(target.end(), WHOLE)
    err = recorder.communicate(timeout=60)[1]
    mt.equal(recorder.returncode, 0, err)
    mt.check("was attached to" in err, err)


def case_live_of_a_pid():
    target = attachee("talk", 0)
    live = subprocess.Popen([mt.MEMTRACE, "live", "--every", "1s", str(target.pid)], env=mt.clean_env(MEMTRACE_OUTPUT=target.output), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    mt.check("heap" in live.stdout.readline(), live.stderr.read() if live.poll() is not None else "no line")
    target.ask("a 100")
    mt.equal(target.end(b"q\n"), WHOLE)
    out, err = live.communicate(timeout=60)
    mt.check("attached to process %d; memtrace stop %d ends that" % (target.pid, target.pid) in err, err)
    mt.check(re.search(r"heap \d+(\.\d+)? (KiB|MiB)", out), out)


def case_processes_from_before_are_named():
    """Workers that were there already are not recorded. A child that has ended, and whose parent has not asked for its status, is none."""
    target = attaching.Target([mt.python(), "-c", """import os, sys
ended = os.fork()
if not ended: os._exit(0)
os.waitid(os.P_PID, ended, os.WEXITED | os.WNOWAIT)
child = os.fork()
if child: print("ready", flush=True)
sys.stdin.read()
if child: os.waitpid(child, 0)"""])
    done = target.memtrace("start", str(target.pid))
    mt.equal(done.status, 0, done)
    mt.check("1 process that it has started before is not recorded; each can be attached to: " in done.err, done.err)
    worker = done.err.split()[-1]
    again = target.memtrace("start", worker)
    mt.equal((again.status, again.err), (0, ""), again)
    mt.equal(target.end(), ("", "", 0))


def refuses(target, text, pid=None, status=3):
    before = attaching.state(target.pid)
    done = target.memtrace("start", str(pid or target.pid))
    mt.equal((done.status, done.out, len(done.err.splitlines())), (status, "", 1), "memtrace start: %s" % done)
    mt.check(text in done.err, done.err)
    after = attaching.state(target.pid)
    same = ("Threads", "TracerPid", "SigBlk", "SigPnd", "ShdPnd")
    mt.equal([after[k] for k in same] + [after["State"][0] == "T"], [before[k] for k in same] + [before["State"][0] == "T"], "it is as it was")
    with open("/proc/%d/maps" % target.pid, encoding="utf-8") as f:
        mt.check("libmemtrace" not in f.read(), "the library is there")


def built(name, source, *flags, compiler="gcc"):
    path = os.path.join(mt.scratch("built"), name)
    done = mt.execute([compiler, "-x", "c", "-", "-o", path, *flags], stdin=source.encode())
    mt.equal(done.status, 0, done.err)
    return path


WAITS = '#include <unistd.h>\nint main(void) { write(1, "ready\\n", 6); char c; return read(0, &c, 1) == 0 ? 5 : 5; }\n'


def case_refused():
    target = attaching.Target([built("static", WAITS, "-static")])
    refuses(target, "statically linked")
    mt.equal(target.end(), ("", "", 5))
    if shutil.which("musl-gcc"):
        target = attaching.Target([built("musl", WAITS, compiler="musl-gcc")])
        refuses(target, "musl")
        mt.equal(target.end(), ("", "", 5))
    target = attachee("malloc", 1.5)
    os.kill(target.pid, signal.SIGSTOP)
    mt.check(attaching.wait_for(lambda: attaching.state(target.pid)["State"].startswith("T")), "not stopped")
    refuses(target, "is stopped")
    os.kill(target.pid, signal.SIGCONT)
    mt.equal(target.end(), WHOLE)
    done = mt.execute([*attaching.START, "999999999"], env=mt.clean_env())
    mt.equal(done.status, 3, done)
    mt.check("no such process" in done.err, done.err)


def case_refused_traced():
    if not shutil.which("strace"):
        mt.skip("no strace")
    target = attachee("wait", 2)
    tracer = subprocess.Popen(["strace", "-f", "-o", "/dev/null", "-p", str(target.pid)], stderr=subprocess.DEVNULL)
    mt.check(attaching.wait_for(lambda: attaching.state(target.pid)["TracerPid"] != "0"), "strace has not attached")
    done = target.memtrace("start", str(target.pid))
    tracer.send_signal(signal.SIGINT)
    tracer.wait()
    mt.check(done.status == 3 and "is traced by strace" in done.err, done)
    target.end()


def case_refused_other_user():
    if os.geteuid() != 0:
        mt.skip("takes root")
    target = attachee("wait", 1.5)
    done = mt.execute([*attaching.START, str(target.pid)], env=mt.clean_env(), preexec_fn=lambda: os.setuid(65534))
    mt.check(done.status == 3 and "belongs to the user root" in done.err, done)
    mt.equal(target.end(), WHOLE)


def case_root_attaches_to_another_user():
    """The trace is the program's, in a place where it may write."""
    if os.geteuid() != 0:
        mt.skip("takes root")
    target = attaching.Target([mt.program("attachee"), "malloc", "1.5"], preexec_fn=lambda: (os.chdir("/tmp"), os.setgid(65534), os.setuid(65534)))
    done = target.memtrace("start", str(target.pid), output=False)
    mt.equal(done.status, 0, done)
    mt.equal(target.end(), WHOLE)
    path = done.out.split(":")[0]
    mt.equal(os.stat(path).st_uid, 65534)
    shutil.rmtree(mt.Trace(path).settle().path)


def rooted(kind, seconds):
    """A program in a root directory of its own, in which there is nothing but what it needs."""
    mt.need_root()
    root = mt.scratch("root")
    program = mt.program("attachee")
    for path in [program] + re.findall(r"(?m)(/\S+) \(0x", mt.execute(["ldd", program]).out):
        there = root + (path if path != program else "/attachee")
        os.makedirs(os.path.dirname(there), exist_ok=True)
        shutil.copy(path, there)
    for name in ("proc", "dev", "tmp"):
        os.makedirs(os.path.join(root, name))
    mounts = 'mount --rbind /proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" "$@"'
    return root, attaching.Target([mt.need("unshare"), "-m", "sh", "-c", mounts, root, "/attachee", kind, str(seconds)])


@mt.variants("malloc", "wait")
def case_in_another_root(kind):
    root, target = rooted(kind, 2)
    done = target.memtrace("start", str(target.pid), output=False)
    mt.equal((done.status, done.err), (0, ""), done)
    mt.equal(target.end(), WHOLE)
    (name,) = [n for n in os.listdir(os.path.join(root, "tmp")) if n.startswith("memtrace-attachee")]
    mt.equal(done.out.split(":")[0], "/proc/%d/root/tmp/%s" % (target.pid, name), "where the trace is")
    trace = mt.Trace(os.path.join(root, "tmp", name))
    mt.equal(mt.execute([mt.MEMTRACE, "record", trace.path]).status, 0)
    mt.equal(trace.tool("check").status, 0, trace.tool("check"))


def case_opened_by_the_program():
    """dlopen of the library hooks the program, too."""
    source = """#include <dlfcn.h>
#include <stdlib.h>
int main(int n, char **a) { void *h = dlopen(a[1], RTLD_NOW); for (int i = 0; i < 100; i++) a[0] = malloc(5000); return h && a[0] ? n - 2 : 9; }
"""
    output = os.path.join(mt.scratch("opened"), "t")
    done = mt.execute([built("opens", source, "-fno-builtin", "-ldl"), mt.SHIM], env=dict(mt.clean_env(), MEMTRACE_OUTPUT=output))
    mt.equal((done.status, done.out, done.err), (0, "", ""))
    trace = mt.Trace(output).settle()
    mt.equal(trace.report["processes"][0]["host"]["allocations"], 100)


def case_freed_by_a_handler_at_fork():
    """Handlers that the program registered before it was attached to run after ours."""
    output = os.path.join(mt.scratch("handler"), "t")
    done = mt.execute([mt.program("fork_window"), "handler", mt.SHIM], env=dict(mt.clean_env(), MEMTRACE_OUTPUT=output))
    mt.equal((done.status, done.out, done.err), (0, "the same address\ndone\n", ""))
    trace = mt.Trace(output).settle().intact()
    mt.equal(trace.report["losses"]["missed_frees"], 0, "the child got an address that it had already")


def case_nothing_is_hooked():
    """Of a process that says so, whatever was in the way, nobody says that it is healthy."""
    target = attaching.Target([mt.program("attachee"), "talk", "0"], env=dict(mt.shim_env(os.path.join(mt.scratch("unhooked"), "t"))))
    trace = mt.Trace(target.ask("w").split()[3])
    with open(os.path.join(trace.path, "%d-0.info" % target.pid), "r+b") as f:
        f.seek(mt.offsets("struct mt_info", "attached"))
        f.write((3).to_bytes(4, "little"))
    mt.equal(target.end(b"q\n"), WHOLE)
    text = trace.settle().summary()
    mt.check("nothing is hooked" in text and "healthy" not in text, text)


if __name__ == "__main__":
    mt.main()
