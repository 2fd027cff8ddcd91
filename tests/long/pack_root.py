#!/usr/bin/env python3
"""Packed here, read on another Debian that has nothing but the wheel's program: no Python, none of the programs that were recorded. What is
said there of the file is what is said here of the trace, to the byte; of the redacted one with other names, and a search finds none of those
it had. What was recorded: native code, a script and a thread; a training with its loaders' workers; processes that share a device."""
# serial
# timeout: 3600
import ast
import base64
import ctypes
import gzip
import json
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import fresh
import gpu
import mt
import packs
import wheels

HOST, USER = "secrethost", "secretuser"
READS = (*packs.READS, ("timeline", "--by", "process"), ("peak", "-n", "all", "--by", "function"), ("peak", "--by", "process"), ("leaks", "--by", "file"))
TEXTS = (("report", "--all"), ("peak", "-n", "all", "--all-frames"), ("leaks",), ("timeline",), ("dump",), ("check",), ("export", "--format", "perfetto"))
# Names in the sources that stay: rules look for them (docs/pack.md), or they are a part of PyTorch's own (Engine::evaluate_function)
OWN = {"outside_pool"}  # a kind of verdict, which is said whatever functions are called so
PUBLIC = {"__init__", "__len__", "__getitem__", "train_step", "evaluate"}


def on_another_host():
    """What this test starts is on a machine with that name."""
    mt.need_root()
    libc = ctypes.CDLL(None, use_errno=True)
    mt.equal((libc.unshare(0x04000000), libc.sethostname(HOST.encode(), len(HOST))), (0, 0), "CLONE_NEWUTS, sethostname()")


def copied(name, *others):
    """The program under another name, and what is beside it, in a folder that is not to be known."""
    folder = mt.scratch("secretplace")
    for path in (name, *others):
        shutil.copy(os.path.join(mt.TOP, path), os.path.join(folder, ("secret_" if path == name else "") + os.path.basename(path)))
    return os.path.join(folder, "secret_" + os.path.basename(name))


def named_in(script):
    """Functions and classes of the program and of what lies beside it."""
    names = set()
    for file in os.listdir(os.path.dirname(script)):
        if file.endswith(".py"):
            with open(os.path.join(os.path.dirname(script), file), encoding="utf-8") as source:
                names |= {n.name for n in ast.walk(ast.parse(source.read())) if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    return {n for n in names - PUBLIC if len(n) > 7}  # shorter ones are parts of other words


def native():
    """Names of all kinds; tests/cases/pack.py."""
    done = packs.recorded()
    return done.trace, set(packs.SECRETS), done.home


def training():
    """Two workers that are forked make the batches."""
    script = copied("examples/train.py")
    done = mt.shimmed([mt.python(), script, "12"], env={"USER": USER, "HOME": "/home/" + USER, "OMP_NUM_THREADS": "1"}, timeout=900)
    mt.equal(done.status, 0, "%s" % done)
    return done.trace.settle(), {"Sentences", "secret_train"}, os.path.dirname(script)


def devices():
    """A process that fails beside another, which is recorded as well, and one that is not."""
    script = copied("tests/scenarios/incident2.py", *("tests/scenarios/%s.py" % name for name in ("account", "neighbour", "recording")))
    done = gpu.run([gpu.python(), script], env={"USER": USER, "HOME": "/home/" + USER}, timeout=900, **gpu.settings_of(script))
    mt.check(done.trace.exists(), "%s" % done)
    names = named_in(script)
    mt.check({"outside_pool", "take_workspace", "first_run", "third_run"} <= names, names)
    return done.trace.settle(), {"first_run", "third_run", "outside_pool", "secret_incident2"}, os.path.dirname(script)


RECORDED = {"native": native, "training": training, "devices": devices}


def one(name):
    """(plain file, redacted file, what the trace itself says, names that are in it, names that must not be in the other)."""
    trace, names, folder = RECORDED[name]()
    want = {words: packs.reading(trace.path, words) for words in READS}
    mt.check(len(want[("report",)]["processes"]) > 1, "one process")
    plain, redacted = packs.pack(trace.path), packs.pack("--redact", trace.path)
    hidden = {HOST, USER, "secret_", "secretplace", "memtrace-test-", mt.TOP, mt.VENV, gpu.VENV, *names, *(named_in(folder + "/x") if name != "native" else ())}
    shutil.rmtree(folder)
    return plain, redacted, want, {HOST, "memtrace-test-", *names}, hidden


def same(here, there, where):
    """The same keys, texts, numbers and order. Of a clock that is compared anew at each reading times differ behind the microsecond."""
    if isinstance(here, dict):
        mt.equal(list(there), list(here), "keys of " + where)
        for key in here:
            same(here[key], there[key], where + "." + key)
    elif isinstance(here, list):
        mt.equal(len(there), len(here), "length of " + where)
        for i, (a, b) in enumerate(zip(here, there)):
            same(a, b, "%s[%d]" % (where, i))
    elif isinstance(here, float):
        mt.between(here - 1e-5, there, here + 1e-5, where)
    else:
        mt.equal(there, here, where)


def said_there(root, path, reads):
    """{words: what the program of that root prints} of one file."""
    name = os.path.basename(os.path.dirname(path)) + ".tar.zst"
    shutil.copy(path, root.path + "/" + name)
    commands = ["/opt/memtrace/bin/memtrace %s /%s >/out.%d 2>&1 || echo %s: status $?" % (" ".join(words), name, i, words[0]) for i, words in enumerate(reads)]
    status, text = root.run("{ %s; }" % "; ".join(commands), 900)
    mt.equal((status, text), (0, ""), "commands on the other root")
    said = {}
    for i, words in enumerate(reads):
        with open("%s/out.%d" % (root.path, i), "rb") as file:
            said[words] = file.read()
    return said


def json_there(root, path):
    said = said_there(root, path, [(*words, "--json") for words in READS])
    return {words: json.loads(said[(*words, "--json")]) for words in READS}, b"".join(said.values())


def unpacks(root, path, want):
    """What tar unpacks reads the same."""
    folder = os.path.join(root.path, "unpacked")
    os.mkdir(folder)
    mt.equal(mt.execute(["tar", "--zstd", "-xf", path, "-C", folder]).status, 0, "status of tar")
    status, text = root.run("/opt/memtrace/bin/memtrace report --json /unpacked/memtrace-1", 300)
    mt.equal(status, 0, text[-500:])
    same(want[("report",)], json.loads(text), "report of what is unpacked")
    shutil.rmtree(folder)


def page_there(root, path):
    """The page and its data, which are gzip in base64."""
    said_there(root, path, [("html", "-o", "/page.html")])
    with open(root.path + "/page.html", "rb") as file:
        page = file.read()
    data = [gzip.decompress(base64.b64decode(text)) for text in re.findall(rb"H4sI[A-Za-z0-9+/]+=*", page)]
    mt.check(data, "no data on the page")
    return b"\0".join([page, *data])


def redacted_there(root, path, want, hidden):
    got, text = json_there(root, path)
    for words in READS:
        names = {}
        packs.alike(want[words], got[words], names, " ".join(words))
        mt.equal(len(set(names.values())), len(names), "names with hashes of their own")
    everything = b"\0".join([text, *said_there(root, path, TEXTS).values(), page_there(root, path)]).lower()
    mt.check(len(everything) > 100000, "hardly anything is printed: %d bytes" % len(everything))
    mt.equal({name for name in hidden - OWN if name.lower().encode() in everything}, set(), "names that a search finds in what is printed there")


def case_reads_the_same_there():
    on_another_host()
    program = os.path.join(wheels.unpacked(os.uname().machine), "bin/memtrace")
    made = {name: one(name) for name in RECORDED}
    for name, (plain, redacted, _, names, hidden) in made.items():
        mt.equal(packs.found(plain, names), names, "names that a search finds in what is not redacted, of " + name)
        mt.equal(packs.found(redacted, hidden), set(), "names that a search finds, of " + name)
    with fresh.fresh("trixie", ("ca-certificates",)) as root:
        os.makedirs(root.path + "/opt/memtrace/bin")
        shutil.copy(program, root.path + "/opt/memtrace/bin/memtrace")
        mt.check(root.run("command -v python3 gcc", 60)[0] != 0, "the root has Python")
        for name, (plain, redacted, want, _, hidden) in made.items():
            got, _ = json_there(root, plain)
            for words in READS:
                same(want[words], got[words], "%s of %s" % (" ".join(words), name))
            unpacks(root, plain, want)
            redacted_there(root, redacted, want, hidden)
            mt.say("# %s: %d processes, %d commands" % (name, len(want[("report",)]["processes"]), 2 * len(READS) + len(TEXTS) + 2))


mt.main()
