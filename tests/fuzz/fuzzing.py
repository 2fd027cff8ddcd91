"""Runs commands on mutants and says what is not allowed: a signal, a sanitizer's word, a hang, much memory, another status than 0 and 3 (1 of
`check`, 2 of a moment or a site that the trace does not have), an error without a line, JSON that is none."""
import atexit
import concurrent.futures
import functools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import mt
import mutants

ASAN = os.path.join(mt.BUILD, "asan/memtrace")
WEIGHS = os.path.join(mt.BUILD, "tests/programs/weighs")
CPU_SECONDS, SECONDS = 20, 200  # of a command; a busy machine gives it a tenth of a processor
MIB = {"plain": 700, "asan": 1200}  # AddressSanitizer has a share of its own; the bound of docs/design/reader.md is 256 MiB, twice, for such small files
ENV = mt.clean_env(ASAN_OPTIONS="detect_leaks=1:exitcode=99:allocator_may_return_null=1:quarantine_size_mb=8:symbolize=1",
                   UBSAN_OPTIONS="halt_on_error=1:exitcode=99:print_stacktrace=1", DEBUGINFOD_URLS="")
# What AddressSanitizer says of a request that malloc refuses, as it does without: libelf (0.192) asks for what a compressed section says it needs.
REFUSED = re.compile(r"^==\d+==WARNING: AddressSanitizer failed to allocate 0x[0-9a-f]+ bytes\n", re.M)
PACKED = "PACKED"  # stands for the mutant as a packed file, damaged once more
INTACT = "INTACT"  # stands for the folder of an intact trace, TRACE for the mutant's

COMMANDS = tuple(tuple(c.split()) for c in """
report TRACE
report --all --force TRACE
report --json --force TRACE
report --all --force --no-python --all-frames TRACE
report --json --no-native TRACE
report --all --force --from 0.1 --to 1.5 TRACE
report --all --force --from step:2 --to step:4 TRACE
peak TRACE
peak --force -n all TRACE
peak --json --force TRACE
peak --force --by file TRACE
peak --force --at oom TRACE
peak --force --at end --by stack TRACE
peak --force --fit 1M TRACE
leaks --force TRACE
leaks --json --force --all-frames -n all TRACE
leaks --force --by function --no-debug-files TRACE
leaks --json TRACE
holders TRACE
holders --json --force -n all TRACE
peak --force --by holder TRACE
frag TRACE
frag --force -n all TRACE
frag --json --force TRACE
frag --force --at oom TRACE
whatif --force TRACE
whatif --json --force TRACE
whatif --force --alloc-conf expandable_segments:True,roundup_power2_divisions:[16:2,>:4] TRACE
whatif --json --force --alloc-conf max_split_size_mb:24,garbage_collection_threshold:0.5,per_process_memory_fraction:0.9 TRACE
whatif --json --force --device-memory 64M TRACE
whatif --force --without . --device-memory 1G TRACE
whatif --json --force --without leak:1 TRACE
whatif --force --without copies TRACE
whatif --force --scale batch=2 TRACE
whatif --json --force --scale .=1.5 TRACE
whatif --force --host glibc TRACE
whatif --json --force --host MALLOC_ARENA_MAX=1 TRACE
whatif --force --host malloc_trim TRACE
whatif --force --host all TRACE
timeline --force TRACE
timeline --json --force TRACE
timeline --csv --force TRACE
timeline --force --by step TRACE
timeline --force --by phase TRACE
diff --force INTACT TRACE
diff --force TRACE INTACT
diff --json --force TRACE INTACT
diff --json INTACT TRACE
check TRACE
check --json -n all TRACE
dump TRACE
dump --force --nodes TRACE
dump --json --force TRACE
dump --force --samples TRACE
dump --force --symbols TRACE
live TRACE
live --every 1 TRACE
export --format folded --force TRACE
html -o /dev/null --force TRACE
export --format folded --at oom --force TRACE
export --format speedscope --force TRACE
export --format pprof -o /dev/null --force TRACE
export --format snapshot -o /dev/null --force TRACE
export --format perfetto -o /dev/null --force TRACE
symbolize --force TRACE
reduce -o /dev/null TRACE
list --json --verdict TRACE
prune --keep 0 --dry-run TRACE
pack --force -o /dev/null TRACE
pack --force --redact -o /dev/null TRACE
pack --redact -o /dev/null TRACE
report --all --force PACKED
report --json PACKED
check PACKED
dump --force PACKED
""".strip().splitlines())
MODULE_COMMANDS = tuple(tuple(c.split()) for c in """
report --all TRACE
report TRACE
peak --json --all-frames -n all TRACE
leaks --by file TRACE
leaks --json --all-frames -n all TRACE
diff --json INTACT TRACE
frag TRACE
export --format folded TRACE
symbolize TRACE
""".strip().splitlines())


def name_of(command):
    return command[0] + (" --host" if "--host" in command else "") + (" --json" if "--json" in command else "")


NAMING = {"--at", "--from", "--by", "snapshot", "--without", "--scale", "holders"}  # may name what the trace does not have, or want a snapshot: status 2


def environment(words, elf=False):
    """A replay of a heap may take what the machine has free: here that is not much. Names of libraries are kept from one
    command to the next, where these are not what is damaged."""
    return dict(ENV, MEMTRACE_SYMBOL_CACHE="" if elf else kept_names(), **({"MEMTRACE_PROC_ROOT": small_machine()} if "--host" in words else {}))


@functools.lru_cache(None)
def kept_names():
    atexit.register(mt.Scratch.remove)
    return mt.scratch("symbols")


@functools.lru_cache(None)
def small_machine():
    atexit.register(mt.Scratch.remove)
    root = mt.scratch("proc")
    os.mkdir(root + "/proc")
    with open(root + "/proc/meminfo", "w", encoding="ascii") as file:
        file.write("MemTotal: 600000 kB\nMemAvailable: 500000 kB\n")
    return root


class Run:
    """One command on one folder."""

    def __init__(self, words, tool, kind, elf=False):
        self.words, self.kind = words, kind
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, tempfile.TemporaryFile() as used:
            child = subprocess.Popen([WEIGHS, str(used.fileno()), str(CPU_SECONDS), tool, *words], env=environment(words, elf), stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                     start_new_session=True, pass_fds=(used.fileno(),))
            timer = threading.Timer(SECONDS, lambda: os.killpg(child.pid, 9))
            timer.start()
            child.wait()
            timer.cancel()
            for file in (out, err, used):
                file.seek(0)
            self.out, self.err = out.read(), err.read()
            status, micros, kib = map(int, used.read().split() or (9, 0, 0))  # nothing is said by what was killed for its time
        self.status, self.seconds, self.mib = os.waitstatus_to_exitcode(status), micros / 1e6, kib >> 10

    def complaint(self, elf=False):
        """Why this may not be, or None. ELF: of a mutant that libelf reads."""
        text = self.err.decode(errors="replace")
        if elf:
            text = REFUSED.sub("", text)
        fine = {0, 3} | ({1} if self.words[0] == "check" else set()) | ({2} if NAMING & set(self.words) else set())
        if self.status not in fine:
            return "status %d after %.1f s: %s" % (self.status, self.seconds, text[:3000])
        if "Sanitizer" in text or "runtime error" in text:
            return "a sanitizer's word: %s" % text[:3000]
        if self.mib > MIB[self.kind]:
            return "%d MiB of memory" % self.mib
        if self.status in (2, 3) and not text.startswith("memtrace: "):
            return "status %d without a line of its own: %r" % (self.status, text[:300])
        return self.bad_json() if "--json" in self.words and self.status in (0, 1) else None

    def bad_json(self):
        try:
            text = self.out.decode()
            for document in text.splitlines() if self.words[0] == "dump" else [text]:
                json.loads(document)
        except ValueError as error:
            return "no JSON: %s" % error
        return None


class Result:
    def __init__(self, mutant, runs, wrong):
        self.seed, self.elf, self.what, self.wrong = mutant.seed, mutant.elf, mutant.what, wrong
        self.runs = [(name_of(r.words), r.kind, r.status, r.seconds, r.mib) for r in runs]

    def __str__(self):
        return "seed %d (%s): %s" % (self.seed, " | ".join(self.what)[:1500], " ;; ".join(self.wrong))


def chosen(mutant, count):
    """Which commands: each has its share, by the mutant's number; the last is run by the plain build, of whose memory there is no doubt."""
    chance = random.Random("commands %d" % mutant.seed)
    return chance.sample(MODULE_COMMANDS if mutant.elf else COMMANDS, count) if count else list(MODULE_COMMANDS if mutant.elf else COMMANDS)


def spoil(path, chance):
    """Some bytes, and of some files the end."""
    with open(path, "r+b") as file:
        size = os.path.getsize(path)
        for _ in range(chance.choice((1, 3, 20))):
            file.seek(chance.choice((chance.randrange(size), 512 * chance.randrange(max(1, size // 512)) + chance.randrange(160))))
            file.write(bytes([chance.randrange(256)]))
        if chance.randrange(4) == 0:
            file.truncate(chance.randrange(size))


class Fuzzer:
    """An intact trace to compare with, and where mutants are written."""

    def __init__(self, count=3, keep=None):
        self.count, self.keep, self.folder = count, keep, tempfile.mkdtemp(prefix="memtrace-fuzz-")
        self.intact = os.path.join(self.folder, "intact")
        os.mkdir(self.intact)
        mutants.store(mutants.Originals.get()["made"], self.intact)

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def tools(self, count):
        if not os.path.exists(ASAN):
            return [(mt.MEMTRACE, "plain")] * count
        return [(ASAN, "asan")] * (count - 1) + [(mt.MEMTRACE, "plain")]

    def packed(self, trace, seed):
        """Every third is whole; in the others some bytes differ, of the tar file or of what zstd made of it."""
        path = tempfile.mktemp(dir=self.folder, suffix=".tar.zst")
        subprocess.run(["tar", "-C", os.path.dirname(trace), "-cf", path, os.path.basename(trace)], check=True)
        chance = random.Random("packed %d" % seed)
        if seed % 3 == 1:
            spoil(path, chance)
        subprocess.run(["zstd", "-q", "--rm", "-f", path, "-o", path + ".zst"], check=True)
        if seed % 3 == 2:
            spoil(path + ".zst", chance)
        return path + ".zst"

    def run(self, seed):
        mutant = mutants.Mutant(seed)
        folder = tempfile.mkdtemp(dir=self.folder)
        try:
            trace = mutant.write(folder)
            commands = chosen(mutant, self.count)
            if not self.count:
                commands = commands + commands
            tools = self.tools(len(commands)) if self.count else [(ASAN, "asan")] * (len(commands) // 2) + [(mt.MEMTRACE, "plain")] * (len(commands) // 2)
            order = sorted(zip(commands, tools), key=lambda c: c[0][0] == "symbolize")  # it adds to the trace
            runs, wrong = [], []
            for command, (tool, kind) in order:
                packed = self.packed(trace, seed) if PACKED in command else None
                words = [{"TRACE": trace, INTACT: self.intact, PACKED: packed}.get(w, w) for w in command]
                runs.append(Run(words, tool, kind, mutant.elf))
                why = runs[-1].complaint(mutant.elf)
                if why:
                    wrong.append("memtrace %s (%s): %s" % (" ".join(command), kind, why))
            if self.keep:
                shutil.copytree(folder, self.keep, symlinks=True, dirs_exist_ok=True)
            return Result(mutant, runs, wrong)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


class Summary:
    """.commands has a row a command: runs, those with status 0, seconds, most seconds, most MiB, and with AddressSanitizer."""

    def __init__(self):
        self.mutants, self.modules, self.wrong, self.begin = 0, 0, [], time.monotonic()
        self.commands, self.of_modules = {}, {}

    def add(self, result):
        self.mutants += 1
        self.modules += result.elf
        for table in (self.commands, self.of_modules)[:1 + result.elf]:
            for name, kind, status, seconds, mib in result.runs:
                row = table.setdefault(name, [0, 0, 0.0, 0.0, 0, 0])
                at = 4 if kind == "plain" else 5
                row[0] += 1
                row[1] += status == 0
                row[2] += seconds
                row[3], row[at] = max(row[3], seconds), max(row[at], mib)
        if result.wrong:
            self.wrong.append(result)

    def lines(self):
        for title, table in (("command", self.commands), ("on modules", self.of_modules)):
            yield "%-16s %8s %8s %9s %9s %10s %10s" % (title, "runs", "status 0", "CPU s", "most s", "most MiB", "with ASan")
            for name, row in sorted(table.items()):
                yield "%-16s %8d %8d %9.0f %9.1f %10d %10d" % (name, *row)
        yield "%d mutants, %d of them modules, %d commands in %.0f s, of %.0f s of processor time; %d mutants with complaints" % (
            self.mutants, self.modules, sum(r[0] for r in self.commands.values()), time.monotonic() - self.begin,
            sum(r[2] for r in self.commands.values()), len(self.wrong))


def fuzz(seeds, count=3, jobs=None, on_wrong=lambda result: None, until=None):
    """Runs so many commands on the mutant of each seed (0 = all, under both builds); until() ends it."""
    fuzzer, summary = Fuzzer(count), Summary()
    mutants.Originals.get()
    try:
        with concurrent.futures.ThreadPoolExecutor(jobs or len(os.sched_getaffinity(0))) as pool:
            pending, seeds = set(), iter(seeds)
            while True:
                while len(pending) < 8 and not (until and until()):
                    seed = next(seeds, None)
                    if seed is None:
                        break
                    pending.add(pool.submit(fuzzer.run, seed))
                if not pending:
                    return summary
                done, pending = concurrent.futures.wait(pending, return_when=concurrent.futures.FIRST_COMPLETED)
                for future in done:
                    summary.add(future.result())
                    if future.result().wrong:
                        on_wrong(future.result())
    finally:
        fuzzer.close()
