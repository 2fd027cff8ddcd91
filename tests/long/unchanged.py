#!/usr/bin/env python3
"""Tracers, sanitizers, servers and programs without unwind tables do recorded what they do plain: output, status, and nothing lost. A row of
ROWS is a program; --table [NAME...] runs them and writes their rows of docs/VERIFICATION.md, whatever they show.

JIT_ROUNDS=N: how long LuaJIT and node run (1: seconds, 60: minutes). UNCHANGED="redis nginx" picks rows."""
# timeout: 7200
# serial: processor time is compared
import glob
import os
import pwd
import re
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

PAGE = os.path.join(mt.TOP, "docs/VERIFICATION.md")
BEGIN, END = "<!-- unchanged -->\n", "<!-- /unchanged -->\n"
HEAD = ["| program | output | status | CPU, recorded : plain | events lost | processes |", "|---|---|---|---|---|---|"]
ROUNDS = int(os.environ.get("JIT_ROUNDS", "1"))
WANTED = os.environ.get("UNCHANGED", "").split()
SHARED = os.path.join(mt.TOP, "tests/programs")

# ---- what is compared ----

PIDS = [(r"==\d+==", "==PID=="), (r"0x[0-9a-f]+", "ADDRESS")]
SUMMARY = [(r"(?m)^(?!SUMMARY|forked|spawned|end|\d+$).*\n", "")]  # stacks have frames of the library
# gdb names threads and processes by number, and may say more of a library that has no debug information.
GDB = [(r"0x[0-9a-f]+", "ADDRESS"), (r"LWP \d+", "LWP"), (r"process \d+", "process"), (r"(?m)^\[New Thread.*\n|^\[Thread ADDRESS.*exited\]\n", "")]
SECONDS = [(r"\d+\.\d+ ?s(ec)?\b", "TIME"), (r"(?m)^0:\d\d:\d\d load avg: [\d.]+", "TIME"), (r"\d+ (ms|min \d+ sec)", "TIME")]
NUMBERS = [(r"[\d.]+", "N")]


def told(text, changes):
    for pattern, replacement in changes:
        text = re.sub(pattern, replacement, text)
    return text


# ---- rows ----
# A shell script; $RECORD before a command records it and what it starts, and does nothing in the plain run. $T: tests/programs, $P: those built.


class Row:
    def __init__(self, name, what, script, needs=(), changes=(), seconds=120, processes=1, user=None, lost=None, alone=False):
        """PROCESSES: how many at least are in the trace. LOST: which losses are as docs/LIMITS.md has them, {"events": {reason}}. ALONE: none is recorded, and the trace says that these have a
        sanitizer's library. CHANGES: (pattern, replacement) of what differs from run to run anyway."""
        self.name, self.what, self.script, self.needs, self.changes = name, what, script, needs, changes
        self.seconds, self.processes, self.user, self.may_lose, self.alone = seconds, processes, user, lost or {}, alone


def sanitized(compiler, sanitizer, what):
    script = '%s -g -O1 -w -fsanitize=%s "$T/watched.c" -o w -lpthread || exit 90; for what in none %s; do $RECORD ./w $what; echo $?; done'
    name = "%s-%s" % (compiler, sanitizer)
    return Row(name, "%s `-fsanitize=%s`, a healthy program and one with: %s" % (compiler, sanitizer, what), script % (compiler, sanitizer, what),
               [compiler], SUMMARY, processes=2, alone=compiler == "gcc")


FOLLOW = r"""
gdb -q -batch -nx -ex "set exec-wrapper $RECORD" -ex "set follow-fork-mode child" -ex run "$P/watched" 2>&1; echo $?
gdb -q -batch -nx -ex "set exec-wrapper $RECORD" -ex "set follow-fork-mode child" -ex run --args "$P/busy" 40000 100 2000 2>&1; echo $?
"""
STRESS = r"""
for s in $( { stress-ng --class memory?; stress-ng --class vm?; } 2>&1 | sed 's/.*: //' | tr ' ' '\n' | sort -u); do
	$RECORD stress-ng --$s 1 --$s-ops 10 -t 3 --vm-bytes 32m --stream-l3-size 1m --memrate-bytes 16m --bigheap-growth 1m --temp-path . >log 2>&1
	echo $s $?
done
"""
REDIS = r"""
$RECORD redis-server --port 0 --unixsocket ./socket --save '' --daemonize no >log 2>&1 & server=$!
until redis-cli -s ./socket ping >/dev/null 2>&1; do sleep 0.1; done
redis-benchmark -s ./socket -q -n 40000 -c 20 -r 10000 -t set,get,incr,lpush,rpop,sadd,hset,zadd,lrange_100,mset | tr '\r' '\n' | grep -c 'requests per second'
redis-cli -s ./socket flushall
redis-cli -s ./socket debug populate 50000 key 200
redis-cli -s ./socket debug digest
redis-cli -s ./socket bgsave >/dev/null
redis-cli -s ./socket bgrewriteaof >/dev/null
redis-cli -s ./socket memory purge
redis-cli -s ./socket shutdown nosave force 2>/dev/null
wait $server; echo $?
"""
NGINX = r"""
mkdir -p www logs; seq 1 20000 >www/large; echo small >www/small
cat >conf <<end
daemon off; worker_processes 2; pid $PWD/pid; error_log $PWD/error; user $(id -un);
events { worker_connections 200; }
http { access_log $PWD/access; gzip on; gzip_types *; client_body_temp_path $PWD/logs; proxy_temp_path $PWD/logs; fastcgi_temp_path $PWD/logs;
uwsgi_temp_path $PWD/logs; scgi_temp_path $PWD/logs; server { listen 127.0.0.1:$PORT; root $PWD/www; } }
end
$RECORD nginx -c "$PWD/conf" -e "$PWD/error" & server=$!
until [ -s pid ]; do sleep 0.1; done; sleep 0.3
for file in small large; do
	ab -q -n 8000 -c 16 -k -H 'Accept-Encoding: gzip' http://127.0.0.1:$PORT/$file | grep -E '^(Complete|Failed|Non-2xx|Document|HTML)'
done
kill -HUP $server; sleep 1
ab -q -n 2000 -c 16 http://127.0.0.1:$PORT/large | grep -E '^(Complete|Failed|Non-2xx|Document|HTML)'
kill -QUIT $server; wait $server; echo $?; grep -cE 'alert|emerg|crit' error
"""
POSTGRES = r"""
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
$RECORD $bin/initdb -D data -U u --no-sync >log 2>&1; echo $?
$RECORD $bin/postgres -D data -k "$PWD" -h '' -F >log 2>&1 & server=$!
until $bin/pg_isready -q -h "$PWD" -U u; do sleep 0.2; done
run="-h $PWD -U u postgres"
pgbench -q -i -s 2 $run >>log 2>&1; echo $?
pgbench --random-seed=1 -c 4 -j 2 -t 500 $run 2>&1 | grep -E '^number|^transaction type'
pgbench --random-seed=1 -S -c 4 -j 2 -t 2000 $run 2>&1 | grep -E '^number|^transaction type'
psql $run -Atc 'select count(*), sum(delta) from pgbench_history; select sum(abalance) from pgbench_accounts; select sum(length(x)) from (select string_agg(aid::text, $$,$$ order by filler, aid) x from pgbench_accounts group by bid) y'
kill -INT $server; wait $server; echo $?
"""
PYTHON = "test_threading test_subprocess test_mmap test_signal test_gc test_fork1"
LUAJIT = r"""
local ffi, rounds = require("ffi"), tonumber(arg[1])
ffi.cdef[[void *malloc(size_t); void free(void *); void *realloc(void *, size_t); void *calloc(size_t, size_t);]]
local random, sum = 1, 0
local function next_of(limit) random = (random * 16807) % 2147483647; return random % limit end
for round = 1, rounds * 20 do
	local kept = {}
	for i = 1, 20000 do  -- compiled: C's functions are called from code that has no unwind tables
		local size = i % 400 == 0 and 200000 + next_of(400000) or 16 + next_of(2000)
		local p = ffi.cast("uint8_t *", ffi.C.malloc(size))
		p[size - 1] = i % 251
		local k = next_of(200) + 1
		if kept[k] then sum = (sum + kept[k].p[kept[k].n - 1]) % 1000003; ffi.C.free(kept[k].p) end
		kept[k] = {p = p, n = size}
	end
	for k, v in pairs(kept) do ffi.C.free(v.p) end
	local parts = {}
	for i = 1, 3000 do parts[#parts + 1] = string.rep(tostring(i), 1 + i % 50) end
	sum = (sum + #table.concat(parts)) % 1000003
	for i = 1, 50 do
		local thread = coroutine.wrap(function() for j = 1, 20 do coroutine.yield(("x"):rep(j * 100)) end end)
		for j = 1, 20 do sum = (sum + #thread()) % 1000003 end
	end
	collectgarbage()
end
print(sum)
"""
NODE = r"""
const zlib = require('zlib'), {Worker} = require('worker_threads'), rounds = +process.argv[2];
let random = 1, sum = 0;
const next = limit => (random = random * 16807 % 2147483647) % limit;
for (let round = 0; round < rounds * 6; round++) {
	const kept = [];
	for (let i = 0; i < 4000; i++) {
		const b = Buffer.allocUnsafeSlow(i % 100 ? 5000 + next(20000) : 300000 + next(500000));
		b.fill(i & 255); const k = next(50);
		if (kept[k]) sum = (sum + kept[k][kept[k].length - 1]) % 1000003;
		kept[k] = b;
	}
	const text = JSON.stringify(Array.from({length: 20000}, (_, i) => ({i, s: 'x'.repeat(i % 30)})));
	sum = (sum + zlib.gunzipSync(zlib.gzipSync(text)).length + JSON.parse(text).length) % 1000003;
	const memory = new WebAssembly.Memory({initial: 1, maximum: 200}); for (let i = 0; i < 150; i++) memory.grow(1);
	sum += [...new Map(Array.from({length: 20000}, (_, i) => [i * 7 % 20011, i])).keys()].sort((a, b) => b - a)[7];
	if (/^(a+)+b$/.test('a'.repeat(18))) sum++;
}
console.log(sum);
new Worker("let a = []; for (let i = 0; i < 200; i++) a.push(Buffer.alloc(1e5)); require('worker_threads').parentPort.postMessage(a.length)", {eval: true})
	.on('message', m => { console.log(m); process.exitCode = 9; });
"""

ROWS = [
    Row("strace-tracee", "`strace -f`, its tracee recorded", 'strace -f -o log $RECORD sh -c \'"$P/watched"; "$P/busy" 40000 100 2000\'; echo $?; grep -c "exited with 5" log', ["strace"], processes=3),
    Row("strace", "`strace -f`, recorded with its tracees", '$RECORD strace -f -o log sh -c \'"$P/watched"; "$P/busy" 40000 100 2000\'; echo $?; grep -c "exited with 5" log', ["strace"], processes=4, seconds=60),
    sanitized("gcc", "thread", "race"),
    sanitized("clang", "thread", "race"),
    sanitized("gcc", "address", "leak overflow after"),
    sanitized("clang", "address", "leak overflow after"),
    sanitized("gcc", "leak", "leak"),
    sanitized("clang", "leak", "leak"),
    Row("valgrind", "valgrind's memcheck, of a healthy program and of one with: leak, overflow, use after free, unset memory",
        'for what in none leak overflow after unset; do $RECORD valgrind --leak-check=full --child-silent-after-fork=yes --error-exitcode=9 "$P/watched" $what '
        '2>err; echo $?; grep -E "Invalid|definitely lost: |depends on|ERROR SUMMARY" err; done',
        ["valgrind"], PIDS, seconds=240),
    Row("gdb-breakpoint", "gdb, a breakpoint on malloc that is passed to the end", 'gdb -q -batch -nx -ex "set breakpoint pending on" -ex "set exec-wrapper $RECORD" '
        '-ex "break malloc" -ex "ignore 1 1000000" -ex run "$P/watched"; echo $?', ["gdb"],
        [(r"(?m)^Breakpoint 1 .*\n|^Will ignore.*\n|^\(.*locations.*\)\n", ""), *GDB], seconds=240),
    Row("gdb-follow-child", "gdb that follows forked children", FOLLOW, ["gdb"], GDB, processes=2, seconds=60),
    Row("gdb", "gdb, recorded with what it runs", '$RECORD gdb -q -batch -nx -ex run -ex "info inferiors" "$P/watched"; echo $?', ["gdb"], GDB, seconds=60),
    Row("perf", "`perf record -g` of a recorded program", 'perf record -q -g -e cpu-clock -o data $RECORD "$P/busy" 300000 100 2000; echo $?; '
        'perf script -i data 2>/dev/null | grep -q malloc && echo sampled', ["perf"]),
    Row("perf-recorded", "`perf record`, recorded itself", '$RECORD perf record -q -e cpu-clock -o data "$P/busy" 300000 100 2000; echo $?; test -s data && echo data', ["perf"]),
    Row("stress-ng", "stress-ng, each stressor of its classes memory and vm", STRESS, ["stress-ng"], seconds=900, processes=100, lost={"events": {"shared"}}),
    Row("cpython", "CPython's own " + PYTHON, '$RECORD /usr/bin/python3 -m test -v %s 2>&1 | grep -E "^test_.* \\.\\.\\. .*(ok|skipped.*|FAIL|ERROR)$|^(Ran|OK|FAILED|Result)"' % PYTHON,
        ["/usr/lib/python3*/test/test_gc.py"], [*SECONDS, (r"(?m)\.\.\. task .*", "... task")], seconds=900, processes=20, lost={"unrecorded_processes": {"rights"}}),  # some change the user
    Row("redis", "redis, ten of redis-benchmark's tests, its forks", REDIS, ["redis-server", "redis-benchmark"], seconds=240),
    Row("nginx", "nginx with two workers, 18,000 requests of ab, a reload", NGINX, ["nginx", "ab"], seconds=240, processes=3),
    Row("postgres", "postgres: initdb, 10,000 transactions of pgbench", POSTGRES, ["pgbench", "/usr/lib/postgresql/*/bin/postgres"], seconds=300, processes=5, user="postgres"),
    Row("luajit", "LuaJIT, C's functions called from compiled code", '$RECORD luajit lua %d; echo $?' % ROUNDS, ["luajit"], seconds=120 + 60 * ROUNDS),
    Row("node", "node: buffers, JSON, WebAssembly, a worker", '$RECORD node node.js %d; echo $?' % ROUNDS, ["node"], seconds=120 + 60 * ROUNDS),
]
FILES = {"lua": LUAJIT, "node.js": NODE}


# ---- running ----


class Seen:
    """What a run showed."""

    def __init__(self, row, traced):
        self.folder, self.why = place(row), None
        self.trace = mt.Trace(os.path.join(self.folder, "trace", "t"))
        env = mt.clean_env(RECORD=self.recording(traced), T=SHARED, P=os.path.dirname(mt.program("watched")), PORT=str(PORT), LC_ALL="C", HOME=self.folder,
                           PATH=os.environ["PATH"] + ":/usr/sbin:/sbin")
        command = ["sh", "-c", row.script]
        if row.user and os.geteuid() == 0:
            command = ["setpriv", "--reuid=" + row.user, "--regid=" + row.user, "--clear-groups", *command]
        before = mt.processor_seconds()
        try:
            done = mt.execute(command, env=env, cwd=os.path.join(self.folder, "work"), timeout=row.seconds)
            self.status, self.out = done.status, told(done.out, row.changes) + told(done.err, row.changes)
        except mt.Fail as why:
            self.status, self.out, self.why = None, "", str(why)
        finally:
            self.cpu = mt.processor_seconds() - before
            end_all(self.folder)


    def recording(self, traced):
        """A command that only becomes another one, which is recorded from its first instruction on."""
        path = os.path.join(self.folder, "record")
        with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o755), "w") as file:
            file.write("#!/bin/sh\nexport LD_PRELOAD=%s MEMTRACE_OUTPUT=%s MEMTRACE_STACKS=all\nexec \"$@\"\n" %
                       (mt.SHIM if traced else "", self.trace.path))
        return path


PORT = 20000 + os.getpid() % 10000


def place(row):
    """A folder with the row's files in `work`, which its user may enter and write to."""
    folder = mt.scratch(row.name)
    for name in ("work", "trace"):
        os.mkdir(os.path.join(folder, name))
        if row.user and os.geteuid() == 0:
            who = pwd.getpwnam(row.user)
            os.chown(os.path.join(folder, name), who.pw_uid, who.pw_gid)
    for path in (mt.Scratch.root, folder):
        os.chmod(path, 0o711)
    for name, text in FILES.items():
        with open(os.path.join(folder, "work", name), "w") as file:
            file.write(text)
    return folder


def end_all(folder):
    """Ends what a hang left, if anything: whoever works in that folder."""
    for cwd in glob.glob("/proc/[0-9]*/cwd"):
        try:
            if os.readlink(cwd).startswith(folder):
                os.kill(int(cwd.split("/")[2]), signal.SIGKILL)
        except OSError:
            pass


class Compared:
    def __init__(self, row):
        for need in row.needs:
            if "*" in need and not glob.glob(need):
                mt.skip(need + " is not installed")
            if "*" not in need:
                mt.need(need)
        self.row, self.plain = row, Seen(row, False)
        mt.check(self.plain.why is None, "the plain run: %s" % self.plain.why)
        self.traced = Seen(row, True)
        self.losses, self.processes, self.alone, self.damage = {}, 0, 0, None
        if self.traced.trace.exists():
            self.read(self.traced.trace)

    def read(self, trace):
        try:
            trace.settle()
            if self.row.alone:
                self.alone = int((re.findall(r"(\d+) processes with a sanitizer, left alone", trace.tool("report").err) or ["0"])[0])
                return
            checked = trace.tool("check")
            self.losses = {name: n for name, n in trace.losses().items() if name not in ("truncated_stacks", "unplaced_stacks", "unrecorded")}
            self.processes = len(trace.processes)
            self.damage = None if checked.status == 0 or self.losses else (checked.out + checked.err)[:300]
        except mt.Fail as why:
            self.damage = str(why)[:300]

    def differs(self):
        """The first line that does, of both."""
        if self.traced.why:
            return self.traced.why
        for plain, traced in zip(self.plain.out.splitlines() + [None], self.traced.out.splitlines() + [None]):
            if plain != traced:
                return "recorded %r, plain %r" % (traced, plain)
        return None if self.plain.out == self.traced.out else "by its end"

    def wrong(self):
        found = [self.differs(), self.damage]
        found += ["status %r, plain %r" % (self.traced.status, self.plain.status)] if self.traced.status != self.plain.status else []
        found += ["lost %s" % self.losses] if any(self.reasons(name) - self.row.may_lose.get(name, set()) for name in self.counted()) else []
        processes = self.alone if self.row.alone else self.processes
        found += ["%d processes, not %d" % (processes, self.row.processes)] if processes < self.row.processes else []
        return [text for text in found if text]

    def cells(self):
        if self.traced.why:
            return ["**hangs**", "", "", "", ""]
        lost = ", ".join("%s %s (%s)" % (self.losses[name], name.replace("_", " "), ", ".join(sorted(self.reasons(name)))) for name in self.counted())
        lost = "left alone, and said (%d processes)" % self.alone if self.alone else lost
        return ["same" if not self.differs() else "**differs**", "same" if self.plain.status == self.traced.status else "**%s, plain %s**" % (self.traced.status, self.plain.status),
                "%.2f" % (self.traced.cpu / max(self.plain.cpu, 0.01)), (lost or "0") + (", **check complains**" if self.damage else ""), "{:,}".format(self.processes)]

    def counted(self):
        return [name for name in self.losses if not name.endswith("_why")]

    def reasons(self, name):
        """Those that the trace has; a loss without any is no less of one."""
        return set(self.losses.get({"unrecorded_processes": "unrecorded"}.get(name, name) + "_why") or ["unknown"])

    def markdown(self):
        return "| %s | %s |" % (self.row.what, " | ".join(self.cells()))


@mt.variants(*[row.name for row in ROWS if row.name in WANTED or not WANTED])
def case_unchanged(name):
    seen = Compared(next(row for row in ROWS if row.name == name))
    print("# " + seen.markdown())
    mt.check(not seen.wrong(), "; ".join(seen.wrong()))


# ---- the table ----


def written():
    """The page, and its rows by what they are about."""
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    return page, {line.split(" | ")[0]: line for line in page[page.index(BEGIN):page.index(END)].splitlines()[3:]}


def refresh(names):
    """Row by row: what was done stands, however it ends."""
    for row in ROWS:
        if names and row.name not in names:
            continue
        try:
            seen = Compared(row)
        except (mt.Skip, mt.Fail) as why:
            print("%s: %s" % (row.name, why), flush=True)
            continue
        print(seen.markdown(), *seen.wrong(), sep="\n    ", flush=True)
        page, rows = written()
        rows["| " + row.what] = seen.markdown()
        lines = HEAD + [rows["| " + each.what] for each in ROWS if "| " + each.what in rows]
        with open(PAGE, "w", encoding="utf-8") as out:
            out.write(page[:page.index(BEGIN) + len(BEGIN)] + "\n".join(lines) + "\n" + page[page.index(END):])


if sys.argv[1:2] == ["--table"]:
    try:
        refresh(sys.argv[2:])
    finally:
        mt.Scratch.remove()
else:
    mt.main()
