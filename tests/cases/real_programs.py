#!/usr/bin/env python3
"""Programs people use give the same output and exit status under the shim, and leave an intact trace."""
# timeout: 300
import os
import re
import signal
import socket
import subprocess
import sys
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt


def same(command, least, **options):
    trace = mt.same(command, **options)
    mt.check(trace.host["allocations"] >= least, "only %d allocations" % trace.host["allocations"])
    return trace


def case_bash_pipeline():
    bash = mt.need("bash")
    script = """set -o pipefail; seq 1 20000 | sort -r | sed s/9/x/ | awk '{n += length($0)} END {print n}' | tee copy; cat copy
                for i in 1 2 3 4 5; do echo $(basename "/a/b/$i"); done; diff <(seq 5) <(seq 6); (exit 5) | cat"""
    trace = same([bash, "-c", script], 1000)
    names = {p["name"] for p in trace.processes}
    mt.check({"bash", "sort", "sed", "awk", "tee"} <= {"awk" if n.endswith("awk") else n for n in names}, "recorded %s" % names)


def case_shell_builtins():
    same(["sh", "-c", "trap 'echo term' TERM; kill -TERM $$; echo $?; wait; nosuchcommand; exit 42"], 1)


def case_git():
    git = [mt.need("git"), "-c", "user.name=a", "-c", "user.email=a@b", "-c", "gc.auto=0"]
    g = " ".join(git)
    script = """%s init -q -b main r; cd r; for i in 1 2 3 4 5; do seq $i 2000 > f$i; done; %s add .; %s commit -qm one; echo x >> f1
                %s diff; %s log --format=%%T; %s status --short; %s fsck; %s show HEAD:f9""" % ((g,) * 8)
    env = {"GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nonexistent", "GIT_AUTHOR_DATE": "1700000000 +0000",
           "GIT_COMMITTER_DATE": "1700000000 +0000"}
    same(["sh", "-c", script], 1000, env=env)


def case_perl():
    script = 'my %h; $h{$_ % 1000} .= "x" x ($_ % 50) for 1..100000; print length(join("", map { $h{$_} } sort keys %h)), "\\n";' \
             'print `echo sub`; my $p = fork(); if (!$p) { print "child\\n"; exit 3 } waitpid($p, 0); print $? >> 8, "\\n"; die "end\\n"'
    same([mt.need("perl"), "-e", "$| = 1; " + script], 10000)


def case_node():
    script = """const {execSync} = require('child_process'); const zlib = require('zlib');
        let a = []; for (let i = 0; i < 200000; i++) a.push({i, s: 'x' + i});
        const z = zlib.gzipSync(Buffer.alloc(1 << 20, 'abc')); console.log(zlib.gunzipSync(z).length, a.length);
        console.log(execSync('echo child').toString().trim());
        const {Worker} = require('worker_threads');
        new Worker("require('worker_threads').parentPort.postMessage(7)", {eval: true}).on('message', m => {
            console.log(m); process.exitCode = 9; });"""
    same([mt.need("node"), "-e", script], 1000)


def case_gcc():
    source = "#include <stdio.h>\n" + "".join("int f%d(int x) { return x * %d + f%d(x); }\n" % (i, i, i - 1) if i else
                                               "int f0(int x) { return x; }\n" for i in range(500))
    source += "int main(void) { printf(\"%d\\n\", f400(1)); return undeclared_on_purpose; }"
    same([mt.need("gcc"), "-O2", "-x", "c", "-", "-o", "/dev/null"], 10000, stdin=source.encode())
    good = source.replace("undeclared_on_purpose", "4")
    same(["sh", "-c", "gcc -O1 -x c - -o prog && ./prog; echo $?"], 10000, stdin=good.encode())


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def benchmark(env, cwd):
    """Runs redis-server under env and a short benchmark against it; returns its exit status and what its data are."""
    port = str(free_port())
    server = subprocess.Popen(["redis-server", "--port", port, "--save", ""], env=env, cwd=cwd,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        client = ["redis-cli", "-p", port]
        end = time.monotonic() + 20
        while mt.plain(client + ["ping"]).out != "PONG\n":
            mt.check(time.monotonic() < end and server.poll() is None, "redis-server does not come up")
            time.sleep(0.05)
        done = mt.plain(["redis-benchmark", "-p", port, "-q", "-n", "10000", "-t", "set,get,lpush,lpop,sadd"], timeout=100)
        mt.check(done.status == 0 and "Error" not in done.out, str(done))
        mt.plain(client + ["debug", "populate", "10000", "k", "100"])
        mt.plain(client + ["bgsave"])  # forks
        size = mt.plain(client + ["dbsize"]).out
        mt.plain(client + ["shutdown", "nosave"])
        server.wait(20)
        return server.returncode, re.search(r"\d+", size) is not None, server.stderr.read()
    finally:
        if server.poll() is None:
            server.send_signal(signal.SIGKILL)
        server.wait()


def case_redis():
    for command in ("redis-server", "redis-benchmark", "redis-cli"):
        mt.need(command)
    want = benchmark(mt.clean_env(), mt.scratch())
    output = os.path.join(mt.scratch("trace"), "t")
    mt.equal(benchmark(mt.shim_env(output), mt.scratch()), want)
    trace = mt.Trace(output).intact()
    mt.check(trace.host["allocations"] > 50000, "only %d allocations" % trace.host["allocations"])


def case_pyenv_style_wrapper():
    """`python` is a shell script that finds and execs the real one."""
    folder = mt.scratch()
    path = os.path.join(folder, "python")
    with open(path, "w") as file:
        file.write("#!/bin/sh\nversion=$(echo 3 | sed s/3/three/)\n[ $version = three ] && exec %s \"$@\"\n" % mt.python())
    os.chmod(path, 0o755)
    env = {"PATH": folder + ":" + os.environ["PATH"]}
    trace = same(["python", "-c", "import sys; print(sys.argv, [bytearray(100000) for i in range(9)][0][0]); sys.exit(4)", "a b"],
                 100, env=env)
    last = [p for p in trace.processes if p["exit"]["kind"] == "exit" and p["exit"]["code"] == 4]
    mt.equal(len(last), 1, "processes that end with 4")
    mt.check("python" in last[0]["name"], last[0])


mt.main()
