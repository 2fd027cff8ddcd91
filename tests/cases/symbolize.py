#!/usr/bin/env python3
"""memtrace symbolize: a trace reads the same where its programs are gone. Damage to DIR/symbols costs names, never figures."""
import http.server
import json
import os
import shutil
import stat
import sys
import threading
import time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

LIBRARY = """
#include <stdlib.h>
static inline __attribute__((always_inline)) void *inlined(size_t n) { void *volatile p = malloc(n); return p; }
__attribute__((noinline)) void *from_library(size_t n) { void *volatile p = inlined(n); return p; }
"""
PROGRAM = """
#include <stdlib.h>
#include <unistd.h>
#include <sys/wait.h>
void *from_library(size_t);
__attribute__((noinline)) static void keep(int n) { for (int i = 0; i < n; i++) { void *volatile p = from_library(1000); (void)p; } }
int main(void) { keep(10); if (!fork()) { keep(5); _exit(0); } wait(0); return 0; }
"""
READS = (["report"], ["peak", "-n", "1000"], ["leaks", "-n", "1000"], ["peak", "--all-frames", "--by", "library"])


def build(folder, name, source, *flags):
    path = os.path.join(folder, name)
    with open(path + ".c", "w") as file:
        file.write(source)
    done = mt.execute(["cc", "-O1", "-g", "-Wl,--build-id", path + ".c", "-o", path, *flags])
    mt.equal(done.status, 0, "status of cc: %s" % done.err)
    return path


class Recorded:
    """A program with a library of its own, recorded where it was built; forget() removes both."""

    def __init__(self):
        self.home = mt.scratch("home")
        self.library = build(self.home, "libown.so", LIBRARY, "-shared", "-fPIC")
        self.program = build(self.home, "own", PROGRAM, self.library)
        self.trace = mt.Trace(os.path.join(mt.scratch(), "t"))

    def shimmed(self):
        mt.shimmed([self.program], output=self.trace.path)
        self.trace.settle()
        return self

    def forget(self):
        shutil.rmtree(self.home)

    @property
    def symbols(self):
        return os.path.join(self.trace.path, "symbols")


def without_times(value):
    """Nanoseconds differ in the last digit, since clocks are compared anew in each reading."""
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items()}
    if isinstance(value, list):
        return [without_times(v) for v in value]
    return None if isinstance(value, float) else value


def readings(trace):
    return [without_times(trace.json(*words)) for words in READS]


def functions(trace):
    return {f["function"] for site in trace.sites("peak") for f in site["stack"]}


def symbolize(trace, **env):
    done = mt.execute([mt.MEMTRACE, "symbolize", trace.path], env=mt.clean_env(**env))
    mt.equal((done.status, done.err, len(done.out.splitlines())), (0, "", 1), "of symbolize: %s" % done)


def case_reads_the_same_without_the_programs():
    r = Recorded().shimmed()
    before = readings(r.trace)
    mt.check({"inlined", "from_library", "keep", "main"} <= functions(r.trace), functions(r.trace))
    symbolize(r.trace)
    mt.equal(stat.S_IMODE(os.stat(r.symbols).st_mode), 0o600, "mode of symbols")
    mt.equal(readings(r.trace), before, "with symbols and files")
    r.forget()
    mt.equal(readings(r.trace), before, "without the files")
    r.trace.intact()
    elsewhere = mt.Trace(os.path.join(mt.scratch(), "copy"))
    shutil.copytree(r.trace.path, elsewhere.path)
    shutil.rmtree(r.trace.path)
    mt.equal(readings(elsewhere), before, "of a copy")


def case_run_does_it_by_itself():
    r = Recorded()
    done = mt.execute([mt.MEMTRACE, "run", "--no-report", "-o", r.trace.path, "--", r.program], env=mt.clean_env())
    mt.equal((done.status, done.out, done.err), (0, "", "memtrace: the trace is in %s\n" % r.trace.path))
    before = readings(r.trace)
    r.forget()
    mt.equal(readings(r.trace), before)


def case_another_build_in_its_place():
    r = Recorded().shimmed()
    symbolize(r.trace)
    before = readings(r.trace)
    shutil.copy(mt.program("busy"), r.library)
    mt.equal(readings(r.trace), before)


def case_again_keeps_what_is_gone():
    r = Recorded().shimmed()
    symbolize(r.trace)
    before = readings(r.trace)
    r.forget()
    symbolize(r.trace)
    mt.equal(readings(r.trace), before)


def damaged(data):
    yield "empty", b"", 0
    yield "cut in the header", data[:20], 20
    yield "cut", data[:-1], len(data) - 1
    yield "foreign", b"#!/bin/sh\n" + data, 0
    yield "longer", data + b"x", len(data) + 1
    yield "of another version", data[:8] + b"\x09" + data[9:], 8
    for at in (12, 33, len(data) // 2, len(data) - 1):
        yield "flipped at %d" % at, data[:at] + bytes([data[at] ^ 4]) + data[at + 1:], None


def case_damage_costs_names_only():
    r = Recorded().shimmed()
    before = readings(r.trace)
    symbolize(r.trace)
    with open(r.symbols, "rb") as file:
        data = file.read()
    for what, bad, offset in damaged(data):
        with open(r.symbols, "wb") as file:
            file.write(bad)
        done = r.trace.tool("check")
        mt.equal((done.status, done.err), (1, ""), "check of symbols that are %s: %s" % (what, done))
        line = done.out.splitlines()[0]
        mt.check(line.startswith(r.symbols + ": offset "), "%s: %r" % (what, line))
        mt.check(offset is None or line.startswith("%s: offset %d:" % (r.symbols, offset)), "%s: %r" % (what, line))
        done = r.trace.tool("peak", "-n", "1000", "--json")
        mt.equal((done.status, len(done.err.splitlines())), (0, 1), "peak: %s" % done)
        mt.check(r.symbols in done.err, done.err)
        mt.equal(without_times(json.loads(done.out)), before[1], "peak with symbols that are %s" % what)
    mt.equal(mt.execute([mt.MEMTRACE, "symbolize", r.trace.path]).status, 0)
    with open(r.symbols, "rb") as file:
        mt.check(file.read() == data, "made anew it differs")


def case_unwritable():
    if os.geteuid() == 0:
        mt.skip("root writes everywhere")
    r = Recorded().shimmed()
    os.chmod(r.trace.path, 0o500)
    done = r.trace.tool("symbolize")
    os.chmod(r.trace.path, 0o700)
    mt.equal((done.status, len(done.err.splitlines())), (3, 1), done)


def build_id(path):
    listing = mt.execute(["readelf", "-nW", path]).out
    return listing.split("Build ID: ")[1].split()[0]


def strip_to(program, debug):
    os.makedirs(os.path.dirname(debug), exist_ok=True)
    for command in (["objcopy", "--only-keep-debug", program, debug], ["strip", program]):
        mt.equal(mt.execute(command).status, 0, command)


def case_debug_file_by_build_id():
    mt.need("objcopy")
    r = Recorded()
    known = build_id(r.library)
    debug = "/usr/lib/debug/.build-id/%s/%s.debug" % (known[:2], known[2:])
    try:
        strip_to(r.library, debug)
    except PermissionError:
        mt.skip("needs root to write to /usr/lib/debug")
    try:
        r.shimmed()
        symbolize(r.trace)
    finally:
        os.unlink(debug)
        if not os.listdir(os.path.dirname(debug)):
            os.rmdir(os.path.dirname(debug))
    r.forget()
    mt.check("inlined" in functions(r.trace), functions(r.trace))


def case_debug_file_by_link():
    mt.need("objcopy")
    r = Recorded()
    strip_to(r.library, r.library + ".debug")
    mt.equal(mt.execute(["objcopy", "--add-gnu-debuglink=" + r.library + ".debug", r.library]).status, 0)
    r.shimmed()
    symbolize(r.trace)
    r.forget()
    mt.check("inlined" in functions(r.trace), functions(r.trace))


class Server(http.server.ThreadingHTTPServer):
    """Serves a folder and keeps what it was asked for."""

    def __init__(self, folder):
        self.asked = []

        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *words):
                super().__init__(*words, directory=folder)

            def log_request(self, code="-", size="-"):
                self.server.asked.append((self.path, int(code)))

            def log_message(self, *words):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.server_port


def case_debug_information_of_a_server():
    """Only symbolize asks, and only when it is told whom."""
    mt.library("libdebuginfod.so.1")
    mt.need("objcopy")
    r = Recorded()
    folder, known = mt.scratch("served"), build_id(r.library)
    strip_to(r.library, os.path.join(folder, "buildid", known, "debuginfo"))
    r.shimmed()
    server = Server(folder)
    env = {"DEBUGINFOD_URLS": server.url, "DEBUGINFOD_CACHE_PATH": mt.scratch("cache"), "no_proxy": "127.0.0.1"}
    for command in ("peak", "report", "leaks"):
        done = mt.execute([mt.MEMTRACE, command, "--json", r.trace.path], env=mt.clean_env(**env))
        mt.check(done.status == 0 and '"inlined"' not in done.out.replace('"inlined":', ""), done)
    mt.equal(server.asked, [], "what other commands asked for")
    symbolize(r.trace)
    mt.check("inlined" not in functions(r.trace), "symbolize asked though no server is named")
    symbolize(r.trace, **env)
    mt.check(("/buildid/%s/debuginfo" % known, 200) in server.asked, "asked for %s" % server.asked)
    mt.check("inlined" in functions(r.trace), "the server's answer isn't used: %s" % functions(r.trace))
    server.shutdown()
    r.forget()
    mt.check("inlined" in functions(r.trace), "the server's answer is not kept")


def case_server_is_gone():
    """Nothing but names is missing, and nobody waits for long."""
    mt.library("libdebuginfod.so.1")
    r = Recorded()
    r.shimmed()
    begin = time.monotonic()
    symbolize(r.trace, DEBUGINFOD_URLS="http://127.0.0.1:1", DEBUGINFOD_CACHE_PATH=mt.scratch("cache"), no_proxy="127.0.0.1")
    mt.check(time.monotonic() - begin < 45, "it took %.0f s" % (time.monotonic() - begin))
    mt.check("keep" in functions(r.trace), functions(r.trace))


def case_decoded_by_another_reader():
    """scripts/decode.py prints what `memtrace dump --symbols` does."""
    r = Recorded().shimmed()
    symbolize(r.trace)
    ours = r.trace.tool("dump", "--symbols")
    theirs = mt.execute([sys.executable, os.path.join(mt.TOP, "scripts/decode.py"), "--symbols", r.trace.path])
    mt.equal((ours.status, theirs.status), (0, 0), "%s %s" % (ours, theirs))
    mt.equal(theirs.out.splitlines(), ours.out.splitlines(), "what decode.py prints")
    mt.check(' "keep" ' in ours.out and len(ours.out.splitlines()) > 5, ours.out[:600])


PARTED = """
#include <stdlib.h>
void *kept[9];
__attribute__((noinline, cold)) void note(int n) { __asm__ volatile("" : : "r"(n)); }
int parted(int n, int (*f)(int)) { int sum = 0; for (int i = 0; i < n; i++) { sum += f(i);
	if (sum > 30) { note(i); kept[i % 9] = malloc(1000); note(sum); } } return sum; }
"""
CALLS = "int parted(int, int (*)(int)); static int same(int i) { return i; } int main(void) { return parted(10, same) == 0; }"


def case_stripped_part_of_a_function():
    """The part that the compiler put elsewhere has lost its symbol; the function that jumps there has not."""
    home = mt.scratch("parted")
    library = build(home, "libparted.so", PARTED, "-O2", "-shared", "-fPIC")
    if "parted.cold" not in mt.execute([mt.need("nm"), library]).out:
        mt.skip("the compiler makes no parts")
    program = build(home, "calls", CALLS, library)
    mt.equal(mt.execute([mt.need("strip"), library]).status, 0, "status of strip")
    trace = mt.shimmed([program]).trace.settle()
    mt.check(mt.blocks_of(trace.sites("peak"), "parted", "libparted.so")[1] >= 1, "sites: %s" % trace.sites("peak"))


CONSTRUCTS = """
#include <dlfcn.h>
#include <stdlib.h>
void *kept;
__attribute__((constructor)) static void start(void) { kept = malloc(7777); }
"""
OPENS = """
#include <dlfcn.h>
#include <stdlib.h>
void *own;
__attribute__((constructor)) static void start(void) { own = malloc(5555); }
int main(int n, char **a) { return n < 2 || dlopen(a[1], RTLD_NOW) ? 0 : 1; }
"""


def case_loader_without_symbols():
    """_dl_init and _dl_open of ld.so are known without its debug files; a constructor of the program itself is none of a library."""
    home = mt.scratch("loader")
    first, second = (build(home, "lib%s.so" % n, CONSTRUCTS, "-shared", "-fPIC") for n in ("first", "second"))
    program = build(home, "opens", OPENS, "-Wl,--no-as-needed", first)
    trace = mt.shimmed([program, second]).trace.settle()
    for debug in ({}, {"MEMTRACE_DEBUG_PATH": ":.debug"}):
        done = mt.execute([mt.MEMTRACE, "leaks", "--json", "--by", "stack", "--all-frames", "-n", "1000", trace.path], env=mt.clean_env(**debug))
        sites = json.loads(done.out)["sites"]
        got = sorted((s["bytes"], s["benign"], "_dl_open" in [f["function"] for f in s["stack"]]) for s in sites if s["bytes"] in (7777, 5555))
        mt.equal(got, [(5555, None, False), (7777, "libraries' constructors", False), (7777, "libraries' constructors", True)],
                 "with %s" % debug)


def case_a_program_is_shown_as_it_was_called():
    """By a link, as redis-server is one to redis-check-rdb; one more name of the same file, and it is the file's again. A version is no name."""
    folder = mt.scratch("called")
    source = "#include <stdlib.h>\nint main(int n, char **v) { return v[n - 1] && !(v[0] = malloc(5000)); }\n"
    path = build(folder, "tool-check", source, "-s")
    for link in ("tool-server", "other", "tool"):
        os.symlink(path, os.path.join(folder, link))

    def shown(*links):
        trace = mt.shimmed(["sh", "-c", "; ".join(os.path.join(folder, link) for link in links) + "; true"]).trace.settle()
        return {os.path.basename(frame["library"]) for site in trace.sites() if site["bytes"] % 5000 == 0 for frame in site["stack"]
                if frame["library"].startswith(folder)}
    for links, name in ((("tool-server",), "tool-server"), (("tool",), "tool-check"), (("tool-check",), "tool-check"),
                        (("tool-server", "other"), "tool-check")):
        mt.equal(shown(*links), {name}, "called %s:" % (links,))


mt.main()
