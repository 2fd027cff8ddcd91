#!/usr/bin/env python3
"""The summary that `memtrace report` prints: programs of every kind at 80x24 and 120x40, kept as golden screens (tests/lib/goldens.py). Those of the
incidents are compared where the incidents are run: figures.py, incident4.py, incidents.py.

screens.py --refresh writes them.
"""
# timeout: 900
import functools
import itertools
import os
import re
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../battery"))
import cases
import golden_traces
import goldens
import mt
import screen
from screen import FIGURE, Figure

SPIKE = os.path.join(mt.TOP, "tests/programs/spike.py")
JSON = "import json\nprint(sum(len(json.loads(json.dumps(list(range(1000))))) for _ in range(200)))"
PROGRAMS = {
    "demo": lambda: [mt.python(), os.path.join(mt.TOP, "examples/train.py"), "4"],
    "cpp": lambda: [mt.program("owners")],
    "spike": lambda: [mt.python(), SPIKE],
    "healthy-c": lambda: [mt.program("resident"), "freed", "24", "hold", "0"],
    "healthy-python": lambda: [mt.python(), "-c", JSON],
    "healthy-shell": lambda: ["sh", "-c", "seq 2000 | sort -n | tail -1"],
}
NEEDS = {"demo": "torch", "spike": "pandas"}


# What is true of each: only one that works on for a while without growing is healthy.
SHORT = "was seen too briefly to say whether it grows"
SAYS = {"demo": "rose to its end", "cpp": "keep_line keeps more and more", "spike": SHORT, "healthy-c": "free_most only grew",
        "healthy-python": "healthy: nothing goes on growing", "healthy-shell": SHORT}


@functools.lru_cache(None)
def recorded(name):
    if name in NEEDS and not mt.has_module(NEEDS[name]):
        mt.skip("no " + NEEDS[name])
    done = mt.shimmed(PROGRAMS[name](), timeout=120)
    mt.equal(done.status, 0, "status of %r" % done)
    return done.trace.settle()


@mt.variants(*PROGRAMS)
def case_golden(name):
    goldens.compare(name, recorded(name))


@mt.variants(*PROGRAMS)
def case_headline(name):
    """The peak, and that all is well, as the JSON and leaks say it."""
    trace = recorded(name)
    report, leaks, text = trace.report, trace.json("leaks", "-n", "1"), trace.summary()
    found = re.search(r"^peak (%s) (of heap|mapped) at ([\d.]+) s" % FIGURE, text, re.M)
    mt.check(found, "no headline: %s" % text)
    Figure(found[1]).shows(report["host" if found[2] == "of heap" else "map"]["peak_bytes"], "peak")
    mt.equal(report["status"], "ok")
    whole = " ".join(text.split())
    mt.equal({words for words in SAYS.values() if words in whole}, {SAYS[name]}, "how it went: %s" % text)
    said = re.search(r"; (%s) of the program's own alive at exit" % FIGURE, whole)
    if said:
        Figure(said[1]).shows(leaks["bytes"], "alive at exit")
    mt.check(name != "cpp" or re.search(r"^FAILED  malloc of .*1\.00 PiB\)? at", text, re.M), "the failure: %s" % text)


def case_spike_is_named():
    """By the line that turns the table over. The table itself is three columns of ROWS, made of a fourth one; three times that is pandas' own."""
    columns = 4 * 8 * 2_000_000
    text = recorded("spike").summary()
    found = re.search(r"^peak %s of heap at \S+ s, (\d+) %% of it spike\.py:(\d+) pivot$" % FIGURE, text, re.M)
    mt.check(found and int(found[1]) >= 70, "the spike is not named: %s" % text)
    mt.between(3 * columns, recorded("spike").report["host"]["peak_bytes"] - columns, 5 * columns, "the heap's peak above the columns")
    mt.equal(int(found[2]), screen.line_of(SPIKE, "return float(frame.pivot_table("), "its line")


FREED = r" freed by \d+ \(\+/- [\d.]+ (?:[KMG]i)?B\): [\d.]+ (?:[KMG]i)?B to the kernel, [\d.]+ (?:[KMG]i)?B kept\b"


@mt.variants(60, 80, long=[93, 140])
def case_no_figure_is_cut(columns):
    """Whatever the width: lines fit, and no pid, figure or heading loses a part. A name may."""
    for name in PROGRAMS if columns == 80 else ("cpp", "spike", "healthy-shell"):
        try:
            trace = recorded(name)
        except mt.Skip:
            continue
        for options in ((), ("--all",)):
            text = trace.summary(*options, columns=columns, rows=50)
            text = text[:text.index("\nmore: ")]  # commands are to be copied whole
            goldens.fits(text, columns, 80)
            cut = [line for line in text.splitlines()[2:]
                   if re.search(r"\d\.\.|^ *\.\.|\.\.\d+\.?\d* ?(?:[KMGT]i)?B|\.\.[A-Z]{2}|[A-Z]{2}\.\.|[a-z]  +\.\.$|^HOST.*\.\.$", line)
                   and not re.search(r"\.\.\.|without names: |^ +\.\.\w+  +\w+\.py:\d+$", line)]
            mt.check(not cut, "%s %s at %d columns: %s" % (name, options, columns, cut))
            mt.check("  freed by " not in text or re.search(FREED, " ".join(text.split())),
                     "%s at %d columns: what was freed is cut: %s" % (name, columns, text))
            for word in ("HOST MEMORY", "  heap (malloc)") if options else ("memtrace report",):
                mt.check(re.search("^" + re.escape(word), text, re.M), "no %r: %s" % (word, text))


@mt.variants(*golden_traces.NAMES, "fragmentation", "leak")
def case_other_screens_fit(name):
    """Rows of other commands are as wide as the terminal at most, and the maps of segments among them."""
    path = os.path.join(mt.scratch("fit"), "t")
    if name in golden_traces.NAMES:
        os.mkdir(path)
        golden_traces.unpack(name, path)
    else:
        cases.make(path, name, 301, True)
    for command in ("frag", "leaks", "peak"):
        done = mt.execute([mt.MEMTRACE, command, path], env=mt.clean_env(COLUMNS="80"))
        mt.equal([line for line in done.out.splitlines() if len(line) > 80], [], "memtrace %s: wider than 80 columns" % command)
        mt.check(command != "frag" or name != "fragmentation" or "low to high address" in done.out, "no map: %s" % done)


def case_one_row_of_python_objects():
    """What the interpreter maps for objects is one row, whoever needed the next piece; also of an interpreter without symbols."""
    for python in {mt.python(), "/usr/bin/python3"}:
        if not os.path.exists(python):
            continue
        trace = mt.shimmed([python, "-c", "class C: pass\nkept = [C() for _ in range(200000)]"]).trace.settle()
        text = trace.tool("report").out
        rows = screen.Screen(text).section("^LARGEST MAPPINGS")[1]
        mt.check(re.match(r" +(%s) +[\d.]+ %%  +(?:\d+ blocks?  )?Python objects \(pymalloc arenas\)$" % FIGURE, rows[0]), "%s: %s" % (python, rows))
        after = re.match(r" +(%s) of it after imports; MEMTRACE_PYTHON_ALLOCATORS=1 shows whose$" % FIGURE, rows[1])
        mt.check(after, "%s: how much came after the imports: %s" % (python, rows))
        arenas = Figure(rows[0].split("%")[0].rsplit(None, 1)[0].strip())
        mt.check(Figure(after[1]).value >= 0.5 * arenas.value, "200,000 objects came after the imports: %s" % rows)
        sites = trace.json("peak", "--device", "map", "-n", "100000")["sites"]
        mapped = sum(s["bytes"] for s in sites if s["bytes"] == s["blocks"] << 20)
        mt.check(abs(arenas.value - mapped) <= 4 << 20, "%s of %d bytes in pieces of 1 MiB" % (arenas, mapped))


def case_mapping_by_the_program_is_no_arena():
    """mmap.mmap() of just that size is the program's."""
    for python in {mt.python(), "/usr/bin/python3"}:
        if not os.path.exists(python):
            continue
        text = "import mmap\nkept = [mmap.mmap(-1, 1 << 20) for _ in range(64)]"
        rows = screen.Screen(mt.shimmed([python, "-c", text]).trace.settle().tool("report").out).section("^LARGEST MAPPINGS")[1]
        mt.check(re.match(r" +64\.0 MiB .*  <string>:2$", rows[0]), "%s: %s" % (python, rows))


def case_rows_that_are_asked_for_are_there():
    """-n does not lose the owners, in either form, however few lines are left."""
    lines = "\n".join("kept%d = bytes(%d)" % (i, 300000 + 1000 * i) for i in range(40))
    trace = mt.shimmed([mt.python(), "-c", lines]).trace.settle()
    for options in ((), ("--all",)):
        for rows in (1, 15, 40):
            text = trace.summary(*options, "-n", str(rows))
            _, lines = screen.Screen(text).section("^LARGEST OWNERS of the heap")
            lines = itertools.takewhile(lambda line: line.startswith(" "), lines)
            owners = [line for line in lines if re.match(r" +%s +[\d.]+ %%  " % FIGURE, line) and not re.search(r" \d+ others?$", line)]
            mt.equal(len(owners), rows, "owners with %s -n %d: %s" % (options, rows, text))


def case_what_was_lost_is_said():
    """In each summary, whatever else there is room for."""
    done = mt.shimmed([mt.program("owners")], env={"MEMTRACE_DEPTH": "2"})
    text = done.trace.settle().summary()
    mt.check(re.search(r"^[\d,]+ stacks lack their outer frames", text, re.M), text)


def case_growth_is_not_healthy():
    """What leaks calls growth is said, and then nothing is called healthy."""
    done = mt.shimmed([mt.program("owners"), "2"])
    text = " ".join(done.trace.settle().summary().split())
    grown = [s for s in done.trace.json("leaks", "-n", "1000")["sites"] if s["group"]]
    mt.check(grown, "leaks finds no growth")
    mt.check("healthy" not in text and "keep_line keeps more and more" in text and
             re.search(r", and %d more sites?\b" % (len(grown) - 1) if len(grown) > 1 else r"\(memtrace leaks\)", text), text)


def case_exit_status_is_not_healthy():
    """Who asks why a job died hears that memory was not the reason, not that all is well."""
    done = mt.shimmed([sys.executable, "-c", "raise SystemExit(7)"])
    text = done.trace.settle().summary()
    mt.check("healthy" not in text and "no trouble with memory (exit 7): nothing goes on growing" in text, text)


def case_commands_to_type_work():
    """Each command at the end, as it stands there."""
    trace = recorded("cpp")
    text = trace.summary(columns=200, rows=50)
    found = re.findall(r"memtrace ([^|\n]+?)(?: \||   |$)|\| ([^|\n]+?)(?= \||$)", text[text.index("\nmore:"):], re.M)
    commands = [(a or b).split() for a, b in found]
    mt.check(len(commands) >= 4, "commands: %s" % commands)
    for words in commands:
        mt.equal(words[-1], trace.path, "the trace in %s" % words)
        mt.equal(mt.execute([mt.MEMTRACE, *words]).status, 0, "status of %s" % words)


def case_run_prints_the_summary():
    done = mt.supervised([mt.program("owners")])
    goldens.fits(done.err, 80, 24)
    mt.check(re.search(r"^peak ", done.err, re.M), done.err)


mt.main()
