#!/usr/bin/env python3
"""The corner cases of the malloc family give what they give without the shim, and are counted to the byte."""
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt


def counted(preload, *arguments):
    command = [mt.program("corners"), *arguments]
    want, got = mt.plain(command, preload=preload), mt.shimmed(command, preload=preload)
    mt.compare(want, got)
    mt.check("FAILED" not in want.out, "the program fails by itself: %s" % want)
    got.trace.intact()
    mt.match(got.trace.host, mt.tally(got.out))
    return got.trace


def case_glibc():
    counted([], "glibc")


def case_through_libc():
    trace = mt.same([mt.program("corners"), "libc"])
    mt.check(trace.host["allocations"] > counted([]).host["allocations"], "strdup and asprintf are not seen")


@mt.variants("libjemalloc.so.2", "libtcmalloc_minimal.so.4")
def case_behind(name):
    library = mt.library(name)
    command = [mt.program("corners")]
    want, got = mt.plain(command, preload=[library]), mt.shimmed(command, preload=[library])
    mt.compare(want, got)
    got.trace.intact()
    # The allocator may allocate for itself before main; what main does is on top of that, exactly.
    idle = mt.shimmed(["true"], preload=[library]).trace.intact().host
    mt.match(got.trace.host, mt.tally(got.out), idle)


@mt.variants("libjemalloc.so.2", "libmimalloc.so.2")
def case_arenas_hold_the_heap(name):
    """What an allocator maps for its blocks is no memory beside them: nobody has both."""
    trace = mt.shimmed([mt.program("heapload"), "spike", "1", "1"], preload=[mt.library(name)]).trace.intact()
    heap, mapped = trace.host, trace.report["map"]
    early = 8 << 20  # what jemalloc maps before anybody can tell whose it is
    mt.check(mapped["allocations"] and mapped["peak_bytes"] <= early < heap["peak_bytes"] / 2, "mapped beside the heap: %s" % mapped)


@mt.variants("libstdc++", "libjemalloc.so.2", "libtcmalloc_minimal.so.4", "own")
def case_operators(name):
    """Every form of new and delete is recorded once, whoever serves it, for the program's own line; exceptions and handlers work as ever."""
    if name == "own":
        preload = [mt.program("libnews.so")]
    else:
        preload = [] if name == "libstdc++" else [mt.library(name)]
    command = [mt.program("news_all")]
    if name != "own": # C throws nothing
        mt.same(command + ["fail"], preload=preload)
    done, idle = mt.shimmed(command, preload=preload), mt.shimmed(command + ["idle"], preload=preload).trace.intact().host
    mt.compare(mt.plain(command, preload=preload), done)
    host = done.trace.intact().host
    keys = ("allocations", "frees", "live_bytes", "missed_frees", "unknown_frees")
    mt.equal([host.get(key, 0) - idle.get(key, 0) for key in keys], [*map(int, done.out.split()), 0, 0], "what news_all does")
    kept = [site["stack"] for site in done.trace.sites() if site["bytes"] == 4000]
    inner = [frame["function"].split("(")[0] for frame in kept[0]]
    mt.equal([function for function in inner if not function.startswith("operator new")][0], "survivor", "who has what stays")


def case_no_operators():
    """A program without C++ finds no operator by name, and its weak references stay empty."""
    mt.same([mt.program("nonews")])


def case_operators_of_a_plugin():
    """A C program loads two C++ libraries, of which one has operators of its own: each gets its own."""
    done = mt.shimmed([mt.program("plugnews"), mt.program("libplugnews.so"), mt.program("libownnews.so")])
    mt.equal(done.out, "0\n20\n" * 3, "calls of their own operators")
    made = [site for site in done.trace.intact().sites("peak") if any(frame["function"].startswith("use") for frame in site["stack"])]
    mt.check(made, "no block of theirs")


def case_behind_by_bare_name():
    mt.library("libjemalloc.so.2")
    mt.same([mt.program("corners")], preload=["libjemalloc.so.2"])


def behind_us(first, command):
    """Its trace, when another library stands before the shim."""
    output = os.path.join(mt.scratch("trace"), "t")
    want = mt.execute(command, env=mt.clean_env(LD_PRELOAD=first, ASAN_OPTIONS="detect_leaks=0"))
    mt.compare(want, mt.execute(command, env=mt.clean_env(LD_PRELOAD=first + " " + mt.SHIM, MEMTRACE_OUTPUT=output,
                                                          ASAN_OPTIONS="detect_leaks=0")))
    trace = mt.Trace(output).settle()
    said, = trace.report["losses"]["unrecorded"]
    mt.equal((said["why"], trace.tool("check").status), (["behind"], 1), "what is said of an allocator that comes first")
    return trace


def case_allocator_before_us():
    """Its constructor maps memory before ours has run: the stacks show it and nothing of ours."""
    trace = behind_us(mt.library("libjemalloc.so.2"), [mt.program("busy"), "1000", "100", "10"])
    libraries = {frame["library"] for site in trace.sites() for frame in site["stack"]}
    mt.check(any("ld-linux" in name for name in libraries) and mt.SHIM not in libraries, "stacks lead through %s" % libraries)


@mt.variants("address", "thread")
def case_sanitizer_before_us(which):
    """It finds its own functions by a call of our dlsym, before any of them can be called."""
    if which == "thread":
        mt.need_root()
        with open("/proc/sys/vm/mmap_rnd_bits", encoding="ascii") as file:
            if int(file.read()) > 28:
                mt.skip("its shadow and the kernel's random addresses don't go together")
    runtime = mt.library({"address": "libasan.so.8", "thread": "libtsan.so.2"}[which])
    path = os.path.join(mt.scratch("sanitized"), which)
    done = mt.execute([mt.need("gcc"), "-O1", "-w", "-I" + mt.TOP, "-D_GNU_SOURCE", "-fsanitize=" + which, "-o", path,
                       os.path.join(mt.TOP, "tests/programs/busy.c"), "-rdynamic", "-ldl", "-lm", "-lpthread"])
    if done.status != 0:
        mt.skip("no compiler for it: %s" % done.err[-200:])
    behind_us(runtime, [path, "1000", "100", "10"])


def case_reentrant_allocator():
    """calloc and realloc of the next allocator call our malloc and free."""
    counted([mt.program("libreenter.so")])


def case_allocator_that_jumps():
    """Its aligned_alloc ends with a jump to the public memalign, which then seems to be called by us."""
    counted([mt.program("libnews.so")])


def case_environment():
    """What we add to the environment is in no heap of the program's, which changes it next."""
    trace = mt.same([mt.program("setsenv")])
    mt.check("from before" not in trace.tool("check").out, "a block that was never allocated was freed")


def case_valgrind():
    """A program without errors has none under valgrind either."""
    command = [mt.need("valgrind"), "-q", "--error-exitcode=9", mt.program("busy"), "100", "100", "10"]
    output = os.path.join(mt.scratch("trace"), "t")
    want = mt.plain(command)
    got = mt.execute(command, env=mt.shim_env(output))
    mt.check(want.status != 9, "it has errors without us: %s" % want)
    mt.equal((got.status, got.out, got.err), (want.status, want.out, ""))
    trace = mt.Trace(output).intact()
    mt.check(any(len(site["stack"]) > 1 for site in trace.sites("peak")), "no stacks")


def case_dlsym_that_allocates():
    counted([mt.program("libdlsymcalloc.so")])


def case_blocks_from_before():
    trace = mt.same([mt.program("early")], preload=[mt.program("libearly.so")])
    mt.equal(trace.host["live_blocks"], 0, "live blocks after everything was freed")


def case_failures_keep_their_size():
    """PTRDIFF_MAX bytes were asked for; the record has all 64 bits, and a stack."""
    trace = mt.same([mt.program("corners")])
    done = trace.tool("dump")
    mt.equal(done.status, 0)
    for size in (2 ** 63 - 1, 2 ** 63):
        mt.check(any(str(size) in line for line in done.out.splitlines() if "fail" in line.lower()),
                 "no failure of %d bytes in the dump" % size)


def case_cxx():
    trace = mt.same([mt.program("news")])
    mt.check(trace.host["failed"] >= 10, "failing operator new isn't there")


def case_allocator_of_the_program_itself():
    """It asks libc for memory under its own lock; a hook that allocates there would wait for ever."""
    mt.same([mt.program("ownmalloc")])


def case_as_main_finds_it():
    """errno is 0 and no error of the loader's waits; a variable without a name is none."""
    want = mt.plain([mt.program("first")], env={"": "x"})
    mt.equal(want.out, "errno 0, error none, nameless none\n")
    mt.compare(want, mt.shimmed([mt.program("first")], env={"": "x"}))


@mt.variants("_exit", "Exit")
def case_heard(how):
    """Functions of ours that another preloaded library has as well still reach it."""
    command, other = [mt.program("heard"), how], [mt.program("libhears.so")]
    mt.check("known here" in mt.plain(command, preload=other).out, "libhears.so isn't there")
    mt.same(command, preload=other)
    mt.same(command)


def case_before_relocation():
    """The loader calls a resolver in one library on behalf of another before it has relocated us; the resolver asks for the
    environment."""
    where = mt.scratch("resolver")

    def build(name, text, *options):
        source, cc = os.path.join(where, name + ".c"), os.environ.get("CC", "cc")
        with open(source, "w") as f:
            f.write(text)
        done = mt.execute([cc, "-o", os.path.join(where, name), source, "-L" + where, "-Wl,-rpath," + where, "-Wl,-z,now", *options])
        mt.check(done.status == 0, "cc: %s" % done)
        return os.path.join(where, name)

    build("libchooses.so", """
        #include <stdlib.h>
        static int one(void) { return 1; }
        static int two(void) { return 2; }
        static int (*choose(void))(void) { return getenv("MEMTRACE_TEST") ? one : two; }
        int chosen(void) __attribute__((ifunc("choose")));""", "-shared", "-fPIC")
    build("libuses.so", "int chosen(void); int used(void) { return chosen(); }", "-shared", "-fPIC", "-lchooses")
    program = build("program", "int used(void); int main(void) { return 40 + used(); }", "-luses")
    want = mt.plain([program])
    mt.equal(want.status, 42)
    mt.compare(want, mt.shimmed([program]))


mt.main()
