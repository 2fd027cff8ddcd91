#!/usr/bin/env python3
"""Names that mean harm (escape sequences, newlines, bytes that are no UTF-8, text from right to left, shells' words) in every field that a trace
holds, in directories and in programs that are really run: every command prints what shows and nothing else, and what is for programs can be
read by them."""
# timeout: 400
import concurrent.futures
import csv
import fcntl
import functools
import io
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import termios
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../battery"))
import cases
import golden_traces
import hostile
import imports
import mt

sys.path.insert(0, os.path.join(mt.TOP, "scripts"))
import decode

BATTERY = {"graph_pools": 301, "leak": 301, "host_pressure": 301, "phase_peak": 303}  # with their seeds
TRACES = ("devices", "gpu", "system", "tree", "imported", *BATTERY)
LONG = ("leak", "gpu", "phase_peak", "graph_pools")
BYS = ("stack", "site", "function", "file", "library", "category", "thread", "process", "size")
# Each command's ways to print; None: it is run in a case of its own.
COMMANDS = {
    "run": None, "env": None, "fleet": None, "import": None, "record": None, "start": None, "stop": None,
    "report": [["--all"], ["--json"], [], ["-n", "all"], *(["--format", f] for f in ("markdown", "github", "sarif", "junit")), *(["--by", by] for by in BYS)],
    "html": [["-o", "/dev/null"]],
    "peak": [[], ["--json"], ["-n", "all"], ["--at", "0.001"], ["--at", "oom"], ["--fit", "1M"], ["--fit", "1M", "--json"], *(["--by", by] for by in BYS)],
    "leaks": [[], ["--json"], ["--fail-over", "1K,1/s,1/step"], ["-n", "all"], *(["--by", by] for by in BYS)],
    "holders": None,
    "frag": [[], ["--json"], ["--at", "oom"], ["--at", "end"], ["-n", "all"]],
    "whatif": [[], ["--json"], ["--device-memory", "1M"], ["--host", "glibc"], ["--host", "glibc", "--json"]],
    "timeline": [[], ["--json"], ["--csv"], *(["--by", by, form] for by in ("step", "phase") for form in ("-q", "--json", "--csv"))],
    "live": [["--every", "1"], ["--json"]],
    "diff": [[], ["--html", "/dev/null"], ["--json"], ["-n", "all"], *(["--by", by] for by in BYS)],
    "export": [["--format", "folded"], ["--format", "folded", "--at", "oom"], ["--format", "csv"], ["--format", "ndjson"], ["--format", "speedscope"]],
    "symbolize": [[]],
    "reduce": [["-o", "/dev/null"]],
    "push": [["--to", "parca", "--wait", "0", "http://127.0.0.1:9"]],
    "pack": [["-o", "/dev/null"], ["--redact", "-o", "/dev/null"]],
    "list": [[], ["--json"], ["--verdict"]],
    "prune": [["--keep", "0", "--dry-run"]],
    "check": [[], ["--json"], ["-n", "all"]],
    "dump": [["--nodes"], ["--nodes", "--json"], ["--samples"], ["--samples", "--json"], ["--symbols"], ["--symbols", "--json"]],
}
COLOURS = r"\x1b\[(?:0|1|1;31|2)m"
PROGRESS = r"\r(?:[a-z ]+ [\d.,]+(?: [MG])? [a-z ]+ \.\.\. \d+ %)?\x1b\[K"
LIVE = r"\x1b\[H\x1b\[2J|\x07"


# ---- what may be printed -------------------------------------------------------------------------------------------


def harmless(output, own=""):
    """Why a terminal would do more than show this, or None; `own` are memtrace's escape sequences."""
    try:
        text = output.decode()
    except UnicodeDecodeError as error:
        return "no UTF-8: %s in %r" % (error, output[max(0, error.start - 60):error.end + 20])
    if own:
        text = re.sub(own, "", text)
    bad = hostile.UNSEEN.search(text)
    if bad:
        return "%a after %a" % (bad[0], text[max(0, bad.start() - 80):bad.start()])
    line = re.search("^%s.*" % hostile.MARK, text, re.M)
    return "a line of its own: %a" % line[0][:80] if line else None


def reads(options, text):
    """Why a program could not read it, or None."""
    try:
        if "--json" in options and text.strip():
            for line in text.splitlines() if text.startswith('{"record"') else [text]:
                json.dumps(json.loads(line), ensure_ascii=False).encode()
        if "--csv" in options and text.strip():
            rows = list(csv.reader(io.StringIO(text), strict=True))
            if len({len(row) for row in rows}) != 1:
                return "rows of %s fields" % {len(row) for row in rows}
    except (ValueError, csv.Error) as error:
        return "%s: %s" % (type(error).__name__, error)
    return None


def in_pipes(command, env, cwd):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, env=env, cwd=cwd, timeout=mt.WAIT)
    return done.returncode, done.stdout, done.stderr


def on_terminal(command, env, cwd):
    """Both streams on one terminal, which changes nothing."""
    master, slave = pty.openpty()
    flags = termios.tcgetattr(slave)
    flags[1] &= ~termios.OPOST
    termios.tcsetattr(slave, termios.TCSANOW, flags)
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 45, 110, 0, 0))
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=slave, stderr=slave, env=env, cwd=cwd, start_new_session=True)
    os.close(slave)
    out = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:  # nobody has its other end
            break
        if not piece:
            break
        out += piece
    os.close(master)
    return child.wait(mt.WAIT), out, b""


def environment(**more):
    return mt.clean_env(TERM="xterm-256color", **more)


def complaints(words, path, terminal, other=None, cwd=None, fine=False):
    """What is wrong with what one command prints of one trace; `fine`: it can be read."""
    command = [mt.MEMTRACE, *words, *([other] if other else []), path]
    env = environment(LC_ALL="C" if terminal else "C.UTF-8")
    status, out, err = (on_terminal if terminal else in_pipes)(command, env, cwd)
    may = (127,) if words[:2] == ["run", "--"] else (0, 1) if fine else (0, 1, 2, 3)  # as a shell says that there is no such command
    found = [] if status in may else ["status %d: %a" % (status, (out + err)[-300:])]
    own = "|".join([COLOURS, PROGRESS] + [LIVE] * (words[0] == "live")) if terminal else ""
    for what, output in (("stdout", out), ("stderr", err)):
        why = harmless(output, own)
        found += ["%s: %s" % (what, why)] if why else []
    for_eyes = words[0] not in ("dump", "export", "import") and not {"--json", "--csv"} & set(words)
    if for_eyes and terminal and any(byte > 126 for byte in out):
        found.append("no ASCII where the locale has none else")
    why = None if found or status not in (0, 1) or terminal else reads(words, out.decode())
    found += [why] if why else []
    return ["memtrace %s%s: %s" % (" ".join(words), " (terminal)" if terminal else "", f) for f in found]


def all_commands(path, other, number, cwd=None):
    """All commands; of their further ways a third, by the number of the trace."""
    words = [(command, options) for command, ways in COMMANDS.items() for i, options in enumerate(ways or []) if i < 2 or (i + number) % 3 == 0]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        jobs = [pool.submit(complaints, [command, *options], path, terminal, other if command == "diff" else None, cwd, options in ([], ["--all"]))
                for command, options in words for terminal in (False, True) if not (terminal and {"--json", "--csv"} & set(options))]
        return [c for job in jobs for c in job.result()]


# ---- traces ---------------------------------------------------------------------------------------------------------


def golden(name):
    return golden_traces.unpack(name, mt.scratch(name))


def battery(kind):
    path = os.path.join(mt.scratch(kind), "t")
    cases.make(path, kind, BATTERY[kind], True)
    return path


def imported(_):
    return imports.imported(imports.one_block(mt.scratch("imported"), "s.pickle", "step"))


@functools.lru_cache(None)
def rewritten():
    """[(name, path, fields)]"""
    out = []
    for number, name in enumerate(TRACES):
        change = hostile.Changer(number)
        out.append((name, hostile.rewrite((battery if name in BATTERY else imported if name == "imported" else golden)(name), change), change.fields))
    return out


# ---- cases ----------------------------------------------------------------------------------------------------------


def case_every_command_is_in_the_table():
    with open(os.path.join(mt.TOP, "analyzer/commands/commands.def"), encoding="utf-8") as file:
        mt.equal(set(re.findall(r"^COMMAND\((\w+),", file.read(), re.M)), set(COMMANDS), "commands")


def case_every_field_is_changed():
    """The format has no text that the rewriting leaves as it is."""
    records, arrays, kinds = hostile.documented()
    mt.equal(records, {word: row[0] for word, row in hostile.RECORDS.items()}, "records with their numbers")
    mt.equal(arrays, {"magic", "boot_id", "host", "ring_dir", "name"}, "fields of text")  # name: of a snapshot, case_holders_of_such_names
    mt.equal(kinds, {i + 1: word for i, word in enumerate(("machine", "cgroup", "process", "mapping", "device", "process on a device"))}, "kinds of samples")
    changed = set().union(*(fields for _, _, fields in rewritten()))
    texts = {word for word, (_, _, count) in hostile.RECORDS.items() if count != 0}
    wanted = texts | {"host", "boot_id", "ring_dir", "function", "file", "language", "cgroup text1", "cgroup text2", "process text1", "process text2",
                      "mapping text1", "device text1", "device text2", "device-process text1", "device-process text2"}
    mt.equal(wanted - changed, set(), "fields that no trace has")


@mt.variants(*[t for t in TRACES if t not in LONG], long=LONG)
def case_trace(name):
    traces, number = rewritten(), TRACES.index(name)
    wrong = all_commands(traces[number][1], traces[(number + 1) % len(traces)][1], number)
    mt.check(not wrong, "%d complaints: %s" % (len(wrong), " ;; ".join(wrong[:6])))


@mt.variants("devices", "system", "tree", "phase_peak")
def case_second_decoder_agrees(name):
    path = rewritten()[TRACES.index(name)][1]
    mt.check(b"\\u001b[2J" in subprocess.run([mt.MEMTRACE, "dump", path], capture_output=True, env=environment()).stdout, "the names are not in it")
    for option in ("--nodes", "--samples", "--symbols"):
        if option == "--samples" and not os.path.exists(os.path.join(path, "samples")):
            continue
        want = subprocess.run([sys.executable, os.path.join(mt.TOP, "scripts/decode.py"), option, path], capture_output=True, env=environment())
        got = subprocess.run([mt.MEMTRACE, "dump", option, path], capture_output=True, env=environment())
        mt.equal((want.returncode, want.stderr), (0, b""), "decode.py " + option)
        in_order = sorted if option == "--symbols" else list  # which module comes first is the reader's business
        lines = [in_order(out.splitlines()) for out in (got.stdout, want.stdout)]
        differ = next((pair for pair in zip(*lines) if pair[0] != pair[1]), None)
        mt.check(not differ, "dump %s: %a, not %a" % (option, *(mt.clip(line.decode()) for line in differ or (b"", b""))))
        mt.equal(len(lines[0]), len(lines[1]), "lines of dump " + option)


def case_json_has_the_names():
    """Nothing is lost but what is no UTF-8, of which each byte is one U+FFFD."""
    path = golden("tree")
    name = b"a\x1b[2J\n\xff\xe2\x80\xc2\x9b\x7f\"\\\xe2\x80\xae" + "内\U000e0041".encode()
    want = "a\x1b[2J\n\ufffd\ufffd\ufffd\x9b\x7f\"\\\u202e内\U000e0041"
    hostile.rewrite(path, lambda field, text: name if field == "PROGRAM" else text)
    report = json.loads(subprocess.run([mt.MEMTRACE, "report", "--json", path], stdout=subprocess.PIPE, check=True).stdout)
    mt.check(all(set(p["command"]) == {want} for p in report["processes"]), "%r" % report["processes"][0]["command"])
    lines = subprocess.run([mt.MEMTRACE, "dump", "--json", path], stdout=subprocess.PIPE, check=True).stdout.splitlines()
    programs = [r for r in map(json.loads, lines) if r["record"] == "program"]
    mt.check(programs and all(p["exe"] == want and set(p["argv"]) == {want} for p in programs), "%r" % programs)


def case_damage_is_told_in_few_lines():
    """A file with 300 blocks whose checksums are wrong: twenty are named, and how many more there are."""
    path = golden("final")
    file = os.path.join(path, next(f for f in os.listdir(path) if f.endswith(".trace")))
    block = decode.trace_blocks(file)[0]
    data = decode.load(file)
    bad = bytearray(data[block.offset:block.offset + block.total_bytes])
    bad[-1] ^= 255
    with open(file, "wb") as out:
        out.write(data[:block.offset] + bytes(bad) * 300 + data[block.offset:])
    check = mt.execute([mt.MEMTRACE, "check", path])
    found = json.loads(mt.execute([mt.MEMTRACE, "check", "--json", path]).out)
    mt.check(found["findings_total"] >= 300 and len(found["findings"]) == found["findings_total"], "%d findings" % found["findings_total"])
    mt.equal(check.status, 1)
    mt.check(len(check.out.splitlines()) <= 43 and "more: -n all" in check.out, check.out)
    err = mt.execute([mt.MEMTRACE, "dump", "--force", "--events", path]).err.splitlines()
    mt.check(len(err) == 21 and " more: see memtrace check" in err[-1], "%d lines: %s" % (len(err), err[-1:]))


# ---- programs and directories ---------------------------------------------------------------------------------------

PROGRAM = """
import ctypes, sys, threading
sys.path.insert(0, %(scripts)r)
import memtrace
NAME = bytes(%(name)r)
text = NAME.decode("utf-8", "surrogateescape")
kept = []
def work():
    ctypes.CDLL(None).prctl(15, ctypes.c_char_p(NAME[:15]), 0, 0, 0)
    for n in range(30):
        memtrace.step(n)
        kept.append([bytearray(1000 + i) for i in range(50)])
safe = NAME.decode("utf-8", "replace")
work.__code__ = work.__code__.replace(co_name=safe, co_filename=safe + ".py", **({"co_qualname": safe} if sys.version_info >= (3, 11) else {}))
memtrace.mark(text)
with memtrace.phase(text):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
"""


def names():
    return [hostile.name(trick, 3) for trick in hostile.TRICKS] + [hostile.name(hostile.ALL)]


@functools.lru_cache(None)
def run_program():
    """A copy of Python whose name, directory, script, argument, thread, function and marks are all hostile; (the directory it ran in, the run)"""
    name = hostile.name(hostile.ALL)[:120]
    cwd = os.path.join(os.fsencode(mt.scratch("program")), name)
    os.mkdir(cwd)
    script = os.path.join(cwd, name + b".py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(PROGRAM % {"scripts": os.path.join(mt.TOP, "scripts"), "name": list(name)})
    program = os.path.join(cwd, name)
    os.symlink(os.path.realpath(mt.python()), program)
    env = environment(LC_ALL="C.UTF-8", MEMTRACE_VERBOSE="1", PYTHONHOME=sys.base_prefix if mt.python() == sys.executable else None)
    return cwd, in_pipes([os.fsencode(mt.MEMTRACE), b"run", b"--verbose", b"--", program, script, name], env, cwd)


def case_program_with_such_names():
    cwd, (status, out, err) = run_program()
    mt.equal((status, out), (0, b""), "the program: %a" % err[-600:])
    mt.equal(harmless(err), None, "stderr of run")
    mt.check(b"memtrace: recording to " in err and b"the trace is in " in err, "%a" % err)
    path = os.path.join(cwd, next(n for n in os.listdir(cwd) if n.startswith(b"memtrace-")))
    other = golden("tree")
    wrong = all_commands(os.fsdecode(path), other, 0, cwd)
    mt.check(not wrong, "%d complaints: %s" % (len(wrong), " ;; ".join(wrong[:6])))
    report = json.loads(subprocess.run([mt.MEMTRACE, "report", "--json", path], stdout=subprocess.PIPE, check=True).stdout)
    mt.check(any("\x1b[2J" in word for word in report["command"]), "the name is not in the trace: %r" % report["command"])
    mt.check(not os.path.exists(os.path.join(cwd, b"pwned")), "a name was run")


HOLDERS = """
import sys
sys.path.insert(0, %(python)r)
import libmemtrace
NAME = bytes(%(name)r)
safe = NAME.decode("utf-8", "replace")
Held = type(safe, (), {})
globals()[safe] = held = Held()
setattr(held, safe, bytearray(3 << 20))
def frame():
    in_frame = bytearray(5 << 20)
    libmemtrace.holders(NAME.decode("utf-8", "surrogateescape"))
    return [in_frame for _ in range(100)]
frame.__code__ = frame.__code__.replace(co_name=safe, co_filename=safe + ".py", **({"co_qualname": safe} if sys.version_info >= (3, 11) else {}))
frame()
"""


def case_holders_of_such_names():
    """Of types, attributes, globals, functions, files and snapshots."""
    path = mt.scratch("holders")
    for number, name in enumerate(names()):
        out = os.path.join(path, str(number))
        text = HOLDERS % {"python": os.path.join(mt.TOP, "python"), "name": list(name)}
        env = environment(LC_ALL="C.UTF-8", MEMTRACE_HOLDERS="1")
        status, _, err = in_pipes([mt.MEMTRACE, "run", "--no-report", "-o", out, "--", mt.python(), "-c", text], env, None)
        mt.equal(status, 0, "the program: %a" % err[-600:])
        wrong = [c for more in ([], ["--json"], ["-n", "all"]) for snapshot in ([], ["--snapshot", "1"]) for terminal in (False, True)
                 if not (terminal and more == ["--json"]) for c in complaints(["holders", *more, *snapshot], out, terminal, fine=True)]
        mt.check(not wrong, "%d complaints: %s" % (len(wrong), " ;; ".join(wrong[:6])))
        done = json.loads(subprocess.run([mt.MEMTRACE, "holders", "--json", "--snapshot", "1", out], stdout=subprocess.PIPE, check=True).stdout)
        paths = [holder["path"] for memory in done["memory"] for holder in memory["holders"]]
        mt.check(any(p.startswith("__main__." + name.decode("utf-8", "replace")[:1]) for p in paths if p), "the name is not in %r" % paths)
        mt.check(done["snapshots"][0]["name"].startswith(name[:4].decode("utf-8", "replace")[:1]), "%r" % done["snapshots"])


def case_imports_of_such_names():
    """Of the file, and in it: of functions and sources. What is cut off, and what is there already, is an error that names it."""
    wrong = []
    for name in map(os.fsdecode, names()):
        path = imports.one_block(mt.scratch("import"), name, name.encode("utf-8", "replace").decode())
        for terminal in (False, True):
            wrong += complaints(["import"], path, terminal)  # the second time it is there already
        trace = path + ".memtrace"
        for words in (["report", "--all"], ["report", "--json"], ["peak"], ["frag"], ["diff"], ["reduce", "-o", "/dev/null"]):
            wrong += complaints(words, trace, words == ["peak"], other=trace if words == ["diff"] else None, fine=True)
        os.truncate(path, os.path.getsize(path) // 2)
        wrong += complaints(["import", "-o", trace + "2"], path, False)
    mt.check(not wrong, "%d complaints: %s" % (len(wrong), " ;; ".join(wrong[:6])))


def case_directories_with_such_names():
    """Traces that lie in them, and what is no trace."""
    wrong = []
    for name in names():
        folder = os.path.join(os.fsencode(mt.scratch("directory")), name)
        shutil.copytree(os.fsencode(golden("system")), folder)
        for words in (["report"], ["report", "--all"], ["peak"], ["frag"], ["check"], ["symbolize"], ["live", "--every", "1"], ["dump", "--json"]):
            for terminal in (False, True) if words[0] in ("report", "live", "symbolize") else (False,):
                wrong += complaints(words, os.fsdecode(folder), terminal)
        wrong += complaints(["diff"], os.fsdecode(folder), False, other=os.fsdecode(folder))
        for file in ("session", "27600-0.trace", "samples"):
            path = os.path.join(folder, os.fsencode(file))
            data = open(path, "rb").read()
            with open(path, "r+b") as damaged:
                damaged.truncate(len(data) // 3)
            for words in (["report"], ["check"], ["dump", "--force"]):
                wrong += complaints(words, os.fsdecode(folder), False)
            with open(path, "wb") as whole:
                whole.write(data)
        wrong += complaints(["report"], os.fsdecode(folder) + "-none", False)
    mt.check(not wrong, "%d complaints: %s" % (len(wrong), " ;; ".join(wrong[:6])))


def case_words_of_the_command_line():
    """What somebody typed, or a script handed on, stands in errors."""
    trace, wrong = golden("tree"), []
    for name in map(os.fsdecode, names()):
        for words in ([name], ["report", "--" + name], ["peak", "--at", name], ["peak", "--fit", name], ["peak", "--device", name],
                      ["leaks", "--filter", name + "("], ["leaks", "--process", name], ["leaks", "--fail-over", name],
                      ["leaks", "--suppressions", name], ["report", "--by", name], ["report", "--rules", name], ["live", "--alert", name],
                      ["run", "--limit", name], ["run", "--", name], ["run", "-o", "/proc/" + name, "--", "true"], ["help", name], ["record", name]):
            wrong += complaints(words, trace, False)
    mt.check(not wrong, "%d complaints: %s" % (len(wrong), " ;; ".join(wrong[:6])))


def case_verbose_lines_of_the_library():
    for name in names():
        output = os.path.join(os.fsencode(mt.scratch("verbose")), name)
        env = {os.fsencode(k): os.fsencode(v) for k, v in environment(MEMTRACE_VERBOSE="1", LD_PRELOAD=mt.SHIM).items()}
        env[b"MEMTRACE_OUTPUT"] = output
        _, _, err = in_pipes(["true"], env, None)
        mt.equal(harmless(err), None, "stderr")
        mt.check(err.startswith(b"memtrace: recording to ") and err.count(b"\n") == 1, "%a" % err)


# ---- shells ---------------------------------------------------------------------------------------------------------


def in_shell(shell, text, *arguments, cwd=None):
    done = subprocess.run([shell, "-c", text, shell, *arguments], stdin=subprocess.DEVNULL, capture_output=True, env=environment(), cwd=cwd)
    mt.equal((done.returncode, done.stderr), (0, b""), "%s -c %r" % (shell, text))
    return done.stdout


@mt.variants("sh", "bash")
def case_env_is_for_eval(shell):
    """Without quotes around $(...), among files that patterns could mean."""
    mt.need(shell)
    cwd = os.fsencode(mt.scratch("shell"))
    for name in [b"a*", b"export", b"it's", b"a  b", b" a ", b"$HOME`x`", b"\\0101", b"-n", b"~", *names()]:
        if name[:1] == b"a":
            for file in (b"MEMTRACE_OUTPUT='aa", b"ab"):
                open(os.path.join(cwd, file), "w").close()
        path = b"/tmp/" + name + b"."
        text = 'eval $("$1" env -o "$2"); printf %s "$MEMTRACE_OUTPUT"'
        mt.equal(in_shell(shell, text, mt.MEMTRACE, path, cwd=cwd), path, "MEMTRACE_OUTPUT")
        printed = subprocess.run([mt.MEMTRACE, "env", "-o", path], capture_output=True, env=environment(), cwd=cwd).stdout
        mt.equal(harmless(printed), None, "what env prints")
    mt.check(not os.path.exists(os.path.join(cwd, b"pwned")), "a name was run")


@mt.variants("sh", "bash")
def case_commands_to_be_copied_name_the_directory(shell):
    mt.need(shell)
    cwd = os.fsencode(mt.scratch("shell"))
    for name in [b"plain", b"it's", b"a  b", *names()]:
        folder = os.path.join(os.fsencode(mt.scratch("directory")), name)
        shutil.copytree(os.fsencode(golden("system")), folder)
        screen = subprocess.run([mt.MEMTRACE, "report", "--all", folder], capture_output=True, env=environment(LC_ALL="C.UTF-8")).stdout.decode()
        command = next(re.split(r" \| |   ", m[1])[0] for m in re.finditer(r"^more: (memtrace .*)", screen, re.M))
        said = in_shell(shell, "memtrace() { shift; printf '%s\\n' \"$@\"; }\n" + command, cwd=cwd)
        mt.equal(said.rstrip(b"\n"), folder.rstrip(b"\n"), "the last word of %a" % command)
    mt.equal(os.listdir(cwd), [], "files")


mt.main()
