#!/usr/bin/env python3
"""MEMTRACE_SYMBOL_CACHE: with it everything reads as without, whatever lies in the folder, also when files come, go and change; what is known is
not looked up again; many processes may share it."""
import functools
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import exchanged
import mt

WORDS = ("peak", "--json", "--all-frames", "-n", "all")


ASAN = next(path for path in (os.path.join(mt.BUILD, "asan/memtrace"), mt.MEMTRACE) if os.path.exists(path))


def said(trace, cache, *words, tool=mt.MEMTRACE):
    """What stdout has, but times, whose clocks are calibrated as they are read."""
    done = mt.execute([tool, *(words or WORDS), trace], env=mt.clean_env(MEMTRACE_SYMBOL_CACHE=cache))
    mt.equal((done.status, done.err), (0, ""))
    return [line for line in done.out.splitlines() if '_s":' not in line]


@functools.lru_cache(None)
def recorded():
    """A program with a library, its trace, what is said of it without a cache, and with one that has just been filled."""
    r = exchanged.Recorded()
    r.plain, r.cache = said(r.trace.path, ""), os.path.join(mt.scratch("cache"), "symbols")
    mt.check(any("from_library" in line for line in r.plain), "no names: %s" % r.plain)
    mt.equal(said(r.trace.path, r.cache), r.plain, "with an empty cache")
    return r


def file_of(cache, build_id=exchanged.ID):
    return os.path.join(cache, next(name for name in os.listdir(cache) if name.startswith(build_id.hex() + "-")))


def sizes_of(cache):
    return {name: os.path.getsize(os.path.join(cache, name)) for name in os.listdir(cache)}


def filled():
    """A cache of one's own."""
    cache = os.path.join(mt.scratch("copy"), "symbols")
    shutil.copytree(recorded().cache, cache)
    return cache


def case_nothing_is_looked_up_again():
    r, before = recorded(), sorted(os.listdir(recorded().cache))
    mt.need("strace")
    for cache, opened in (("", True), (r.cache, False)):
        log = os.path.join(mt.scratch("log"), "log")
        done = mt.execute(["strace", "-f", "-e", "trace=open,openat", "-o", log, mt.MEMTRACE, *WORDS, r.trace.path], env=mt.clean_env(MEMTRACE_SYMBOL_CACHE=cache))
        mt.equal(done.status, 0)
        with open(log, encoding="utf-8") as file:
            mt.equal(r.library + '"' in file.read(), opened, "the library is opened, with the cache '%s'" % cache)
    mt.equal(said(r.trace.path, r.cache), r.plain)
    mt.equal(sorted(os.listdir(r.cache)), before, "files of the cache")


def case_what_is_missing_is_added():
    """By another trace of the program, which has more stacks."""
    cache = os.path.join(mt.scratch("cache"), "symbols")
    traces = [mt.shimmed([mt.program("rank"), "256", *more]).trace.settle().path for more in ([], ["extra=512", "leak=16"])]
    plain = [said(trace, "") for trace in traces]
    mt.check([any("gather_checkpoint" in line for line in lines) for lines in plain] == [False, True], "the traces have the same stacks")
    mt.equal(said(traces[0], cache), plain[0])
    sizes = [sizes_of(cache)]
    for number in (1, 0, 1):
        mt.equal(said(traces[number], cache), plain[number], "of trace %d" % number)
        sizes.append(sizes_of(cache))
    mt.equal(len([name for name in sizes[0] if sizes[1][name] > sizes[0][name]]), 1, "%s became %s" % tuple(sizes[:2]))
    mt.equal(sizes[2:], [sizes[1]] * 2, "bytes, when all is known")


def case_debug_files_that_come_and_go():
    """Names and lines are those of the files that are there now."""
    r = exchanged.Recorded()
    cache, debug = os.path.join(mt.scratch("cache"), "symbols"), os.path.join(r.home, ".debug", "libown.so.debug")
    os.mkdir(os.path.dirname(debug))
    with_lines = said(r.trace.path, "")
    for words in (["--only-keep-debug", r.library, debug], ["--strip-debug", r.library], ["--add-gnu-debuglink=" + debug, r.library]):
        subprocess.run(["objcopy", *words], check=True)
    mt.equal(said(r.trace.path, ""), with_lines, "from the debug file")
    os.rename(debug, debug + ".away")
    without = said(r.trace.path, "")
    mt.check(without != with_lines, "the debug file says nothing")
    for there in (False, True, False, True):
        if there != os.path.exists(debug):
            os.rename(*((debug + ".away", debug) if there else (debug, debug + ".away")))
        for _ in range(2):
            mt.equal(said(r.trace.path, cache), with_lines if there else without, "with the debug file: %s" % there)
    mt.equal(said(r.trace.path, cache, *WORDS, "--no-debug-files"), said(r.trace.path, "", *WORDS, "--no-debug-files"), "where no files may be opened")


def case_another_file_in_its_place():
    """One of another build, and none: the names that the cache has are not of these."""
    r = exchanged.Recorded()
    cache = os.path.join(mt.scratch("cache"), "symbols")
    named = said(r.trace.path, cache)
    os.rename(r.library, r.library + ".away")
    gone = said(r.trace.path, "")
    mt.check(gone != named and said(r.trace.path, cache) == gone, "where it is gone")
    shutil.copy(mt.program("busy"), r.library)
    mt.equal(said(r.trace.path, cache), said(r.trace.path, ""), "where another is there")
    os.rename(r.library + ".away", r.library)
    mt.equal(said(r.trace.path, cache), named, "when it is there again")


def damaged(data):
    yield from (data[:n] for n in (0, 7, 23, len(data) // 2, len(data) - 1))
    yield data + b"x"
    for at in (0, 9, 13, 17, 21, 30, len(data) - 2):
        yield data[:at] + bytes([data[at] ^ 0x41]) + data[at + 1:]
    yield b"\xff" * 200


def case_damaged_files():
    """They are as none, and are replaced."""
    r, cache = recorded(), filled()
    path = file_of(cache)
    with open(path, "rb") as file:
        data = file.read()
    for number, bad in enumerate(damaged(data)):
        with open(path, "wb") as file:
            file.write(bad)
        mt.equal(said(r.trace.path, cache, tool=ASAN), r.plain, "with damage %d" % number)
        with open(path, "rb") as file:
            mt.equal(file.read(), data, "after damage %d" % number)
    for make in (os.mkdir, os.mkfifo):
        os.remove(path)
        make(path)
        mt.equal(said(r.trace.path, cache), r.plain, "with %s" % make)
        (os.rmdir if os.path.isdir(path) else os.remove)(path) if not os.path.isfile(path) else None
        mt.equal(said(r.trace.path, cache), r.plain)


@mt.variants("/proc/none/symbols", "/dev/null", "relative/none")
def case_a_folder_that_cannot_be_used(cache):
    mt.equal(said(recorded().trace.path, cache), recorded().plain)


def case_many_at_once():
    r, cache = recorded(), os.path.join(mt.scratch("cache"), "symbols")
    children = [subprocess.Popen([mt.MEMTRACE, *WORDS, r.trace.path], env=mt.clean_env(MEMTRACE_SYMBOL_CACHE=cache), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                for _ in range(8)]
    mt.equal([(child.communicate()[1], child.returncode) for child in children], [(b"", 0)] * 8)
    mt.equal(sorted(os.listdir(cache)), sorted(os.listdir(r.cache)), "files of the cache")
    mt.equal(said(r.trace.path, cache), r.plain)


mt.main()
