#!/usr/bin/env python3
"""MEMTRACE_INDEX: every command prints the same with an index as without, whoever made it. An index that is stale, cut, damaged, somebody else's or
another build's is as none; nothing is kept of what may still grow, of a short analysis unless a folder is named, nor more than there is room for."""
import functools
import os
import random
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts"))
import decode
import exchanged
import golden_traces
import mt

COMMANDS = ["report", "report --all", "report --json", "report --format markdown", "report --format sarif", "report --by function", "leaks", "leaks --json",
            "leaks --by category", "leaks -n all", "peak", "peak --json", "peak --by stack -n 40", "peak --by thread", "peak --at end", "peak --by holder", "timeline",
            "timeline --json", "timeline --csv", "timeline --by step", "timeline --by phase", "frag", "frag --json", "html -o /dev/stdout", "holders", "check",
            "export --format speedscope -o /dev/stdout", "export --format perfetto -o /dev/stdout", "peak --fit 100M", "report --process 1", "leaks --no-native"]


def ask(words, trace, index="0", tool=mt.MEMTRACE, cwd=None, **env):
    done = mt.execute([tool, *words.split(), trace], env=mt.clean_env(MEMTRACE_INDEX=index, **env), cwd=cwd)
    return done.status, done.out, done.err


def unpacked(name):
    return golden_traces.unpack(name, mt.scratch(name))


@functools.lru_cache(None)
def plain(path):
    return {words: ask(words, path) for words in COMMANDS}


def folder():
    return os.path.join(mt.scratch("index"), "made")


def indices(index):
    return sorted(name for name in (os.listdir(index) if os.path.isdir(index) else []))


@mt.variants(*golden_traces.NAMES)
def case_commands_print_the_same(name):
    path = unpacked(name)
    for maker in ("report", "leaks", "html -o /dev/stdout"):
        index = folder()
        mt.equal(ask(maker, path, index), ask(maker, path), "%s that makes it" % maker)
        mt.equal(len(indices(index)), 1, "indices by %s" % maker)
        for words in COMMANDS:
            mt.equal(ask(words, path, index), plain(path)[words], "%s, with the index of %s" % (words, maker))


class Made:
    """A trace with an index, then changed under it: its size and times are as they were, but it can't be read any more."""

    def __init__(self):
        self.path, self.index = unpacked("tree"), folder()
        with open(os.path.join(self.path, "more"), "w", encoding="utf-8") as file:
            file.write("somebody's")
        self.plain = ask("report --json", self.path, self.index)
        mt.equal(self.plain[0], 0, self.plain[2])
        self.file = os.path.join(self.index, indices(self.index)[0])
        for name in os.listdir(self.path):
            if name.endswith(".trace"):
                self.damage(os.path.join(self.path, name))

    @staticmethod
    def damage(path):
        """Where its events are: all else is read before anybody looks for an index."""
        at = os.stat(path)
        with open(path, "r+b") as file:
            for block in decode.trace_blocks(path):
                if block.type == decode.BLOCK_EVENTS:
                    file.seek(block.offset + block.total_bytes - 5)
                    file.write(b"damaged"[:5])
        os.utime(path, ns=(at.st_atime_ns, at.st_mtime_ns))

    def is_used(self, **more):
        """Without the index there is an error, also where it had been begun with."""
        said = ask("report --json", self.path, more.pop("index", self.index), **more)
        if said == self.plain:
            return True
        mt.check(said[0] not in (0, 1) and "damaged" in said[2] or "checksum" in said[2], "it says %r" % (said,))
        return False


def case_it_is_read_in_place_of_the_trace():
    made = Made()
    mt.check(made.is_used(), "the index is not used")
    for words in ("peak", "leaks", "timeline"):
        mt.equal(ask(words, made.path, made.index)[0], 0, "%s reads the trace" % words)
    mt.check(not made.is_used(index="0"), "it is used where it must not be")


def case_a_stale_one_is_noticed():
    for change in ("touch", "add", "remove", "setting", "name"):
        made, more = Made(), {}
        first = next(os.path.join(made.path, name) for name in sorted(os.listdir(made.path)) if name.endswith(".trace"))
        if change == "touch":
            os.utime(first)
        elif change == "add":
            with open(os.path.join(made.path, "symbols"), "w", encoding="utf-8"):
                pass
        elif change == "remove":
            os.unlink(os.path.join(made.path, "more"))
        elif change == "setting":
            more = {"MEMTRACE_DEBUG_PATH": "/nowhere"}
        else:
            made.path = os.path.join(os.path.dirname(made.path), ".", os.path.basename(made.path))
        mt.check(not made.is_used(**more), "an index from before: %s" % change)


def case_of_another_build_is_none():
    made = Made()
    version = mt.execute([mt.MEMTRACE, "--version"]).out
    build_id = bytes.fromhex(re.search(r"build id +([0-9a-f]{40})", version).group(1))
    other = os.path.join(mt.scratch("build"), "memtrace")
    with open(mt.MEMTRACE, "rb") as file:
        program = file.read()
    mt.equal(program.count(build_id), 1, "build ids in the program")
    with open(other, "wb") as file:
        file.write(program.replace(build_id, bytes(reversed(build_id))))
    os.chmod(other, 0o755)
    mt.check(not made.is_used(tool=other), "another build uses it")
    mt.check(made.is_used(), "the same build does not use it")


def case_names_from_other_files_are_stale():
    """A library that was exchanged meanwhile."""
    r, index = exchanged.Recorded(), folder()
    before = ask("leaks --json", r.trace.path, index)
    mt.check("from_library" in before[1] and indices(index), "no names, or no index: %r" % (before,))
    mt.equal(ask("leaks --json", r.trace.path, index), before)
    os.rename(r.library, r.library + ".away")
    after = ask("leaks --json", r.trace.path, index)
    mt.equal(after, ask("leaks --json", r.trace.path))
    mt.check("from_library" not in after[1], "names of a library that is gone")


def case_a_damaged_one_is_none():
    path, index = unpacked("tree"), folder()
    want = ask("report --json", path, index)
    file = os.path.join(index, indices(index)[0])
    with open(file, "rb") as kept:
        whole = kept.read()
    offsets = list(range(0, 64, 3)) + random.Random(5).sample(range(len(whole)), 60)
    damaged = [whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1:] for at in offsets] + [whole[:len(whole) * k // 12] for k in range(12)] + [whole + b"x"]
    for number, content in enumerate(damaged):
        with open(file, "wb") as kept:
            kept.write(content)
        mt.equal(ask("report --json", path, index), want, "damage %d" % number)


def case_somebody_elses_is_none():
    def changes(made):
        yield "others may write to it", lambda: os.chmod(made.file, 0o666)
        yield "others may write to its folder", lambda: os.chmod(made.index, 0o777)
        yield "a link", lambda: (os.rename(made.file, made.index + ".other"), os.symlink(made.index + ".other", made.file))
        if os.geteuid() == 0:
            yield "another user's", lambda: os.chown(made.file, 12345, 12345)
            yield "another user's folder", lambda: os.chown(made.index, 12345, 12345)

    for number in range(len(list(changes(Made())))):
        made = Made()
        what, change = list(changes(made))[number]
        change()
        mt.check(not made.is_used(), "%s, and it is used" % what)


def case_two_commands_at_once():
    path, index = unpacked("gpu"), folder()
    want = ask("report", path)
    env = mt.clean_env(MEMTRACE_INDEX=index)
    running = [subprocess.Popen([mt.MEMTRACE, "report", path], env=env, stdout=subprocess.PIPE, text=True) for _ in range(8)]
    for process in running:
        mt.equal((process.communicate()[0], process.returncode), (want[1], 0))
    mt.equal(len(indices(index)), 1, "what is left: %s" % indices(index))
    mt.equal(ask("report", path, index), want)


def case_what_is_not_kept():
    path, home = unpacked("tree"), mt.scratch("home")
    for words, setting in (("report", ""), ("report", "0"), ("report --process 1", folder()), ("leaks --from 0.01", folder()), ("report --force", folder())):
        done = mt.execute([mt.MEMTRACE, *words.split(), path], env=mt.clean_env(MEMTRACE_INDEX=setting, HOME=home, XDG_CACHE_HOME=""))
        mt.check(done.status in (0, 1, 2), done.err)
        kept = [os.path.join(at, name) for at, _, names in os.walk(home) for name in names] + indices(setting or "0")
        mt.equal(kept, [], "of %s with %s" % (words, setting))


def case_a_trace_that_grows_is_not_kept():
    index, trace = folder(), mt.Trace(os.path.join(mt.scratch("run"), "trace"))
    with subprocess.Popen(["cat"], env=mt.shim_env(trace.path), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(b"x")
        process.stdin.flush()
        process.stdout.read(1)
        mt.equal(ask("report", trace.path, index)[0], 0)
        mt.equal(indices(index), [], "indices while it runs")
    trace.settle()
    mt.equal(ask("report", trace.path, index)[0], 0)
    mt.equal(len(indices(index)), 1, "indices behind its end")


def case_the_oldest_goes():
    index, path = folder(), unpacked("tree")
    os.mkdir(index, 0o700)
    for age, name in enumerate(("%016x.index" % 1, "%016x.index" % 2, "%016x.index.77" % 3)):
        with open(os.path.join(index, name), "wb") as file:
            file.truncate(400 << 20)
        os.utime(os.path.join(index, name), (1000 + age, 1000 + age))
    with open(os.path.join(index, "notes"), "wb") as file:
        file.truncate(900 << 20)
    mt.equal(ask("report", path, index)[0], 0)
    left = indices(index)
    mt.check("%016x.index" % 1 not in left and "%016x.index" % 2 not in left, "older ones are left: %s" % left)
    mt.check("notes" in left and len(left) == 3, "what is left: %s" % left)


if __name__ == "__main__":
    mt.main()
