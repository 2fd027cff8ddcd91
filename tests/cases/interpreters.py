#!/usr/bin/env python3
"""What is said of a program does not depend on whose Python runs it: with symbols, stripped, with the interpreter linked in; with and without
libc's debug files."""
# timeout: 400
import collections
import glob
import os
import re
import shutil
import subprocess
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

PROGRAM = os.path.join(mt.TOP, "tests/programs/imports.py")
OWN = 500 * 3000  # what it keeps itself
NO_DEBUG = {"MEMTRACE_DEBUG_PATH": ":.debug"}
LARGEST = 64 << 10  # what may be said of other things: how much libraries need differs


def say(python, code):
    done = subprocess.run([python, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def real(python):
    return say(python, "import sys, os; print(os.path.realpath(sys.executable))")


def stripped(python):
    """The same interpreter without symbols, in a folder of its own; its libpython beside it."""
    strip, folder = mt.need("strip"), mt.scratch("stripped")
    library = say(python, "import sysconfig as s; print(s.get_config_var('LIBDIR') + '/' + s.get_config_var('INSTSONAME'))")
    for path in {real(python), library}:
        if os.path.isfile(path):
            copy = os.path.join(folder, os.path.basename(path))
            shutil.copy(path, copy)
            os.chmod(copy, 0o755)
            mt.equal(mt.execute([strip, copy]).status, 0, "status of strip")
    prefix = say(python, "import sys; print(sys.base_prefix)")
    return os.path.join(folder, os.path.basename(real(python))), {"LD_LIBRARY_PATH": folder, "PYTHONHOME": prefix}


def static():
    """An interpreter that is linked into its executable, stripped: as conda's and the standalone builds are."""
    cc, folder = os.environ.get("CC", "cc"), mt.scratch("static")
    archives = glob.glob("/usr/lib/python3.*/config-3.*/libpython3.*[0-9].a")
    if not archives:
        mt.skip("no libpython*.a")
    source, path = os.path.join(folder, "main.c"), os.path.join(folder, "python")
    with open(source, "w", encoding="ascii") as file:
        file.write("int Py_BytesMain(int, char **); int main(int n, char **a) { return Py_BytesMain(n, a); }")
    # of 3.13 the package leaves out what computes SHA-2, which nobody calls here
    done = mt.execute([cc, "-s", "-no-pie", "-Wl,--unresolved-symbols=ignore-in-object-files", "-o", path, source, archives[-1], "-Wl,-export-dynamic",
                       "-lz", "-lexpat", "-lm", "-ldl", "-lpthread", "-lutil"])
    if done.status != 0:
        mt.skip("it can't be linked: %s" % done.err[-200:])
    return path, {"PYTHONHOME": "/usr"}


def of(name):
    if name == "static":
        return static()
    python = {"debian": "/usr/bin/python3"}.get(name.split("-")[0], mt.python())
    if not os.path.exists(python):
        mt.skip("no %s" % python)
    return stripped(python) if name.endswith("stripped") else (python, {})


def rows(text):
    """{label: share in %} of the owners."""
    block = text.partition("LARGEST OWNERS")[2].partition("\n\n")[0]
    return {m.group(2).strip(): float(m.group(1)) for m in re.finditer(r"^ .*? ([\d.]+) %.*?blocks?  (.*)$", block, re.M)}


def bytes_of(words):
    number, unit = words.split()
    return float(number) * {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}[unit]


def check(trace, **env):
    env = mt.clean_env(**env)
    report = mt.execute([mt.MEMTRACE, "report", "--all", trace.path], env=env).out
    shown = rows(report)
    mt.check(shown.get("imported modules", 0) > 40, "imported modules are %s in %s" % (shown.get("imported modules"), report))
    mt.check("interpreter start" in shown and [r for r in shown if r.startswith("work ")], report)
    mt.check(sum(shown.get(k, 0) for k in ("imported modules", "interpreter start", "libraries' constructors", "loaded libraries")) + shown[
        [r for r in shown if r.startswith("work ")][0]] > 98, "other rows: %s" % report)
    unknown = bytes_of(re.search(r"unknown ([\d.]+ \w+)", report).group(1))
    mt.between(OWN * 0.95, unknown, OWN + 2 * LARGEST, "unknown bytes, shown with one decimal")
    mt.check("\nLEFT ALIVE" not in report or bytes_of(re.search(r"LEFT ALIVE  ([\d.]+ \w+)", report).group(1)) < LARGEST, report)
    mt.check("imports" in report or "PHASE" not in report, report)
    leaks = mt.execute([mt.MEMTRACE, "leaks", trace.path, "--fail-over", "%dK" % (LARGEST >> 10)], env=env)
    mt.equal(leaks.status, 0, "status of %s" % leaks)


@mt.variants("venv", "debian-stripped", "static", long=("venv-stripped", "debian"))
def case_says_the_same(name):
    python, env = of(name)
    done = mt.shimmed([python, PROGRAM], env=env)
    mt.equal(done.status, 0, "status of %s" % done)
    done.trace.intact()
    check(done.trace)
    check(done.trace, **NO_DEBUG)
    left = [s for s in done.trace.json("peak", "--all-frames", "--by", "stack", "-n", "100000")["sites"]
            if any((f["function"] or "").startswith("_PyEval_EvalFrameDefault") for f in s["stack"])]
    mt.check(not left, "evaluators are left in %d stacks" % len(left))


@mt.variants("venv", long=("debian",))
def case_work_while_imported(name):
    """The row of the imports stays whatever its share is, and what the program's own code does meanwhile has rows of its own."""
    python, env = of(name)
    folder = mt.scratch("own")
    for size, label in ((200, "few"), (20000, "most")):
        with open(os.path.join(folder, "works_while_imported.py"), "w", encoding="ascii") as file:
            file.write("def fill(n):\n    return list(map(bytearray, [4000] * n))\n\n\nkept = fill(%d)\n" % size)
        done = mt.shimmed([python, "-B", PROGRAM, folder], env=env)
        mt.equal(done.status, 0, "status of %s" % done)
        report = done.trace.settle().tool("report").out
        shown = rows(report)
        mt.check("imported modules" in shown and [r for r in shown if r.startswith("fill ")], "%s: %s" % (label, report))


def outermost(trace):
    """{(module, offset of the outermost frame): allocations whose native stack ends there}"""
    outer, modules, ends = {}, [], collections.Counter()
    with subprocess.Popen([mt.MEMTRACE, "dump", "--nodes", trace.path], stdout=subprocess.PIPE, text=True, errors="replace") as dump:
        for word, *fields in map(str.split, dump.stdout):
            if word == "module":
                modules.append((int(fields[1], 16), int(fields[2], 16), fields[-1].strip('"')))
            elif word == "node":
                outer[fields[1]] = int(fields[3], 16) if fields[2] == "0" else outer.get(fields[2])
            elif word == "alloc":
                ends[outer.get(fields[-2])] += 1
    mt.equal(dump.returncode, 0, "status of dump")
    named = {pc: next(((os.path.basename(path), hex(pc - begin)) for begin, end, path in modules if begin <= pc < end), pc) for pc in ends if pc is not None}
    return {named.get(pc, "no stack"): count for pc, count in ends.items()}


@mt.variants("venv", "debian-stripped", long=("static", "debian"))
def case_stacks_reach_the_start(name):
    """Of all that PyTorch does while it is imported: main() is called at one place, a thread's function at another."""
    python, env = of(name)
    code = "import threading, torch" if name == "venv" and mt.has_module("torch") else "import threading, json, decimal, unittest"
    code += "\nt = threading.Thread(target=lambda: [bytes(5000) for _ in range(100)]); t.start(); t.join()"
    done = mt.shimmed([python, "-c", code], env=env, timeout=120)
    mt.equal(done.status, 0, "status of %s" % done)
    done.trace.intact()
    ends = outermost(done.trace.settle())
    allowed = {os.path.basename(real(python) if name != "static" else python), "libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
    mt.check("no stack" not in ends and {end[0] for end in ends} <= allowed and len(ends) <= 3, "stacks end at %s" % ends)


def case_parser_on_top_of_imports():
    """Parsing takes many frames of a nested expression, on top of those of the imports: both fit."""
    nested = "compile('(' * 35 + '1' + ')' * 35, 'x', 'eval')"
    cut = [mt.shimmed([mt.python(), "-c", nested], env=env).trace.settle().report["losses"]["truncated_stacks"]
           for env in ({}, {"MEMTRACE_DEPTH": "512"})]
    mt.check(cut[0] == 0 and cut[1] > 0, "stacks that are cut, by default and at 512 frames: %s" % cut)


mt.main()
