#!/usr/bin/env python3
"""Traces and modules that mean harm: what a command opens of what they name, and the most that it takes of time and memory. Each is made
here; the figures are the promise of docs/design/reader.md, "Reading a foreign trace"."""
# timeout: 300
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import bombs
import exchanged
import mt
import records

MIB = 1 << 20


class Outcome:
    """What a command printed, and took: itself and the processes that it waited for."""

    def __init__(self, words, folder, seconds, env):
        begin = time.monotonic()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = subprocess.Popen([mt.MEMTRACE, *words, folder], env=mt.clean_env(**env), stdin=subprocess.DEVNULL, stdout=out, stderr=err)
            timer = threading.Timer(5 * seconds, child.kill)  # of a busy machine; `seconds` are of processor time
            timer.start()
            _, status, usage = os.wait4(child.pid, 0)
            timer.cancel()
            child.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            err.seek(0)
            self.status, self.out, self.err = child.returncode, out.read().decode(), err.read().decode()
        self.seconds, self.mib = usage.ru_utime + usage.ru_stime, usage.ru_maxrss >> 10
        self.wall = time.monotonic() - begin

    def __str__(self):
        return "status %d, %.1f s, %d MiB: %s %s" % (self.status, self.seconds, self.mib, self.err[:600], self.out[:200])


def take(folder, *words, seconds=3, mib=400, status=0, env={}):
    done = Outcome(words, folder, seconds, env)
    mt.check(done.status == status and done.seconds < seconds and done.mib < mib, "memtrace %s: %s" % (" ".join(words), done))
    return done


def own_frames(done, library):
    """What was found out of the library's addresses."""
    sites = json.loads(done.out)["sites"]
    return {f["function"] for site in sites for f in site["stack"] if f["library"] == library}


PEAK = ("leaks", "--json", "--all-frames", "-n", "all")


def case_pipes_are_not_waited_for():
    """In place of a module, behind a debug link, as .dwo file or as what DWARF shares with others."""
    r = exchanged.Recorded()
    r.fifo("alt.debug")
    pipe = r.fifo("pipe.debug")
    for what, sections in (("debug link", bombs.debug_link("pipe.debug")), (".dwo file", bombs.skeleton(pipe)),
                           ("dwz file", bombs.alternative("alt.debug")), ("dwz file by path", bombs.alternative("/" + pipe))):
        r.replace(*sections)
        done = take(r.trace.path, *PEAK)
        mt.equal((own_frames(done, r.library), done.err), ({"named"}, ""), "with a pipe as %s" % what)
    os.unlink(r.library)
    r.fifo("libown.so")
    mt.equal(own_frames(take(r.trace.path, *PEAK), r.library), {None}, "of a pipe")


def case_a_sibling_that_is_a_child():
    r = exchanged.Recorded()
    r.replace(*bombs.sibling_loop(3000))
    done = take(r.trace.path, *PEAK)
    mt.equal((own_frames(done, r.library), done.err), ({"named"}, ""))


def given_up(r, why, **limits):
    """Figures are there, names are not, and it is said of which file."""
    done = take(r.trace.path, *PEAK, **limits)
    mt.equal(own_frames(done, r.library), {None}, "names of %s" % done)
    mt.equal(json.loads(done.out)["unread_files"], [{"path": r.library, "why": why}])
    mt.equal(done.err, "memtrace: note: %s: %s; without names\n" % (r.library, why))
    done = take(r.trace.path, "report", "--all", **limits)
    mt.check(why + ", so without names: " in done.out, "the report does not say it: %s" % done)
    mt.equal(done.err, "")
    return done


def case_sections_that_inflate():
    r = exchanged.Recorded()
    r.replace(*bombs.inflating(4000))
    mt.check(os.path.getsize(r.library) < 5 * MIB, "it has %d bytes" % os.path.getsize(r.library))
    given_up(r, "would take too much memory", mib=600)


def case_a_symbol_table_that_inflates():
    """.gnu_debugdata is an ELF file as .xz."""
    r = exchanged.Recorded()
    r.replace((b".gnu_debugdata", bombs.xz_zeros(3000)), symbol=b"")
    given_up(r, "would take too much memory", seconds=8, mib=600)


def case_a_walk_that_takes_long():
    """Within the memory that the file warrants, so that only time is left as a bound."""
    r = exchanged.Recorded()
    r.replace(*bombs.long_walk(190))
    done = take(r.trace.path, *PEAK, seconds=9, mib=500)
    mt.equal(json.loads(done.out)["unread_files"], [{"path": r.library, "why": "would take too long"}])


CUT = """
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>
/* Instead of libdw's own: what has been opened is cut off before it is read. */
void *dwfl_module_getdwarf(void *module, void *bias)
{
	void *(*next)(void *, void *);
	*(void **)&next = dlsym(RTLD_NEXT, "dwfl_module_getdwarf");
	if (truncate(getenv("CUT"), 4096))
		abort();
	return next(module, bias);
}
"""


def case_a_file_that_is_cut_while_it_is_read():
    r = exchanged.Recorded()
    cut = exchanged.build(os.path.join(r.home, "libcut.so"), CUT, "-shared", "-fPIC", "-D_GNU_SOURCE")
    r.replace((b".debug_info", bytes(MIB)), (b".debug_abbrev", bytes(MIB)))
    done = take(r.trace.path, *PEAK, env={"LD_PRELOAD": cut, "CUT": r.library})
    mt.equal(own_frames(done, r.library), {None})
    mt.equal(json.loads(done.out)["unread_files"], [{"path": r.library, "why": "changed while it was read"}])


def case_no_file_is_opened():
    """With --no-debug-files nothing outside the trace is, for names."""
    strace = shutil.which("strace")
    r = exchanged.Recorded()
    mt.check("from_library" in own_frames(take(r.trace.path, *PEAK), r.library), "the library is not read at all")
    for command in ("report", "peak", "leaks", "frag"):
        done = take(r.trace.path, command, "--json", "--no-debug-files")
        mt.check("from_library" not in done.out, "memtrace %s reads the library" % command)
        if strace:
            log = os.path.join(r.home, "log")
            mt.equal(mt.execute([strace, "-f", "-e", "trace=open,openat", "-o", log, mt.MEMTRACE, command, "--no-debug-files", r.trace.path])
                     .status, 0)
            with open(log) as file:
                mt.check(r.home + "/libown.so" not in file.read(), "memtrace %s opens the library" % command)
    done = take(r.trace.path, "diff", "--json", "--no-debug-files", r.trace.path)
    mt.check("from_library" not in done.out, "memtrace diff reads the library")
    mt.equal(mt.execute([mt.MEMTRACE, "symbolize", r.trace.path]).status, 0)
    done = take(r.trace.path, *PEAK, "--no-debug-files")
    mt.check("from_library" in own_frames(done, r.library), "what the trace itself has is not used")


# ---- traces -----------------------------------------------------------------------------------------------------


def made_up(name):
    recorded = mt.supervised([mt.program("busy"), "100000", "1000", "1"], "--no-report").trace
    return bombs.Trace(recorded.path, os.path.join(mt.scratch(name), "t"))


def refused(folder, file, **limits):
    """In one line that says which file, and how to read it all the same."""
    done = take(folder, "leaks", status=3, **limits)
    mt.check(len(done.err.splitlines()) == 1 and file in done.err and "MEMTRACE_READ_MEMORY=" in done.err, str(done))
    return done


def case_nodes_of_many_processes():
    """16 million of each."""
    trace = made_up("nodes")
    nodes = bombs.nodes_block(16_000_000, 0)
    for pid in range(1000, 1012):
        trace.add(pid, nodes)
    mt.check(12 * len(nodes) < 20_000, "they take %d bytes each" % len(nodes))
    refused(trace.folder, "-0.trace: offset ", mib=700, seconds=10)
    done = take(trace.folder, "leaks", "--force", mib=700, seconds=10)
    mt.check("INCOMPLETE" in done.out, "what is left out is not said: %s" % done)
    for pid in range(1002, 1012):
        os.unlink(os.path.join(trace.folder, "%d-0.trace" % pid))
    refused(trace.folder, "-0.trace: offset ", mib=700, seconds=10)
    take(trace.folder, "leaks", mib=1100, seconds=10, env={"MEMTRACE_READ_MEMORY": "1.5G"})


def case_logs_that_inflate():
    trace = made_up("log")
    for pid in range(1000, 1008):
        trace.add(pid, zeros=400 << 20)
    refused(trace.folder, "-0.trace: offset ", mib=300)


def case_symbols_that_inflate():
    trace = made_up("symbols")
    trace.add(1000)
    size = 1 << 30
    count = records.varint(size - 6)
    with open(os.path.join(trace.folder, "symbols"), "wb") as file:
        file.write(records.symbols_file(*bombs.zstd((count,), (b"\0", size - len(count)))))
    mt.check(os.path.getsize(file.name) < 40_000, "it has %d bytes" % os.path.getsize(file.name))
    done = take(trace.folder, "leaks", mib=300)
    mt.check("/symbols: " in done.err and "read without it" in done.err, str(done))
    done = take(trace.folder, "check", mib=300, status=1)
    mt.check("/symbols: " in done.out, str(done))


def case_events_of_what_is_never_freed():
    """A million blocks of memory in a few hundred bytes, all of which are alive: no more than the machine has, or than was allowed."""
    trace = made_up("events")
    blocks = [bombs.allocations_block(1 << 20, trace.ticks, i) for i in range(1, 25)]
    trace.add(1000, *blocks)
    done = take(trace.folder, "leaks", status=3, mib=500, seconds=30, env={"MEMTRACE_READ_MEMORY": "400M"})
    mt.check("not enough memory" in done.err and "MEMTRACE_READ_MEMORY" in done.err, str(done))


def case_a_setting_that_is_no_size():
    trace = made_up("setting")
    trace.add(1000)
    done = take(trace.folder, "leaks", status=2, env={"MEMTRACE_READ_MEMORY": "much"})
    mt.check("MEMTRACE_READ_MEMORY" in done.err and "'much'" in done.err, str(done))


def case_real_traces_are_far_below():
    """A loop's trace is a few hundred bytes of millions of events: what counts is what is held, not what passes."""
    trace = mt.supervised([mt.program("busy"), "600000", "1000", "1"], "--no-report").trace
    mt.check(trace.host["allocations"] > 500_000, trace.host)
    take(trace.path, "leaks", mib=200, env={"MEMTRACE_READ_MEMORY": "120M"})


mt.main()
