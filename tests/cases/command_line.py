#!/usr/bin/env python3
"""The command line as a whole: each option has an effect or is refused, wrong words are answered with the right ones, lists say what they
lack, and screens are what the terminal can show."""
# timeout: 400
import functools
import json
import os
import pty
import re
import subprocess
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../battery"))
import cases
import heaps
import mt


def run(*words, cwd=None, timeout=mt.WAIT, **env):
    if "LANG" in env:
        env = {"LC_ALL": "", "LC_CTYPE": "", **env}
    return mt.execute([mt.MEMTRACE, *words], env=mt.clean_env(**env), cwd=cwd, timeout=timeout)


def refused(done, *texts):
    """Wrong usage: nothing on stdout, and one line that says what is wrong."""
    mt.equal((done.status, done.out, done.err.count("\n")), (2, "", 1), "%r: status, output, lines of the error" % done)
    for text in texts:
        mt.check(text in done.err, "%r lacks %r" % (done.err, text))


commands = functools.lru_cache(None)(mt.commands)


@functools.lru_cache(None)
def options(command):
    """{long name: argument or None} of the command's help."""
    return {m[1]: m[2] for m in re.finditer(r"^  (?:-\w, |    )--([\w-]+)(?:[ =]([A-Z0|1]+)(?= |$))?", run(command, "--help").out, re.M)}


# ---- traces ------------------------------------------------------------------------------------------------------

PROGRAM = """
import json, os, subprocess, sys, threading, time
kept = []
def keep(size):
    kept.append(bytearray(size))
def work(steps):
    for n in range(steps):
        for i in range(20):
            keep(3000 + i)
        [bytearray(100 * i) for i in range(100)]
        time.sleep(0.002)
def work_harder(steps):
    work(steps)
threading.Thread(target=work, args=(30,)).start()
work_harder(40)
large = bytearray(1 << 20)
if len(sys.argv) < 2:
    subprocess.run([sys.executable, sys.argv[0], "child"])
"""


@functools.lru_cache(None)
def ordinary():
    """Two processes of Python: threads, steps, native and Python frames."""
    path = os.path.join(mt.scratch("program"), "train.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    trace = mt.shimmed([mt.python(), path]).trace.settle()
    mt.equal(run("symbolize", trace.path).status, 0)
    return trace.path


@functools.lru_cache(None)
def device():
    """A generated training on a device that runs out of memory, beside another one."""
    path = os.path.join(mt.scratch("battery"), "t")
    cases.make(path, "other_process_traced", 301, True)
    return path


@functools.lru_cache(None)
def damaged():
    """Each ring of 31 processes is cut off: two findings for each."""
    command = ["sh", "-c", "for i in %s; do %s 50 10 10; done; kill -KILL $$" % (" ".join(map(str, range(30))), mt.program("busy"))]
    trace = mt.shimmed(command).trace.settle()
    for name in trace.files():
        if name.endswith((".ring", ".trace")):
            os.truncate(os.path.join(trace.path, name), 100)
    return trace.path


@functools.lru_cache(None)
def many():
    """A site for each of 300 functions."""
    path = os.path.join(mt.scratch("program"), "many.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write("kept = []\n" + "".join("def f%d():\n    kept.append(bytearray(%d))\nf%d()\n" % (i, 2000 + i, i) for i in range(300)) + "import os; os._exit(0)\n")
    return mt.shimmed([mt.python(), path]).trace.settle().path


def pids(trace):
    return [p["pid"] for p in json.loads(run("report", "--json", trace).out)["processes"]]


# ---- commands ----------------------------------------------------------------------------------------------------


@mt.variants((), ("help",), ("--help",), ("-h",))
def case_commands_are_listed(*words):
    """All of them with a line each, and how to begin."""
    done = run(*words)
    mt.equal((done.status, done.err), (0, ""))
    for command in ("run", "env", "start", "stop", "report", "html", "peak", "leaks", "holders", "frag", "whatif", "timeline", "live", "push", "diff", "export", "import", "symbolize", "reduce", "fleet", "pack", "list", "prune", "check", "dump"):
        mt.check(re.search(r"^  (\w+\|)?%s(\|\w+)? +\w.{10}" % command, done.out, re.M), "%s is not listed: %s" % (command, done.out))
    mt.check("memtrace run -- PROGRAM" in done.out and "memtrace help COMMAND" in done.out, done.out)
    mt.check(len(done.out.splitlines()) <= 24, "more than a screen")
    mt.equal([line for line in done.out.splitlines() if len(line) > 80], [], "lines over 80 columns")


def case_help_of_a_command():
    for command in commands():
        mt.equal(run("help", command).out, run(command, "--help").out, "memtrace help " + command)
    refused(run("help", "reprot"), "'report'?")


def case_help_fits():
    """80 columns; what comes first is what it does and an example; the most used options are on the first screen."""
    for command in commands():
        lines = run(command, "--help").out.splitlines()
        wide = [line for line in lines if len(line) > 80]
        mt.equal(wide, [], "lines of memtrace %s --help over 80 columns" % command)
        mt.between(8, len(lines), 32, "lines of memtrace %s --help" % command)
        first = next(i for i, line in enumerate(lines) if re.match(r"  (-\w,|   ) --", line))
        mt.check(any(re.match(r"  (eval \$\()?memtrace " + command, line) for line in lines[:first]), "%s: no example" % command)
        mt.check(first + min(8, len(options(command))) <= 24, "%s: its options begin at line %d" % (command, first))
        mt.check(lines[-1].startswith(("Read: docs/", "Next: ")), "%s says nothing to read: %s" % (command, lines[-1]))
        for page in re.findall(r"docs/\w+\.md", lines[-1]):
            mt.check(os.path.exists(os.path.join(mt.TOP, page)), "%s: there is no %s" % (command, page))


@mt.variants(("reprot", "report"), ("pekc", "peak"), ("time", "timeline"), ("leak", "leaks"), ("dif", "diff"))
def case_unknown_command(word, meant):
    refused(run(word), "unknown command '%s'; did you mean '%s'?" % (word, meant))


@mt.variants("xyzzy", "recrod", "q")
def case_nothing_is_made_up(word):
    """What comes near nothing has no suggestion, and the recorder is no command for people."""
    refused(run(word), "unknown command '%s'; see memtrace --help" % word)


# ---- options -----------------------------------------------------------------------------------------------------


@mt.variants(("report", "--proces=3", "--process"), ("peak", "--formm", "--from"), ("leaks", "--failover=1M", "--fail-over"),
             ("timeline", "--cvs", "--csv"), ("run", "--ouptut=x", "--output"))
def case_unknown_option(command, word, meant):
    refused(run(command, word), "unknown option '%s'; did you mean '%s'?" % (word.split("=")[0], meant))


@mt.variants(("peak", "--by", "functoin", "function"), ("report", "--by", "catgeory", "category"), ("timeline", "--by", "steps", "step"),
             ("peak", "--at", "paek", "peak"), ("frag", "--at", "omm", "oom"), ("env", "--stacks", "smaple", "sample"))
def case_unknown_value(command, option, word, meant):
    refused(run(command, option, word), option, "unknown value '%s'; did you mean '%s'?" % (word, meant))


def rules():
    path = os.path.join(mt.scratch("rules"), "rules")
    with open(path, "w", encoding="utf-8") as file:
        file.write('RULE(kv_cache, PYTHON, "*:keep")\n')
    return path


def suppressions():
    path = os.path.join(mt.scratch("rules"), "supp")
    with open(path, "w", encoding="utf-8") as file:
        file.write("leak:keep\n")
    return path


# Values that ought to make a difference; one of a list is enough. Options of `run` and `env` are a table of their own.
VALUES = {
    "at": ["0.05", "oom", "end"], "from": lambda: ["%.6f" % (0.999 * end_of(t)) for t in (ordinary(), device())], "to": ["0.1", "5"], "process": lambda: [str(pids(t)[-1]) for t in (ordinary(), device())],
    "device": ["host", "cuda:0"], "rows": ["1", "all"], "filter": ["keep"], "rules": lambda: [rules()], "fit": ["1M"], "fail-over": ["1", "1/step"],
    "suppressions": lambda: [suppressions()], "alert": ["0.001%"],
    "by": ["function", "step", "thread"], "format": ["csv", "speedscope", "markdown", "junit"], "source": ["all", "none"], "html": ["/dev/stdout"], "output": ["/dev/null"],
}
# What a command is not without.
ALWAYS = {"export": ("--format", "folded"), "html": ("--output", "/dev/stdout")}
# What these do is seen elsewhere: how often it looks, and progress (below).
ELSEWHERE = {("live", "every")} | {(c, "quiet") for c in ("report", "html", "peak", "leaks", "frag", "whatif", "timeline", "diff", "export", "check", "dump", "symbolize")}
ELSEWHERE |= {("export", "output"), ("live", "openmetrics"), ("html", "detail")}  # export_pprof.py, live.py, page.py
ELSEWHERE |= {(c, "no-debug-files") for c in ("report", "html", "peak", "leaks", "frag", "whatif", "diff", "export")}  # foreign.py: of a trace without symbols
RECORDING = {
    "output": "MEMTRACE_OUTPUT=x", "record": "MEMTRACE_RECORD=young", "stacks": "MEMTRACE_STACKS=none", "sample": "MEMTRACE_SAMPLE=1K", "depth": "MEMTRACE_DEPTH=7",
    "limit": "MEMTRACE_LIMIT=1G", "keep-free": "MEMTRACE_KEEP_FREE=1K", "ring-dir": "MEMTRACE_RING_DIR=/tmp", "children": "MEMTRACE_CHILDREN=0",
    "exclude": "MEMTRACE_EXCLUDE=no", "paused": "MEMTRACE_PAUSED=1", "python-allocators": "MEMTRACE_PYTHON_ALLOCATORS=1",
    "holders": "MEMTRACE_HOLDERS=1", "verbose": "MEMTRACE_VERBOSE=1", "reduce": "MEMTRACE_REDUCE=1",
}


def case_a_link_is_written_through():
    """As /dev/stdout, which is a link to a file where stdout is one: it stays a link, and stdout has all of it."""
    link, out = os.path.join(mt.scratch("link"), "stdout"), os.path.join(mt.scratch("out"), "out")
    os.symlink("/proc/self/fd/1", link)
    for words, first in (("html", "<!doctype html>"), ("export --format folded", "")):
        with open(out, "w", encoding="utf-8") as file:
            done = subprocess.run([mt.MEMTRACE, *words.split(), "-o", link, ordinary()], stdout=file, stderr=subprocess.PIPE, env=mt.clean_env(), check=False)
        mt.equal((done.returncode, done.stderr), (0, b""), words)
        mt.check(os.path.islink(link), "%s: the link is gone" % words)
        with open(out, encoding="utf-8") as file:
            text = file.read()
        mt.check(len(text) > 200 and text.lower().startswith(first), "%s: stdout has %r" % (words, text[:100]))
    target = os.path.join(mt.scratch("target"), "page.html")
    os.unlink(link)
    os.symlink(target, link)
    mt.equal(run("html", "-o", link, ordinary()).status, 0)
    mt.check(os.path.islink(link) and os.path.getsize(target) > 10000, "where the link leads there is no page")


@functools.lru_cache(None)
def said(*words):
    done = run(*words)
    return done.status, re.sub(r"\b0x[0-9a-f]+", "", done.out)


def words_of(command, trace):
    return (ordinary(), trace) if command == "diff" else (trace,)


def tried(command, option, argument):
    """Each way to use the option."""
    values = VALUES.get(option)
    values = values() if callable(values) else values
    return [("--" + option,)] if not argument else [("--" + option, value) for value in values]


def is_felt(command, option, argument):
    for trace in (ordinary(), device(), damaged()):
        for forms in ((), ("--json",)):
            if forms and ("json" not in options(command) or option in ("json", "csv")):
                continue
            forms += () if option in ("format", "output") else ALWAYS.get(command, ())
            before = said(command, *forms, *words_of(command, trace))
            for more in tried(command, option, argument):
                after = said(command, *forms, *more, *words_of(command, trace))
                if after[0] != 2 and after != before:
                    return True
    return False


@mt.variants("report", "html", "peak", "leaks", "frag", "timeline", "diff", "live", "export", "check", "dump", "symbolize")
def case_every_option_is_felt(command):
    """On some trace something else is printed, or the exit status is another."""
    for option, argument in options(command).items():
        if option != "help" and (command, option) not in ELSEWHERE:
            mt.check(is_felt(command, option, argument), "memtrace %s --%s changes nothing" % (command, option))


@mt.variants("report", "peak", "leaks", "diff")
def case_every_key_is_felt(command):
    keys = re.search(r"one row for each: ([\w, \n]+)\n  ", run(command, "--help").out)[1]
    keys = [k for k in re.split(r"[,\s]+", keys) if k]
    keys = [k for k in keys if k != "holder"]  # tests/cases/holders.py: it takes a snapshot
    mt.equal(len(keys), 9, "keys %s" % keys)
    said_of = {k: (said(command, "--by", k, *words_of(command, ordinary())), said(command, "--by", k, "--json", *words_of(command, ordinary())))
               for k in keys}
    mt.equal([k for k, (screen, _) in said_of.items() if screen[0] != 0], [], "keys that are refused")
    mt.equal(len({json for _, json in said_of.values()}), len(keys), "different answers to the keys %s" % keys)


@mt.variants("env", "run")
def case_every_option_of_recording_is_felt(command):
    for option in options(command):
        if option in ("help", "no-report", "html", "undo", "for", "pid"):
            continue
        name, value = RECORDING[option].split("=")
        words = ["--" + option] if options(command)[option] is None else ["--%s=%s" % (option, value)]
        done = run("env", *words) if command == "env" else run("run", "--no-report", *words, "--", "env", cwd=mt.scratch())
        mt.check(re.search("%s='?%s" % (name, value), done.out), "--%s: %r" % (option, done))
    if command == "run":
        screens = [run("run", *words, "true", cwd=mt.scratch()).err for words in ([], ["--no-report"])]
        mt.equal(["HOST MEMORY" in screen for screen in screens], [True, False], "--no-report")
        page = os.path.join(mt.scratch(), "page.html")
        run("run", "--no-report", "--html", page, "true", cwd=mt.scratch())
        with open(page, encoding="utf-8") as file:
            mt.check("HOST MEMORY" in file.read(), "--html")
        refused(run("run", "--pid", "x", cwd=mt.scratch()), "'x' is no number of a process")
    else:
        mt.check("unset LD_PRELOAD" in run("env", "--undo").out, "--undo")
        mt.check(run("env", "--for", "torchrun").out.startswith("torchrun --no-python"), "--for")


def case_every_other_option_is_refused():
    """The whole matrix of commands and options: what a command does not list it does not take, and says who does."""
    every = {option: argument for command in commands() for option, argument in options(command).items()}
    mt.check(len(every) >= 35, "options %s" % sorted(every))
    for command in commands():
        for option, argument in every.items():
            if option in options(command):
                continue
            owners = [c for c in commands() if option in options(c)]
            refused(run(command, "--%s%s" % (option, "=1" if argument else "")), "--%s is no option of %s, but of %s" %
                    (option, command, ", ".join(owners)))


@mt.variants(("peak", "--fit", "1G", "--by", "function"), ("peak", "--at", "0.1", "--from", "0.05"), ("timeline", "--csv", "--json"),
             ("timeline", "--csv", "-n", "3"), ("dump", "--samples", "-n", "3"), ("dump", "--symbols", "--samples"), ("dump", "--events", "--nodes"))
def case_options_that_exclude_each_other(*words):
    refused(run(*words, ordinary()), "not with")


# ---- times, processes, devices, filters --------------------------------------------------------------------------

READING = ("report", "peak", "leaks", "frag", "timeline")


def end_of(trace):
    return json.loads(run("report", "--json", trace).out)["duration_s"]


@mt.variants("peak", "frag")
def case_behind_the_end(command):
    done = run(command, "--at", "99", ordinary())
    refused(done, "99 is behind the end of the trace, at ")
    said_end = float(re.search(r"the trace, at ([\d.]+) s", done.err)[1])
    mt.between(end_of(ordinary()) - 0.006, said_end, end_of(ordinary()) + 0.006, "the end that it says")
    refused(run(command, "--at", "2033-01-01T00:00", ordinary()), "behind the end of the trace")
    # the end as screens print it, rounded, is no later than the end
    mt.equal(run(command, "--at", "%.3f" % (end_of(ordinary()) + 0.0005), ordinary()).status, 0)


@mt.variants(*READING, "dump")
def case_from_behind_the_end(command):
    done = run(command, "--from", "99", ordinary())
    mt.equal((done.status, done.err.count("\n")), (2, 1), "%r" % done)
    mt.check("behind the end of the trace, at" in done.err, done.err)


@mt.variants(*READING, "dump")
def case_from_after_to(command):
    refused(run(command, "--from", "0.2", "--to", "0.1", ordinary()), "--from: 0.2 is after --to 0.1")


@mt.variants("-1", "-0.5", "1x", "", "nan", "inf", "2026-13-01T00:00", "step:", "yesterday", "1e400")
def case_times_that_are_none(text):
    refused(run("peak", "--at", text, ordinary()), "'%s' is no time" % text)


def case_before_the_trace():
    began = json.loads(run("report", "--json", ordinary()).out)["start"]
    refused(run("peak", "--at", "2001-01-01T00:00Z", ordinary()), "is before the trace, which began %s" % began[:19])


@mt.variants(*READING, "diff", "dump", "live")
def case_no_such_process(command):
    """Those that there are, are named; a typo is answered with the name."""
    listed = ", ".join("%d python" % pid for pid in pids(ordinary()))
    refused(run(command, "--process", "4242424", *words_of(command, ordinary())), "no process '4242424' in this trace", "python")
    if command != "dump":
        refused(run(command, "--process", "pyhton", *words_of(command, ordinary())), "did you mean 'python")
    mt.check(len(listed) > 10, listed)


def case_of_many_processes_some_are_named():
    trace = mt.shimmed(["sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do %s 10 1 10; done" % mt.program("busy")]).trace.settle().path
    refused(run("peak", "--process", "1", trace), "busy and ", " more")


@mt.variants(*READING)
def case_no_such_device(command):
    refused(run(command, "--device", "cuda:7", device()), "no device 'cuda:7' in this trace, which has cuda:0 GPU-", "host, map and pinned")
    refused(run(command, "--device", "cuda:0", ordinary()), "no device 'cuda:0' in this trace, which has host, map and pinned")


def case_nothing_matches_the_filter():
    for command in ("report", "peak", "diff"):
        for form in ((), ("--json",)):
            refused(run(command, "--filter", "nosuchthing", *form, *words_of(command, ordinary())), "nosuchthing")
    # that nothing is left of something is an answer
    done = run("leaks", "--filter", "nosuchthing", ordinary())
    mt.equal((done.status, done.err), (0, ""))
    mt.check("no stack has a frame that matches --filter 'nosuchthing'" in done.out, done.out)


def case_hostile_names_in_errors():
    """A process whose name would move the cursor."""
    path = os.path.join(mt.scratch("name"), "a\x1b[2Jb")
    os.symlink(mt.program("busy"), path)
    done = run("peak", "--process", "4242424", mt.shimmed([path, "10", "1", "10"]).trace.settle().path)
    refused(done, "a?[2Jb")


def case_an_empty_device_is_said():
    """What was asked for is printed even if there is nothing."""
    done = run("peak", "--device", "cuda:0", "--at", "0", device())
    mt.check(done.status == 0 and "0 B in 0 blocks" in done.out, "%r" % done)


# ---- lists -------------------------------------------------------------------------------------------------------


@mt.variants("peak", "leaks", "report", "diff")
def case_json_says_what_it_leaves_out(command):
    some, every = (json.loads(run(command, "--json", "-n", n, *words_of(command, many())).out) for n in ("5", "all"))
    mt.check(len(some["sites"]) < len(every["sites"]), "%d of %d" % (len(some["sites"]), len(every["sites"])))
    bytes_ = "change_bytes" if command == "diff" else "bytes"
    mt.equal((every["sites_total"], every["sites_left_out"]), (len(every["sites"]), {"count": 0, bytes_: 0}))
    total = lambda found: sum(s[bytes_] for s in found["sites"])
    mt.equal((some["sites_total"], some["sites_left_out"]), (len(every["sites"]), {
        "count": len(every["sites"]) - len(some["sites"]), bytes_: total(every) - total(some)}))
    mt.equal(run(command, "--json", "-n", "0", *words_of(command, many())).out, run(command, "--json", "-n", "all", *words_of(command, many())).out)


def case_json_is_cut_with_a_word():
    """1000 sites without -n; the rest is counted."""
    path = os.path.join(mt.scratch("program"), "more.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write("kept = []\n" + "".join("def f%d():\n    kept.append(bytearray(%d))\nf%d()\n" % (i, 2000 + i, i) for i in range(1100)) + "import os; os._exit(0)\n")
    trace = mt.shimmed([mt.python(), path]).trace.settle().path
    for command in ("leaks", "peak"):
        found = json.loads(run(command, "--json", "--device", "heap", trace).out)
        mt.equal((len(found["sites"]), found["sites_left_out"]["count"]), (1000, found["sites_total"] - 1000), command)
        mt.check(found["sites_total"] > 1100 and found["sites_left_out"]["bytes"] > 0, command)


@mt.variants(("peak", r"(\S+ \S+) +\S+ %  by (\d+) other owners: -n ROWS"), ("leaks", r"(\S+ \S+) by (\d+) other sites: -n ROWS"),
             ("diff", r"(\d+) more, together [-+]\S+ \S+: -n ROWS"))
def case_screens_say_what_they_leave_out(command, text):
    words = (ordinary(), many()) if command == "diff" else (many(),)
    mt.check(re.search(text, run(command, *words).out), run(command, *words).out)
    mt.check("-n ROWS" not in run(command, "-n", "all", *words).out, "-n all leaves something out")


def case_frag_is_cut_with_a_word():
    path = device()
    every, some = (json.loads(run("frag", "--json", "-n", n, path).out)["devices"][0] for n in ("all", "1"))
    for name, size in (("segments", "size_bytes"), ("pinned_by", "held_bytes")):
        rest = every[name][1:]
        mt.check(rest, "there is no more than one of %s" % name)
        mt.equal((some[name], some[name + "_total"], some[name + "_left_out"]),
                 (every[name][:1], len(every[name]), {"count": len(rest), "bytes": sum(r[size] for r in rest)}), name)
    screen = run("frag", "-n", "1", path).out
    mt.check(re.search(r"^  \d+ more, with less unused, together \S+ \S+: -n ROWS$", screen, re.M), screen)
    mt.check(re.search(r"^  \d+ more sites, which hold \S+ \S+: -n ROWS$", screen, re.M), screen)
    mt.check("-n ROWS" not in run("frag", "-n", "all", path).out, "-n all leaves something out")


def case_timelines_are_cut_with_a_word():
    every = json.loads(run("timeline", "--json", ordinary()).out)
    some = json.loads(run("timeline", "--json", "-n", "2", ordinary()).out)
    mt.equal((some["series"], some["series_total"], some["series_left_out"]), (every["series"][:2], len(every["series"]), len(every["series"]) - 2))
    mt.check(re.search(r"\d+ more, none above \S+ \S+: -n ROWS", run("timeline", "-n", "2", ordinary()).out), "the chart says nothing")
    steps = json.loads(run("timeline", "--by", "step", "--json", "-n", "3", ordinary()).out)
    mt.equal((len(steps["steps"]), steps["rows_left_out"]), (3, steps["rows_total"] - 3))


def case_check_is_short():
    every = run("check", "-n", "all", damaged()).out.splitlines()
    short = run("check", damaged()).out.splitlines()
    mt.check(len(every) > 45 and len(short) <= 43 and len(short) < len(every), "%d lines, %d with -n all" % (len(short), len(every)))
    left_out = sum(int(n) for n in re.findall(r"^(\d+) more: -n all$", "\n".join(short), re.M))
    listed = [line for line in short if not line.endswith("more: -n all")]
    mt.equal(len(listed) + left_out, len(every), "listed and left out")
    of_processes = lambda lines: any(line.startswith("process ") for line in lines)
    mt.check(set(listed) <= set(every) and of_processes(listed) == of_processes(every), short)
    found = json.loads(run("check", "--json", damaged()).out)
    mt.equal((len(found["findings"]), found["findings_left_out"]), (found["findings_total"], 0))
    found = json.loads(run("check", "--json", "-n", "3", damaged()).out)
    mt.equal(len(found["findings"]) + found["findings_left_out"], found["findings_total"])


@mt.variants("peak", "leaks", "report")
def case_by_means_the_same_in_json(command):
    """The default differs, and is named; --by does not."""
    mt.equal(json.loads(run(command, "--json", ordinary()).out)["by"], "stack")
    found = json.loads(run(command, "--json", "--by", "site", ordinary()).out)
    mt.equal(found["by"], "site")
    if command == "peak":
        blocks = re.search(r"^HEAP .*\n(?:.*\n)*?.* by (\d+) other owners", run(command, "-n", "3", ordinary()).out, re.M)
        mt.equal(sum(s["memory"] == "heap" for s in found["sites"]), 3 + int(blocks[1]), "sites in JSON, and on the screen")


# ---- the screen --------------------------------------------------------------------------------------------------

UTF8, ASCII = ("C.UTF-8", "en_US.utf8", "de_DE.UTF-8@euro"), ("C", "POSIX", "en_US.ISO-8859-1", "ja_JP.eucJP", "")
DRAWN = (("report",), ("timeline",), ("frag",), ("timeline", "--by", "step"), ("live",))


@mt.variants(*ASCII)
def case_other_locales_get_ascii(locale):
    for words in DRAWN if locale == "C" else DRAWN[1:2]:
        done = run(*words, device(), LC_ALL=locale, LANG="")
        mt.equal((done.status, re.findall(r"[^\x00-\x7f]", done.out)), (0, []), "%s: status, what is not ASCII" % (words,))
    mt.check(re.search(r"[_.:=+*#-]{16}", run("timeline", ordinary(), LC_ALL=locale, LANG="").out), "no bars")


@mt.variants(*UTF8)
def case_utf8_gets_bars(locale):
    mt.check("█" in run("timeline", ordinary(), LANG=locale).out, "no bars")
    # the first that is set counts
    mt.check("█" not in run("timeline", ordinary(), LANG=locale, LC_ALL="C").out, "LC_ALL is C")
    mt.check("█" in run("timeline", ordinary(), LANG="C", LC_CTYPE=locale).out, "LC_CTYPE is UTF-8")


def case_same_shape_in_ascii():
    """A character for each: nothing moves."""
    for words in DRAWN[:3]:
        words = ("report", "--all") if words == ("report",) else words  # a summary of a leak has no bars
        trace = device() if words == ("frag",) else ordinary()
        wide, narrow = run(*words, trace, LANG="C.UTF-8").out, run(*words, trace, LANG="C").out
        mt.equal([len(line) for line in wide.splitlines()], [len(line) for line in narrow.splitlines()], "columns of %s" % (words,))
        mt.check(wide != narrow and re.sub(r"[^\x00-\x7f]", "?", wide).splitlines()[0] == narrow.splitlines()[0], words)


def case_data_stays_utf8():
    """Names of functions are what they are, for programs in any locale; on a screen of ASCII they are readable."""
    path = os.path.join(mt.scratch("program"), "names.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write("kept = []\ndef größe():\n    kept.extend(bytearray(5000) for _ in range(50))\ngröße()\n")
    trace = mt.shimmed([mt.python(), path]).trace.settle().path
    for words in (("peak", "--json"), ("dump",)):
        mt.check("größe" in run(*words, trace, LANG="C").out, "%s lost the name" % (words,))
        mt.equal(run(*words, trace, LANG="C").out, run(*words, trace, LANG="C.UTF-8").out)
    mt.check("größe" in run("peak", trace, LANG="C.UTF-8").out and "gr??e" in run("peak", trace, LANG="C").out, "the screen's name")
    mt.equal(run("timeline", "--csv", trace, LANG="C").out, run("timeline", "--csv", trace, LANG="C.UTF-8").out)


def case_full_disk_is_seen_in_ascii():
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([mt.MEMTRACE, "report", ordinary()], stdout=full, stderr=subprocess.PIPE, env=mt.clean_env(LC_ALL="C"), check=False)
    mt.check(done.returncode == 3 and b"No space left" in done.stderr, done)


@mt.variants((), ("--by", "step"), ("--by", "phase"))
def case_timeline_is_a_chart_in_a_pipe(*words):
    """Without the plot that a terminal has above it; CSV is asked for."""
    chart, csv = run("timeline", *words, ordinary(), LANG="C.UTF-8").out, run("timeline", *words, "--csv", ordinary(), LANG="C.UTF-8").out
    mt.check(re.match(r"PROCESS|STEP|PHASE", chart), chart)
    mt.check(re.match(r"(time_s|start_s),", csv), csv[:100])


# ---- progress ----------------------------------------------------------------------------------------------------


@functools.lru_cache(None)
def long():
    return mt.shimmed([mt.program("busy"), "200000", "1000", "300"]).trace.settle().path


def on_terminal(words, stdout=None, fast=True, **env):
    """What the command prints on the terminal that its stderr is, and on another file."""
    master, slave = pty.openpty()
    env = mt.clean_env(**{"TERM": "xterm", "LANG": "C.UTF-8", "MEMTRACE_INDEX": "0", **env})
    if fast:
        env["LD_PRELOAD"] = os.path.join(mt.BUILD, "tests/programs/libfast.so")
    child = subprocess.Popen([mt.MEMTRACE, *words], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE if stdout is None else slave,
                             stderr=slave, start_new_session=True)
    os.close(slave)
    out = child.stdout.read() if stdout is None else b""
    shown = b""
    while True:
        try:
            shown += os.read(master, 65536)
        except OSError:
            break
        if not shown:
            break
    os.close(master)
    mt.equal(child.wait(), 0, "%s: status" % (words,))
    return shown.decode(), out.decode()


def case_progress_of_heap_settings():
    """The run's own replay, then which setting of how many."""
    shown, _ = on_terminal(("whatif", "--host", "MALLOC_ARENA_MAX=1", heaps.recorded("arenas")[0].path))
    for words in "the run", "1 of 1, MALLOC_ARENA_MAX=1":
        mt.check(re.search(r"\rreplaying %s: [\d.]+( M)? events \.\.\. \d+ %%" % words, shown), "%s: %s" % (words, shown[:300]))


def case_progress_of_symbolize():
    shown, _ = on_terminal(("symbolize", ordinary()))
    mt.check(re.match(r"\rlooking up \d+ addresses \.\.\. \d+ %\x1b\[K", shown) and shown.endswith("\r\x1b[K"), shown[:200])
    mt.equal(on_terminal(("symbolize", "--quiet", ordinary()))[0], "")


LINE = re.compile(r"\rreading ([\d.]+(?: M)?) events \.\.\. (\d+) %\x1b\[K")


@mt.variants("report", "peak", "leaks", "frag", "timeline", "check", "diff", "dump")
def case_progress(command):
    """From a second on; it says how much there is, goes up, and leaves nothing behind."""
    words = (command, long(), long()) if command == "diff" else (command, long())
    shown, out = on_terminal(words)
    parts = LINE.findall(shown)
    mt.check(parts, "no progress: %r" % shown[:200])
    mt.equal(LINE.sub("", shown).replace("\r\x1b[K", ""), "", "what else is on the terminal")
    mt.check(shown.endswith("\r\x1b[K"), "it stays: %r" % shown[-60:])
    events = {int(events) for events, _ in parts}
    mt.equal(len(events), 1, "how many events")
    mt.between(390000, events.pop(), 450000, "events")
    percents = [int(percent) for _, percent in parts]
    mt.check(all(0 <= p <= 100 for p in percents) and max(percents) > 50, percents)
    falls = sum(a > b for a, b in zip(percents, percents[1:]))
    mt.check(falls <= {"diff": 3}.get(command, 1), "it begins anew %d times" % falls)
    mt.equal(out, run(*words, LANG="C.UTF-8").out, "the screen")


@mt.variants(("quiet", ("--quiet",), {}), ("-q", ("-q",), {}), ("dumb", (), {"TERM": "dumb"}), ("no TERM", (), {"TERM": ""}))
def case_no_progress(_name, more, env):
    mt.equal(on_terminal(("report", *more, long()), **env)[0], "")


def case_no_progress_within_a_second():
    mt.equal(on_terminal(("report", ordinary()), fast=False)[0], "")


def case_no_progress_in_files():
    done = run("report", long(), LD_PRELOAD=os.path.join(mt.BUILD, "tests/programs/libfast.so"), TERM="xterm")
    mt.equal((done.status, done.err), (0, ""))


def case_progress_is_gone_before_the_screen():
    """Both on the same terminal: behind the last word of progress comes the screen alone."""
    shown, _ = on_terminal(("timeline", long()), stdout="terminal", NO_COLOR="1")
    before, _, screen = shown.rpartition("\r\x1b[K")
    mt.check(LINE.findall(before) and screen.startswith("heap, live") and "\x1b" not in screen, shown[-300:])


if __name__ == "__main__":
    mt.main()
