#!/usr/bin/env python3
"""docs/JSON.md: every key that a command prints on the test traces is on the page with its type, and every key of the page is printed."""
# timeout: 400
import functools
import importlib.util
import json
import os
import re
import shutil
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../battery"))
import cases
import bombs
import exchanged
import golden_traces
import mt

PAGE = os.path.join(mt.TOP, "docs/JSON.md")
TYPES = {"integer": int, "number": (int, float), "string": str, "boolean": bool, "object": dict, "null": type(None)}
COMMANDS = {
    "report": [(), ("--by", "thread")], "peak": [(), ("--at", "0.0001", "--by", "thread"), ("--by", "holder")], "peak --fit": [("--fit", "1M")],
    "leaks": [(), ("--by", "thread")], "holders": [(), ("-n", "1")], "frag": [(), ("--at", "end")],
    "whatif": [(), ("--alloc-conf", "expandable_segments:False")], "whatif --host": [("--host", "glibc")],
    "timeline": [()], "timeline --by step": [("--by", "step")], "timeline --by phase": [("--by", "phase")], "diff": [()], "check": [()], "live": [()], "list": [(), ("--verdict",)],
    "dump": [("--nodes",), ("--samples",), ("--symbols",)],
}
KINDS = ("graph_pools", "leak", "host_pressure", "limit", "copies")

# ---- the page ----------------------------------------------------------------------------------------------------


def sections():
    """{"memtrace peak": rows}, {"*site*": rows}: rows of (key, type)."""
    found, rows = {}, None
    with open(PAGE, encoding="utf-8") as page:
        for line in page:
            head = re.match(r"##+ (?:`memtrace ([^`]+)`|\*([^*]+)\*)$", line.rstrip())
            row = re.match(r"\| `([^`]+)` \| ([^|]+) \|", line)
            if head:
                rows = found.setdefault(head[1] or "*%s*" % head[2], [])
            elif line.startswith("#"):
                rows = None
            elif row:
                rows.append((row[1], row[2].strip()))
    return found


def expand(rows, all_sections, prefix=""):
    """{path: type} with the objects of the page in their places."""
    out = {}
    for key, kind in rows:
        own = prefix + key
        out[own] = kind
        for shared in re.findall(r"\*[^*]+\*", kind):
            mt.check(shared in all_sections, "the page has no object %s" % shared)
            out.update(expand(all_sections[shared], all_sections, own + "."))
    return out


@functools.lru_cache(None)
def page():
    found = sections()
    return {name: expand(rows, found) for name, rows in found.items() if not name.startswith("*")}


# ---- what is printed ---------------------------------------------------------------------------------------------

PROGRAM = """
import mmap, os, sys, threading, time
with open("/dev/shm/memtrace-test-%d" % os.getpid(), "w+b") as file:
    file.truncate(4096)
    mmap.mmap(file.fileno(), 4096).close()
    os.unlink(file.name)
kept = []
def work(steps):
    for n in range(steps):
        kept.extend(bytearray(3000 + i) for i in range(20))
        [bytearray(100 * i) for i in range(100)]
        time.sleep(0.002)
threading.Thread(target=work, args=(30,)).start()
work(30)
large = [bytearray(b"x") * (1 << 20) for _ in range(60)]
time.sleep(1.5)
large.clear()
time.sleep(1.5)
"""


def recorded(**env):
    path = os.path.join(mt.scratch("program"), "train.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    return mt.shimmed([mt.python(), path], env=env).trace.settle().path


@functools.lru_cache(None)
def traces():
    paths = [golden_traces.unpack(name, mt.scratch("golden")) for name in golden_traces.NAMES]
    for kind in KINDS:
        paths.append(os.path.join(mt.scratch("battery"), "t"))
        cases.make(paths[-1], kind, 301, True)
    snapshot, path = os.path.join(mt.scratch("snapshot"), "s.pickle"), os.path.join(mt.scratch("imported"), "t")
    for words in (("export", "--format", "snapshot", "-o", snapshot, paths[-len(KINDS)]), ("import", "-o", path, snapshot)):
        mt.equal(mt.execute([mt.MEMTRACE, *words]).status, 0)
    paths.append(path)
    held = "import ctypes, sys\nkept = [bytearray(1 << 20)]\nctypes.CDLL(%r).memtrace_holders(b'here')\nfor _ in range(9): pass\n" % mt.SHIM
    leaking = "kept = []\nfor step in range(300):\n    batch = bytearray(100_000)\n    kept.append(bytes(batch[:50_000]))\n"
    grown = "kept = {}\ndef get(key):\n    kept[key] = bytearray(30_000)\ndef loop():\n    for i in range(800): get(str(i))\nloop()\n"
    for code in (held, leaking, grown):
        paths.append(mt.shimmed([mt.python(), "-c", code], env={"MEMTRACE_HOLDERS": "1"}).trace.settle().path)
    paths += [recorded(), recorded(MEMTRACE_STACKS="sample", MEMTRACE_SAMPLE="16K")]  # blocks larger than that are exact: all of work() are smaller
    for words, env in ((["busy", "200000", "1000", "300"], {"MEMTRACE_LIMIT": "1M"}),
                       (["marks", "basic"], {}), (["marks", "paused"], {"MEMTRACE_PAUSED": "1"}), (["mapped"], {}), (["busy", "20000", "1000", "300"], {"MEMTRACE_RECORD": "young"}),
                       (["busy", "20000", "1000", "300"], {"MEMTRACE_RECORD": "sampled"}),
                       (["ownheap", "20"], {}),
                       (["bfc", mt.program("libbfc.so"), "heap"], {})):
        paths.append(mt.shimmed([mt.program(words[0]), *words[1:]], env=env).trace.settle().path)
    alone = shutil.copy(mt.SHIM, mt.scratch())  # without a recorder beside it: nobody empties the rings
    paths.append(mt.shimmed([mt.program("deep"), "5", "300000"], env={"MEMTRACE_RECORD": "auto", "MEMTRACE_LIMIT": "24M"}, shim=alone).trace.settle().path)
    paths.append(mt.fold(mt.shimmed([mt.program("endless"), "100000", "0", "40"]).trace.settle()).path)
    for path in paths[-2:]:
        mt.execute([mt.MEMTRACE, "symbolize", path])
    paths.append(mt.shimmed(["sh", "-c", "env -i /bin/true; true"]).trace.settle().path)  # one that is not recorded
    return paths + [unread()]


@functools.lru_cache(None)
def unread():
    """A library of it is too large to be read, which takes half a second to find out."""
    found = exchanged.Recorded()
    found.replace(*bombs.inflating(1000))
    return found.trace.path


@functools.lru_cache(None)
def replayed():
    """Runs with failures, of which each setting would spare the program some and bring others, and one that leaks. The battery has a module of the same name."""
    spec = importlib.util.spec_from_file_location("devices", os.path.join(mt.TOP, "tests/lib/gpu.py"))
    gpu, out = importlib.util.module_from_spec(spec), []
    spec.loader.exec_module(gpu)
    for setting in ("expandable_segments:True", "expandable_segments:False"):
        done = gpu.run([gpu.python(), os.path.join(gpu.SCENARIOS, "requests.py"), "1", "1000"], devices="640M",
                       env={"MEMTRACE_PAUSED": "1", "PYTORCH_CUDA_ALLOC_CONF": setting})
        out.append(done.trace.settle().path)
    leak = gpu.run([gpu.python(), os.path.join(mt.TOP, "tests/trials/leak_hooks.py")], env={"MEMTRACE_PAUSED": "1", "PYTHONPATH": gpu.SCENARIOS},
                   devices="420M", context="48M")
    return out + [leak.trace.settle().path]


def objects(path, command, options):
    words = [mt.MEMTRACE, command.split()[0], *options, "--json", path] + ([path] if command == "diff" else [])
    done = mt.execute(words)
    mt.check(done.status in (0, 1, 2) or (done.status == 3 and "can't be replayed" in done.err), "%r" % done)
    lines = done.out.splitlines() if command == "dump" else [done.out]
    return [json.loads(line) for line in lines if line] if done.status < 2 else []


def matches(wanted, path):
    """Of the keys on the page the one that this is, with * for names of the trace's own; the most exact."""
    want, got = wanted.split("\t"), path.split("\t")
    return len(want) == len(got) and all(w in ("*", g) for w, g in zip(want, got))


class Printed:
    def __init__(self, wanted):
        self.wanted = {key.replace(".", "\t"): key for key in wanted}
        self.known, self.types, self.unknown = {}, {}, {}

    def key_of(self, path):
        """The row of the page for a path; an object whose parts alone are on the page needs none."""
        if path not in self.known:
            found = [k for k in self.wanted if matches(k, path)]
            self.known[path] = min(found, key=lambda k: k.count("*")) if found else None
        return self.known[path]

    def take(self, value, path):
        key = self.key_of(path) or (self.key_of(path + "[]") if isinstance(value, list) else None)
        if key:
            self.types.setdefault(key, set()).add(type(value))
        elif not isinstance(value, (dict, list)) or not any(matches("\t".join(k.split("\t")[:path.count("\t") + 1]), path)
                                                           for k in self.wanted):
            self.unknown[path.replace("\t", ".")] = value
        if isinstance(value, dict):
            for name, inner in value.items():
                self.take(inner, (path + "\t" if path else "") + name)
        elif isinstance(value, list):
            for inner in value:
                if isinstance(inner, dict):
                    for name, part in inner.items():
                        self.take(part, path + "[]\t" + name)


@functools.lru_cache(None)
def printed(command):
    found = Printed(page()[command])
    for path in traces() + (replayed() if command == "whatif" else []):
        short = path == unread() and command != "dump" and not os.environ.get("LONG")  # it says so whatever the options
        some = 1 if short else None
        for options in COMMANDS[command][:some]:
            for o in objects(path, command, options):
                for name, value in o.items():
                    found.take(value, name)
    return found


def fits(kind, types):
    if kind.startswith("array of"):
        return types == {list}
    named = [w.strip() for w in re.split(r", | or ", kind)]
    allowed = tuple(t for w in named for t in (TYPES[w] if isinstance(TYPES.get(w, dict), tuple) else (TYPES.get(w, dict),)))
    return types <= set(allowed)


@mt.variants(*COMMANDS)
def case_keys_are_on_the_page(command):
    unknown = printed(command).unknown
    mt.check(not unknown, "memtrace %s prints keys that docs/JSON.md lacks: %s" % (command, unknown))


@mt.variants(*COMMANDS)
def case_keys_of_the_page_are_printed(command):
    found = printed(command)
    missing = sorted(set(found.wanted) - set(found.types))
    mt.check(not missing, "docs/JSON.md says that memtrace %s prints %s" % (command, [found.wanted[k] for k in missing]))


@mt.variants(*COMMANDS)
def case_types_are_as_the_page_says(command):
    found = printed(command)
    for key, types in found.types.items():
        kind = page()[command][found.wanted[key]]
        mt.check(fits(kind, types), "%s of memtrace %s is %s, not %s" % (found.wanted[key], command, types, kind))


def case_every_command_is_on_the_page():
    """Whatever has --json has a table."""
    for command in mt.commands():
        said = mt.execute([mt.MEMTRACE, command, "--help"]).out
        own = re.search(r"docs/(\w+)\.md has its keys", said)  # a command of many forms has a page of its own for them
        if own and own[1] != "JSON":
            with open(os.path.join(mt.TOP, "docs/%s.md" % own[1]), encoding="utf-8") as text:
                mt.check(re.search(r"^`memtrace %s \w+ --json`" % command, text.read(), re.M), "%s: no keys on docs/%s.md" % (command, own[1]))
            continue
        has = " --json " in said
        mt.equal(has, command in page(), "%s: --json, and a table" % command)


if __name__ == "__main__":
    mt.main()
