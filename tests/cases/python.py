#!/usr/bin/env python3
"""Python frames: exactly those that the program itself saw, on every interpreter there is."""
# timeout: 600
import glob
import json
import os
import subprocess
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

PROGRAM = os.path.join(mt.TOP, "tests/programs/pystacks.py")
BYTES = 1000003  # of each allocation whose stack the program knows
VERSIONS = range(8, 15)


def interpreters():
    """One of each version: [(3, 11), path]."""
    found = {}
    for path in sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python3"))) + ["/usr/bin/python3", mt.python()]:
        done = subprocess.run([path, "-c", "import sys; print(*sys.version_info[:2])"], stdout=subprocess.PIPE, text=True)
        version = tuple(map(int, done.stdout.split())) if done.returncode == 0 else (0, 0)
        if version >= (3, 8):
            found.setdefault(version, path)
    return sorted(found.items())


def collect(stacks):
    """How many bytes each stack took."""
    sums = {}
    for stack, count in stacks:
        sums[stack] = sums.get(stack, 0) + count
    return sums


def expected(folder, pid=None):
    lines = []
    for path in glob.glob(os.path.join(folder, "log.%s" % (pid or "*"))):
        with open(path) as file:
            lines += file.read().splitlines()
    parts = [line.split(" ", 1) for line in lines]
    return collect((tuple(map(tuple, json.loads(stack))), int(count)) for count, stack in parts)


def recorded(trace, command=("peak", "--at", "end")):
    sites = trace.json(*command, "--all-frames", "--by", "stack", "-n", "1000000", "--device", "heap")["sites"]
    return [s for s in sites if s["blocks"] and s["bytes"] == BYTES * s["blocks"]]


def python_frames(site):
    return tuple((f["function"], f["file"], f["line"]) for f in site["stack"] if f["language"] == "python")


def show(stack):
    return " < ".join("%s:%s:%s" % (name, os.path.basename(file), line) for name, file, line in stack[:12])


def compare(want, got):
    missing = [s for s in want if got.get(s) != want[s]]
    extra = [s for s in got if want.get(s) != got[s]]
    if missing or extra:
        mt.fail("%d of %d stacks are not as they were: wanted %s%s; recorded %s" % (
            len(missing), len(want), missing and "%d x " % want[missing[0]], missing and show(missing[0]),
            "; ".join("%d x %s" % (got[s], show(s)) for s in extra[:2])))


def run(python, names, **env):
    folder = mt.scratch()
    done = mt.shimmed([python, PROGRAM, os.path.join(folder, "log"), *names], env=env)
    mt.check(done.status == 0, "%s" % done)
    done.trace.settle()
    return folder, done.trace


def check_stacks(python, *names, **env):
    folder, trace = run(python, names, **env)
    sites = recorded(trace)
    compare(expected(folder), collect((python_frames(s), s["bytes"]) for s in sites))
    for site in sites:
        for frame in site["stack"]:
            mt.check(not (frame["function"] or "").startswith("_PyEval_EvalFrameDefault"),
                     "an evaluator is left in %s" % show(python_frames(site)))
    return sites


def make(version, path):
    def case():
        check_stacks(path)
    return case


for version, path in interpreters():
    globals()["case_stacks_%d_%d" % version] = make(version, path)


def names(site):
    return [frame["name"] if "name" in frame else frame["function"] for frame in site["stack"]]


def case_spliced():
    """Python, C and Python again, in the order in which they called each other."""
    for version, path in interpreters():
        found = 0
        for site in check_stacks(path, "callbacks"):
            order = [n.rsplit(".", 1)[-1] for n in names(site) if n]
            c = [i for i, n in enumerate(order) if n.startswith("msort") or "qsort" in n]
            if c:
                found += 1
                mt.check(order.index("take") < order.index("<lambda>") < c[0] < order.index("callbacks"),
                         "%s: %s" % (version, order))
        mt.check(found, "%s: no stack goes through qsort" % (version,))


def case_cut():
    """Of a recursion deeper than MEMTRACE_DEPTH the innermost frames are kept."""
    for version, path in interpreters():
        folder, trace = run(path, ["deep"], MEMTRACE_DEPTH="200")
        want = collect((stack[:200], count) for stack, count in expected(folder).items())
        compare(want, collect((python_frames(s), s["bytes"]) for s in recorded(trace)))


def case_sample():
    """What has a stack in sample mode has the right one."""
    for version, path in interpreters():
        check_stacks(path, "plain", "reuse", "generators", MEMTRACE_STACKS="sample", MEMTRACE_SAMPLE="500K")


def case_greenlets():
    if not mt.has_module("greenlet"):
        mt.skip("no greenlet")
    # Outwards of a greenlet's first frame the stack is that of whoever ran last: evaluators without frames, as Python says too.
    folder, trace = run(mt.python(), ["greenlets", "plain"])
    want = expected(folder)
    compare(want, collect((python_frames(s), s["bytes"]) for s in recorded(trace)))
    mt.check(len(want) > 20, "few stacks")


def outer_and_inner(path):
    """The stacks of two blocks: of a function that runs a sub-interpreter, and of a function in that."""
    done = mt.shimmed([path, os.path.join(mt.TOP, "tests/programs/pysub.py")])
    mt.check(done.status == 0, "%s" % done)
    found = [[f["function"] for f in s["stack"] if f["language"] == "python"] for s in recorded(done.trace)]
    mt.equal(len(found), 2, "%s: blocks: %s" % (path, found))
    return sorted(found, key=len, reverse=True)


def case_subinterpreters():
    """Since 3.12 their own frames; before, the thread's state is the main interpreter's and the frame that runs them is shown."""
    for version, path in interpreters():
        found = outer_and_inner(path)
        mt.check(["outer", "<module>"] in found, "%s: %s" % (version, found))
        mt.check((["inner", "<module>"] if version >= (3, 12) else ["outer", "<module>"]) in found[:1] + found[1:], "%s: %s" % (version, found))


def embedded(name, flags):
    """A C program that runs Python, built against Debian's libpython."""
    config = "/usr/lib/python3.%d/config-3.%d-x86_64-linux-gnu"
    for minor in VERSIONS:
        folder, headers = config % (minor, minor), "/usr/include/python3.%d" % minor
        if os.path.exists(folder + "/libpython3.%d.a" % minor) and os.path.exists(headers + "/Python.h"):
            out = os.path.join(mt.scratch(), name)
            # of 3.13 the package leaves out what computes SHA-2, which nobody calls here
            library = (["-no-pie", "-Wl,--unresolved-symbols=ignore-in-object-files", folder + "/libpython3.%d.a" % minor] if flags == "static"
                       else ["-lpython3.%d" % minor])
            done = mt.execute([os.environ.get("CC") or "cc", "-g", "-O1", "-o", out, os.path.join(mt.TOP, "tests/programs/python/embed.c"), "-I" + headers,
                               "-rdynamic", *library, "-lz", "-lexpat", "-lm", "-ldl", "-lpthread", "-lutil"])
            mt.check(done.status == 0, done)
            return out
    mt.skip("no libpython to link with")


def check_embedded(binary):
    folder = mt.scratch()
    done = mt.shimmed([binary, PROGRAM, os.path.join(folder, "log"), "plain", "recursion", "generators", "callbacks", "exceptions", "threads"])
    mt.check(done.status == 0, "%s" % done)
    sites = recorded(done.trace)
    compare(expected(folder), collect((python_frames(s), s["bytes"]) for s in sites))
    return sites


def case_embedded():
    for site in check_embedded(embedded("embed", "shared")):
        if not any("_bootstrap" in (f["function"] or "") for f in site["stack"]):
            mt.check("run_python" in names(site), "the C function that runs Python: %s" % names(site)[-8:])


def case_linked_statically_and_stripped():
    """The interpreter in the program itself; what exports its symbols is left."""
    binary = embedded("static", "static")
    check_embedded(binary)
    mt.execute([mt.need("strip"), binary])
    check_embedded(binary)


def case_lines():
    """Every instruction of many functions is on the line that the interpreter itself says."""
    for version, path in interpreters():
        table = os.path.join(mt.scratch(), "lines")
        mt.check(mt.execute([path, os.path.join(mt.TOP, "tests/programs/pylines.py"), table]).status == 0, "no lines")
        done = mt.execute([os.path.join(mt.BUILD, "asan/tests/unit/test_pylines")], env=mt.clean_env(PYLINES=table))
        mt.check(done.status == 0, "%s: %s" % (version, done.out[:500]))


def case_no_interpreter():
    """Whatever wrong a guessed layout leads to, the program lives."""
    trace = mt.same([mt.program("fakepython"), mt.program("libfakepython.so")], intact=False)
    done = trace.tool("check")
    mt.check(done.status == 0, "%s" % done)


def case_offsets():
    """The table of offsets is what the headers say."""
    paths = [path for version, path in interpreters()]
    done = mt.execute([sys.executable, os.path.join(mt.TOP, "scripts/pyoffsets"), "--check", *paths])
    mt.check(done.status == 0, done.out)


if __name__ == "__main__":
    mt.main()
