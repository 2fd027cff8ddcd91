#!/usr/bin/env python3
"""memtrace push: what a server of continuous profiles gets of a running program, also of one that can't be reached for a while."""
import base64
import collections
import http.server
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import cgroup
import consumers
import golden_traces
import hostile
import mt

PATHS = {"pyroscope": "/push.v1.PusherService/Push", "parca": "/api/profiles/writeraw"}
Profile = collections.namedtuple("Profile", "labels types samples duration period comments")


def profile(raw):
    """As Go's pprof reads it: samples are (values, frames innermost first)."""
    path = os.path.join(mt.scratch("pprof"), "p.pb.gz")
    with open(path, "wb") as file:
        file.write(raw)
    head, rest = consumers.pprof("-raw", path).split("\nSamples:\n")
    types, *lines = rest.split("\nLocations\n")[0].splitlines()
    names, number = {}, None
    for line in rest.split("\nLocations\n")[1].split("\nMappings")[0].splitlines():
        first = re.match(r"\s*(\d+): 0x[0-9a-f]+ (?:M=\d+ )?(.*) s=\d+", line)
        number = first[1] if first else number
        names.setdefault(number, []).append((first[2] if first else re.match(r"\s*(.*) s=\d+", line)[1]).rsplit(" ", 1)[0])
    samples = []
    for line in lines:
        values, stack = re.fullmatch(r"\s*([\d ]+): ([\d ]+)\s*", line).groups()
        samples.append(([int(v) for v in values.split()], [n for l in stack.split() for n in names[l]]))
    found = re.search(r"^Duration: ([\d.]+)", head, re.M)
    return Profile(None, [word.replace("[dflt]", "") for word in types.split()], samples, float(found[1]) if found else 0,
                   re.findall(r"^Period(?:Type)?: (.*)", head, re.M), re.findall(r"^Comment: (.*)", head, re.M))


class Server:
    """Answers each request with what comes next of `answers`: a status, (status, headers), or None to hang up; then with 200."""

    def __init__(self, *answers, port=0):
        self.answers, self.got, self.bodies = list(answers), [], []
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                answer = server.answers.pop(0) if server.answers else 200
                server.got.append((self.path, answer, dict(self.headers)))
                if answer is None:
                    self.connection.close()
                    return
                status, headers = answer if isinstance(answer, tuple) else (answer, {})
                if status == 200:
                    server.bodies.append(body)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(b"{}" if status == 200 else b"no: too much")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def series(self):
        """(labels, profile as it came) of all requests that were taken, in their order."""
        for body in self.bodies:
            for series in json.loads(body)["series"]:
                labels = series["labels"]["labels"] if isinstance(series["labels"], dict) else series["labels"]
                for sample in series["samples"]:
                    yield {l["name"]: l["value"] for l in labels}, base64.b64decode(sample["rawProfile"], validate=True)

    def profiles(self, **wanted):
        return [profile(raw)._replace(labels=labels) for labels, raw in self.series() if all(labels.get(k) == v for k, v in wanted.items())]


# Two sites keep what is known to the byte, one makes 300 blocks and frees them.
PROGRAM = """
import ctypes, sys
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
def few():
    return [libc.malloc(1000003) for _ in range(3)]
def passing():
    for _ in range(300): libc.free(libc.malloc(70001))
kept = few()
passing()
print("ready", flush=True)
sys.stdin.read()
"""


def recorded(program=PROGRAM, **env):
    path = os.path.join(mt.scratch("trace"), "t")
    done = mt.execute([mt.python(), "-c", program], env=mt.shim_env(path, **env), stdin=b"", cwd=mt.scratch())
    mt.equal(done.status, 0, "%r" % done)
    mt.Trace(path).settle()
    return path


class Arguments:
    """Those of all processes that come by."""

    def __enter__(self):
        self.words, self.over = set(), False
        self.thread = threading.Thread(target=self.look)
        self.thread.start()
        return self

    def look(self):
        while not self.over:
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    with open("/proc/%s/cmdline" % pid, "rb") as file:
                        self.words.add(tuple(file.read().split(b"\0")))
                except OSError:
                    pass  # it is gone
            time.sleep(0.02)

    def __exit__(self, *_):
        self.over = True
        self.thread.join()


def push(server, url, *words, status=0, **options):
    to = ["--to", server, url] if url else []
    done = mt.execute([mt.MEMTRACE, "push", *to, *words], env=mt.clean_env(**options.pop("env", {})), **options)
    mt.equal((done.status, done.out), (status, ""), done.err)
    return done.err


def of_site(profiles, function):
    """[sum of each value] of stacks with that function"""
    sums = [sum(column) for column in zip(*(values for p in profiles for values, frames in p.samples if any(function in f for f in frames)))]
    return sums


@mt.variants("pyroscope", "parca")
def case_what_is_alive_and_what_was_allocated(to):
    trace = recorded()
    with Server() as server:
        mt.equal(push(to, server.url + "/", trace), "")
    mt.equal({path for path, _, _ in server.got}, {PATHS[to]})
    alive, made = server.profiles(__name__="heap")
    mt.equal((alive.types, made.types), (["inuse_objects/count", "inuse_space/bytes"], ["alloc_objects/count", "alloc_space/bytes"]))
    mt.equal((of_site([alive], "few"), of_site([alive], "passing")), ([3, 3 * 1000003], []))
    mt.equal((of_site([made], "few"), of_site([made], "passing")), ([3, 3 * 1000003], [300, 300 * 70001]))
    mt.equal((alive.duration, made.duration > 0, alive.period, made.comments), (0, True, ["space bytes", "1"], []))
    host = mt.Trace(trace).report["host"]
    mt.equal([sum(v) for v in zip(*(values for values, _ in made.samples))], [host["allocations"], host["allocated_bytes"]])
    mt.equal([sum(v) for v in zip(*(values for values, _ in alive.samples))], [host["live_blocks"], host["live_bytes"]])
    labels = alive.labels
    mt.equal((labels["device"], labels.get("__delta__"), labels["pid"].isdigit()), ("host", "false" if to == "pyroscope" else None, True))
    mt.equal(sorted(os.listdir(trace)), [name for name in sorted(os.listdir(trace)) if "push" not in name], "what is left of it")


def case_labels():
    trace = recorded(RANK="3", WORLD_SIZE="8", SLURM_JOB_ID="4711", MEMTRACE_TAGS="pp=3,1tp=\x1bx,pid=0")
    with Server() as server:
        push("pyroscope", server.url, "--labels", "team=a,cluster=b", trace, env={"MEMTRACE_PUSH_HEADERS": "X-Scope-OrgID=me,Authorization=Bearer%20x"})
    labels = server.profiles(__name__="heap")[0].labels
    mt.equal({k: labels.get(k) for k in ("rank", "job", "pp", "_tp", "team", "cluster")},
             {"rank": "3", "job": "4711", "pp": "3", "_tp": "?x", "team": "a", "cluster": "b"})
    mt.check(labels["pid"] != "0", "a tag took the place of a label")
    headers = {name.lower(): value for name, value in server.got[0][2].items()}
    mt.equal((headers["x-scope-orgid"], headers["authorization"]), ("me", "Bearer x"))


def case_names_are_harmless():
    path = hostile.rewrite(golden_traces.unpack("tree", mt.scratch("tree")), hostile.Changer(1))
    with Server() as server:
        push("pyroscope", server.url, path)
    texts = [text for labels, _ in server.series() for pair in labels.items() for text in pair]
    texts += [name for p in server.profiles() for _, frames in p.samples for name in frames]
    mt.check(len(texts) > 50, "%d texts" % len(texts))
    mt.equal([text for text in texts if hostile.UNSEEN.search(text)], [])


@mt.variants(("-c",), ("script",))
def case_the_service_is_the_script(how):
    path = os.path.join(mt.scratch("trace"), "t")
    script = os.path.join(mt.scratch("script"), "train.py")
    with open(script, "w") as file:
        file.write(PROGRAM)
    words = ["-c", PROGRAM] if how == "-c" else ["-X", "dev", script, "--lr", "1"]
    mt.equal(mt.execute([mt.python(), *words], env=mt.shim_env(path), stdin=b"").status, 0)
    mt.Trace(path).settle()
    with Server() as server:
        push("pyroscope", server.url, path)
        push("pyroscope", server.url, "--service", "mine", path)
    names = [labels["service_name"] for labels, _ in server.series() if labels["__name__"] == "heap"]
    mt.equal((names[0], names[-1]), (os.path.basename(mt.python()) if how == "-c" else "train.py", "mine"))


MANY = """
import sys
kept = []
for i in range(300):
    exec(compile("def f%d(): kept.append(bytearray(%d))" % (i, 2000 + 16 * i), "f.py", "exec"))
    eval("f%d()" % i)
import os
os._exit(0)
"""


@mt.variants(("samples", "20"), ("bytes", "3K"))
def case_bounded(option, most):
    """The largest stacks, and one sample that has the rest: the sum is that of all."""
    trace = recorded(MANY)
    with Server() as whole:
        push("pyroscope", whole.url, trace)
    with Server() as server:
        push("pyroscope", server.url, "--" + option, most, trace)
    (all_of_it, _), (alive, _) = whole.profiles(__name__="heap"), server.profiles(__name__="heap")
    mt.check(len(all_of_it.samples) > 300, "%d samples" % len(all_of_it.samples))
    sums = [[sum(v) for v in zip(*(values for values, _ in p.samples))] for p in (all_of_it, alive)]
    mt.equal(sums[0], sums[1])
    rest = [values for values, frames in alive.samples if frames == ["smaller stacks"]]
    mt.equal(len(rest), 1)
    if option == "samples":
        mt.equal(len(alive.samples), 20)
    else:
        mt.check(all(len(raw) <= 3 << 10 for _, raw in server.series()), "too large")
    told = sorted(values[1] for values, frames in alive.samples if frames != ["smaller stacks"])
    mt.equal(told, sorted(values[1] for values, _ in all_of_it.samples)[-len(told):], "the largest")


class Running:
    def __init__(self, program=PROGRAM, command=lambda words: words, **env):
        self.path = os.path.join(mt.scratch("trace"), "t")
        self.child = subprocess.Popen(command([mt.python(), "-c", program]), env=mt.shim_env(self.path, **env), cwd=mt.scratch(),
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        mt.equal(self.child.stdout.readline(), b"ready\n")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.kill()
        self.child.communicate()


STEPS = PROGRAM.replace('sys.stdin.read()', 'import time\nfor _ in range(35): passing(); time.sleep(0.1)')
ASKED = PROGRAM.replace('sys.stdin.read()', 'for _ in range(35): sys.stdin.readline(); passing()')


def case_while_it_runs():
    """What was allocated is told once, whenever it is told."""
    with Server() as server, Running(ASKED) as program:
        child = subprocess.Popen([mt.MEMTRACE, "push", "--to", "pyroscope", "--every", "1s", server.url, program.path], env=mt.clean_env())
        for told in range(1, 36):
            program.child.stdin.write(b"\n")
            program.child.stdin.flush()
            if told % 12 == 0:
                mt.until(lambda: len(server.bodies) >= told // 12, "a request")
        mt.equal(child.wait(mt.WAIT), 0)
    made = [p for p in server.profiles(__name__="heap") if p.types[0].startswith("alloc")]
    mt.check(len(made) >= 3, "%d profiles" % len(made))
    mt.equal(of_site(made, "passing"), [300 * 36, 300 * 36 * 70001])
    mt.equal(of_site(made, "few"), [3, 3 * 1000003])
    mt.equal({tuple(of_site([p], "few")) for p in server.profiles(__name__="heap") if p.types[0].startswith("inuse")}, {(3, 3 * 1000003)})


def case_by_pid_until_it_is_told_to_stop():
    with Server() as server, Running() as program:
        child = subprocess.Popen([mt.MEMTRACE, "push", "--to", "parca", "--every", "1s", server.url, str(program.child.pid)], env=mt.clean_env())
        mt.until(lambda: server.bodies, "a request")
        child.send_signal(signal.SIGTERM)
        mt.equal(child.wait(mt.WAIT), 0)
        mt.equal(program.child.poll(), None, "the program")


def case_only_one_at_a_time():
    with Server() as server, Running() as program:
        child = subprocess.Popen([mt.MEMTRACE, "push", "--to", "parca", "--every", "1s", server.url, program.path], env=mt.clean_env())
        mt.until(lambda: server.bodies, "a request")
        mt.check("is pushed already" in push("parca", server.url, program.path, status=2), "no word of it")
        child.terminate()
        mt.equal(child.wait(mt.WAIT), 0)


@mt.variants((500,), (503,), (429,), (None,))
def case_tried_again(answer):
    """All of it comes, once and in order; one line says that it did not at first, and one that it does again."""
    trace = recorded()
    with Server((answer, {"Retry-After": "1"}) if answer else None, answer) as server:
        err = push("pyroscope", server.url, trace)
    mt.equal(([a[0] if isinstance(a, tuple) else a for _, a, _ in server.got][:3], len(server.bodies)), ([answer, answer, 200], 1))
    mt.equal(len(err.splitlines()), 2, err)
    mt.check("it is tried again" in err and "answers again" in err, err)


def case_refused_for_good():
    """What a server will never have is not kept."""
    trace = recorded()
    with Server(413) as server:
        err = push("pyroscope", server.url, trace)
    mt.check("refused with HTTP 413: no: too much" in err and len(err.splitlines()) == 1, err)
    mt.equal((len(server.got), [f for f in os.listdir(trace) if "push" in f]), (1, []))


def case_the_queue_waits_for_a_server():
    """Nobody listens: it stays in the trace, and the next one sends it first. prune takes it, and a reduction, for parts of the trace."""
    trace = recorded()
    with Server() as server:
        url = server.url
    err = push("pyroscope", url, "--wait", "1", trace)
    mt.check("1 requests are left" in err and "Connection refused" in err, err)
    mt.equal([f for f in os.listdir(trace) if "push" in f], ["push-000001.json"])
    with Server(port=int(url.rsplit(":", 1)[1])) as server:
        push("pyroscope", url, trace)
    mt.equal(len(server.bodies), 2)
    mt.equal(len({raw for labels, raw in server.series() if labels["__name__"] == "heap"}), 2, "the same profiles twice")
    push("pyroscope", url, "--wait", "1", trace)
    mt.equal(mt.execute([mt.MEMTRACE, "reduce", trace]).status, 0)
    done = mt.execute([mt.MEMTRACE, "prune", "--keep", "0", os.path.dirname(trace)])
    mt.equal((done.status, os.path.exists(trace)), (0, False), done.out + done.err)


def case_the_recorder_does_it():
    """The program is as it was; nothing of it is in the trace when all was sent. The URL is in nobody's arguments."""
    with Server() as server, Arguments() as seen:
        address = server.url.replace("//", "//me:secret@")
        path = os.path.join(mt.scratch("trace"), "t")
        env = mt.shim_env(path, MEMTRACE_PUSH="parca=" + address, MEMTRACE_PUSH_EVERY="1s", MEMTRACE_PUSH_LABELS="team=a")
        done = mt.execute([mt.python(), "-c", STEPS], env=env, stdin=b"")
        mt.equal((done.status, done.out, done.err), (0, "ready\n", ""))
        mt.until(lambda: of_site([p for p in server.profiles(__name__="heap", team="a") if p.types[0].startswith("alloc")], "passing") == [10800, 10800 * 70001],
                 "all that was allocated", pause=0.5)
        mt.until(lambda: not [f for f in os.listdir(path) if "push" in f], "its end")
    mt.equal(len(mt.Trace(path).report["processes"]), 1, "processes that were recorded")
    mt.equal(server.got[0][2]["Authorization"], "Basic " + base64.b64encode(b"me:secret").decode())
    senders = [words for words in seen.words if b"libmemtrace.push" in words and path.encode() in words]
    mt.check(senders and any(b"push" in words and b"libmemtrace.push" not in words for words in seen.words if path.encode() in words), "were not seen")
    mt.equal([words for words in seen.words if b"secret" in b" ".join(words)], [])


def case_the_url_from_a_variable():
    """What is no argument nobody sees; what is one counts."""
    trace = recorded()
    with Server() as server, Server() as other, Arguments() as seen:
        push("pyroscope", None, trace, env={"MEMTRACE_PUSH": "pyroscope=" + server.url})
        push("parca", other.url, trace, env={"MEMTRACE_PUSH": "pyroscope=" + server.url})
    mt.equal(([path for path, _, _ in server.got], [path for path, _, _ in other.got]), ([PATHS["pyroscope"]], [PATHS["parca"]]))
    mt.equal([words for words in seen.words if server.url.encode() in b" ".join(words)], [])
    done = mt.execute([mt.MEMTRACE, "push", trace], env=mt.clean_env(MEMTRACE_PUSH="x=http://h"))
    mt.equal((done.status, "MEMTRACE_PUSH" in done.err), (2, True), done.err)


# (what it answers, whether the request is done with, "..." in what is said)
ANSWERS = {
    "fine": (b"HTTP/1.0 200 OK\r\n\r\n", True, None),
    "fine, and cut": (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", True, None),
    "nothing": (b"", False, "it is tried again"),
    "no HTTP": (b"SSH-2.0-OpenSSH_9.6\r\n", False, "it is tried again"),
    "no number": (b"HTTP/1.1 OK\r\n\r\n", False, "it is tried again"),
    "endless line": (b"HTTP/1.1 200 " + b"x" * 70000, False, "it is tried again"),
    "endless headers": (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 300 + b"\r\n", False, "it is tried again"),
    "refused, and cut": (b"HTTP/1.1 400 no\r\nContent-Length: 99\r\n\r\n{", True, "refused with HTTP 400: {"),
    "refused": (b"HTTP/1.0 400 no\r\n\r\n\x1b[2Jwhy\xff", True, "refused with HTTP 400: ?[2Jwhy?"),
    "later, by no number": (b"HTTP/1.0 429 no\r\nRetry-After: \xb2\r\n\r\n", False, "HTTP 429"),
    "later, by a long one": (b"HTTP/1.0 503 no\r\nRetry-After: " + b"9" * 5000 + b"\r\n\r\n", False, "HTTP 503"),
    "chunks that are none": (b"HTTP/1.1 500 no\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", False, "it is tried again"),
    "elsewhere": (b"HTTP/1.0 302 no\r\nLocation: http://127.0.0.1:9/x\r\n\r\n", True, "refused with HTTP 302: http://127.0.0.1:9/x"),
    "nowhere": (b"HTTP/1.0 308 no\r\nLocation: http://[\r\n\r\n", False, "it is tried again"),
}


class Raw:
    """Answers each request with these bytes."""

    def __enter__(self):
        self.answer, self.asked = b"", 0
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()
        return self

    def serve(self):
        while True:
            client, _ = self.socket.accept()
            with client:
                got = client.recv(65536)
                if not got:
                    return
                while b"{}" not in got:
                    got += client.recv(65536)
                self.asked += 1
                client.sendall(self.answer)

    def __exit__(self, *_):
        socket.create_connection(self.socket.getsockname()).close()
        self.thread.join()
        self.socket.close()


def sender(url):
    """(a sender whose words are a list, the file that it is to send)"""
    sys.path.insert(0, os.path.join(mt.TOP, "python"))
    from libmemtrace import push as part
    folder, said = mt.scratch("queue"), []
    made = part.Sender("parca", url, folder)
    made.say = lambda what: said.append(re.sub(r"[^ -~]", "?", what))
    return made, said, os.path.join(folder, "push-000001.json")


def answered(server, answer):
    """(done with, the file is there, what was said)"""
    made, said, path = sender(server.url)
    with open(path, "w") as file:
        file.write("{}")
    server.answer = answer
    return made.send(path), os.path.exists(path), said


@mt.variants(*ANSWERS)
def case_answers(name):
    answer, done, word = ANSWERS[name]
    with Raw() as server:
        got = answered(server, answer)
    mt.equal((got[:2], len(got[2])), ((done, not done), int(word is not None)), "%s" % got[2])
    mt.check(word is None or word in got[2][0], "%s" % got[2])
    mt.equal(server.asked, 1, "requests")


def case_damaged_answers():
    """Whatever comes: the request is done with, or stays."""
    rng, known = random.Random(5), [answer for answer, _, _ in ANSWERS.values() if len(answer) < 500]
    with Raw() as server:
        for number in range(300):
            answer = bytearray(rng.choice(known))
            for _ in range(rng.randrange(1, 6)):
                at = rng.randrange(len(answer) + 1)
                answer[at:at + rng.randrange(3)] = rng.choice([b"\0", b"\r\n", b": ", b"9", b"\xff", b"HTTP/1.1 ", bytes([rng.randrange(256)])])
            done, there, said = answered(server, bytes(answer))
            mt.check(done != there and len(said) <= 1, "%d: %r: %s" % (number, answer, said))


def case_an_answer_that_drips():
    """A word now and then is no answer: it ends, and the request stays."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        made, said, path = sender("http://127.0.0.1:%d" % listening.getsockname()[1])
        with open(path, "w") as file:
            file.write("{}")

        def drip():
            client, _ = listening.accept()
            with client:
                try:
                    while True:
                        client.sendall(b"H")
                        time.sleep(0.1)
                except OSError:
                    pass

        thread = threading.Thread(target=drip)
        thread.start()
        part = sys.modules["libmemtrace.push"]
        before, part.WHOLE = part.WHOLE, 1
        signal.signal(signal.SIGALRM, part.too_long)
        mt.equal((made.send(path), os.path.exists(path), said[0].endswith("no whole answer in 1 s; it is tried again")), (False, True, True), "%s" % said)
        part.WHOLE = before
        thread.join()


GROWS = """
import time
kept = []
print("ready", flush=True)
def grow():
    kept.append(b"x" * (4 << 20))
while True:
    grow()
    time.sleep(0.1)
"""


def case_once_more_before_a_control_group_is_full():
    """Of a program that the kernel kills the profile of its last seconds is there: it would have been full in three, at 40 MiB a second."""
    limit = 200 << 20
    with cgroup.Cgroup(limit) as group, Server() as server:
        with Running(GROWS, command=group.command) as program:
            child = subprocess.Popen([mt.MEMTRACE, "push", "--to", "pyroscope", "--every", "1h", server.url, program.path], env=mt.clean_env())
            mt.equal(program.child.wait(mt.WAIT), -signal.SIGKILL)
            mt.equal(child.wait(mt.WAIT), 0)
    alive = [p for p in server.profiles(__name__="heap") if p.types[0].startswith("inuse")]
    mt.equal(len(alive), 2, "that, and that of the end")
    mt.between(0.3 * limit, of_site(alive[:1], "grow")[1], limit)


# What both have published (push/v1/push.proto, parca/profilestore/v1alpha1/profilestore.proto), as far as it is used. Unknown fields are errors.
PUBLISHED = """
import json, sys
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
TYPES = {"string": 9, "bytes": 12}
def message(name, *fields):
    m = descriptor_pb2.DescriptorProto(name=name)
    for number, field, kind, repeated in fields:
        m.field.add(name=field, number=number, label=3 if repeated else 1, type=TYPES.get(kind, 11), **({} if kind in TYPES else {"type_name": ".x." + kind}))
    return m
parca = sys.argv[2] == "parca"
sample = message("RawSample", (1, "raw_profile", "bytes", False), *([] if parca else [(2, "ID", "string", False)]))
pair = message("LabelPair" if not parca else "Label", (1, "name", "string", False), (2, "value", "string", False))
file = descriptor_pb2.FileDescriptorProto(name="x.proto", package="x", syntax="proto3")
if parca:
    file.message_type.extend([sample, pair, message("LabelSet", (1, "labels", "Label", True)),
        message("RawProfileSeries", (1, "labels", "LabelSet", False), (2, "samples", "RawSample", True)), message("Request", (2, "series", "RawProfileSeries", True))])
else:
    file.message_type.extend([sample, pair, message("RawProfileSeries", (1, "labels", "LabelPair", True), (2, "samples", "RawSample", True)),
        message("Request", (1, "series", "RawProfileSeries", True))])
pool = descriptor_pool.DescriptorPool()
pool.Add(file)
request = message_factory.GetMessageClass(pool.FindMessageTypeByName("x.Request"))()
json_format.Parse(open(sys.argv[1]).read(), request)
print(json.dumps([[len(s.labels.labels if parca else s.labels), [r.raw_profile[:2].hex() for r in s.samples]] for s in request.series]))
"""


@mt.variants("pyroscope", "parca")
def case_as_the_published_messages_are(to):
    if not os.path.isdir(os.path.join(consumers.path("python"), "google/protobuf")):
        mt.skip("protobuf is not installed (make setup-check)")
    with Server() as server:
        push(to, server.url, recorded())
    path = os.path.join(mt.scratch("body"), "body.json")
    with open(path, "wb") as file:
        file.write(server.bodies[0])
    series = json.loads(consumers.script(PUBLISHED, path, to))
    mt.check(len(series) >= 2 and all(labels >= 5 and raw == ["1f8b"] for labels, raw in series), "%s" % series)


@mt.variants(((), "pyroscope or parca"), (("--to", "x", "http://h"), "pyroscope or parca"), (("--to", "parca"), "URL"), (("--to", "parca", "h:7070", "t"), "URL"),
             (("--to", "parca", "--every", "0.5", "http://h", "t"), "--every"), (("--to", "parca", "--samples", "0", "http://h", "t"), "--samples"),
             (("--to", "parca", "http://h", "a", "b"), "one program"))
def case_wrong_usage(words, why):
    done = mt.execute([mt.MEMTRACE, "push", *words], cwd=mt.scratch())
    mt.equal((done.status, done.out), (2, ""), done.err)
    mt.check(why in done.err, done.err)


if __name__ == "__main__":
    mt.main()
