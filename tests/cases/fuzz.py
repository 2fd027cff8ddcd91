#!/usr/bin/env python3
"""Damaged traces: `memtrace` says in one line which file, where and what, with status 3, or reads on where what was cut
did not matter. Never a signal, a hang or much memory. The AddressSanitizer build is used where there is one.
Of what is cut and turned at random this is a tenth; tests/long/fuzz.py has all."""
# timeout: 400
import concurrent.futures
import os
import random
import re
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import golden_traces
import mt

sys.path.insert(0, os.path.join(mt.TOP, "scripts"))
import decode

ASAN = os.path.join(mt.BUILD, "asan/memtrace")
TOOL = ASAN if os.path.exists(ASAN) else mt.MEMTRACE
MEMORY_KIB = 400 << 10  # AddressSanitizer's own share is most of it
SECONDS = 20  # of CPU time; a hang takes ten times as long to be noticed
SEED = 3
ENV = mt.clean_env(ASAN_OPTIONS="detect_leaks=1:exitcode=99:allocator_may_return_null=1", UBSAN_OPTIONS="halt_on_error=1:exitcode=99",
                   MEMTRACE_SYMBOL_CACHE=mt.scratch("symbols"))  # libraries are not what is damaged here


# ---- one damaged trace ------------------------------------------------------------------------------------------


class Original:
    """A golden trace in a folder; damage() gives a copy of it in which one file is different."""

    def __init__(self, name):
        self.name, self.path = name, golden_traces.unpack(name, mt.scratch(name))
        self.files = sorted(os.listdir(self.path))
        self.data = {f: decode.load(os.path.join(self.path, f)) for f in self.files}

    def file(self, ending):
        """The largest with that ending."""
        return max((f for f in self.files if f.endswith(ending)), key=lambda f: len(self.data[f]))

    def damage(self, folder, file, data):
        for other in self.files:
            if other != file:
                os.link(os.path.join(self.path, other), os.path.join(folder, other))
        if data is not None:
            with open(os.path.join(folder, file), "wb") as out:
                out.write(data)


class Outcome:
    def __init__(self, status, lines, err, memory):
        self.status, self.lines, self.err, self.memory = status, lines, err, memory


def execute(arguments, folder, tool=TOOL):
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = subprocess.Popen([tool, *arguments, folder], env=ENV, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        resource.prlimit(child.pid, resource.RLIMIT_CPU, (SECONDS, SECONDS))
        timer = threading.Timer(10 * SECONDS, child.kill)
        timer.start()
        _, status, usage = os.wait4(child.pid, 0)
        timer.cancel()
        child.returncode = status
        out.seek(0)
        err.seek(0)
        return Outcome(os.waitstatus_to_exitcode(status), out.read().count(b"\n"), err.read().decode(errors="replace"), usage.ru_maxrss)


def complaint(got, names, fine=(0, 3)):
    """Why this outcome is not allowed, or None. An error line must hold one of the names."""
    if got.status not in fine:
        return "status %d: %s" % (got.status, got.err[-800:])
    if got.memory > MEMORY_KIB:
        return "%d KiB of memory" % got.memory
    if got.status == 3:
        lines = got.err.splitlines()
        if len(lines) != 1:
            return "%d lines on stderr: %s" % (len(lines), got.err[:400])
        if not any(name in lines[0] for name in names):
            return "the line names no file: " + lines[0]
    return None


def attempt(original, what, file, data, commands=(("dump",), ("dump", "--force")), fine=(0, 3), tool=TOOL):
    """One damaged copy under each command; returns complaints, and the outcomes."""
    folder = tempfile.mkdtemp(dir=mt.Scratch.root)
    try:
        original.damage(folder, file, data)
        outcomes = [execute(command, folder, tool) for command in commands]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    wrong = []
    for command, got in zip(commands, outcomes):
        why = complaint(got, original.files + [folder], fine)
        if why:
            wrong.append("%s of %s, memtrace %s: %s" % (what, file, " ".join(command), why))
    return wrong, outcomes


def all_fine(attempts):
    """attempts: (original, what, file, data[, commands[, fine[, tool]]]); run two at a time, fail with the first few complaints."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        results = list(pool.map(lambda a: attempt(*a), attempts))
    wrong = [w for complaints, _ in results for w in complaints]
    mt.check(not wrong, "%d of %d: %s" % (len(wrong), len(results), " ;; ".join(wrong[:4])))
    mt.check(results, "nothing was tried")
    return [outcomes for _, outcomes in results]


def cut(original, file, size):
    return (original, "%d bytes" % size, file, original.data[file][:size])


def flip(original, file, position, bit):
    data = bytearray(original.data[file])
    data[position] ^= 1 << bit
    return (original, "bit %d of byte %d" % (bit, position), file, bytes(data))


def originals():
    return [Original(n) for n in golden_traces.NAMES]


def used(data):
    """Where something other than zeros is: mapped files are mostly holes."""
    return len(data.rstrip(b"\0")) or 1


# ---- cases ------------------------------------------------------------------------------------------------------


def first_block(original):
    file = original.file(".trace")
    block = decode.trace_blocks(os.path.join(original.path, file))[0]
    return file, block.offset + block.total_bytes


HEADERS = 200  # bytes: the file's, the block's, its covers


def cut_the_first_block(step):
    """At every byte of the headers, and each STEP behind. Under AddressSanitizer every eighth of these; it makes a run ten times as long."""
    original = Original("final")
    file, end = first_block(original)
    ways = {False: ((("dump",),), (0, 3), mt.MEMTRACE), True: ((("dump",), ("dump", "--force")), (0, 3), TOOL)}
    sizes = [*range(min(HEADERS, end)), *range(HEADERS, end, step), end]
    outcomes = all_fine([cut(original, file, size) + ways[i % 8 == 0] for i, size in enumerate(sizes)])
    mt.check(all(o[0].status == 3 for o in outcomes[1:-1]), "a block that is cut off is no damage")
    # The line says where in the file.
    got = all_fine([cut(original, file, end - 1)])[0][0]
    mt.check(re.search(r"\b%s\b.*\b\d+\b" % re.escape(file), got.err), "no offset in: " + got.err)


def case_cut_in_the_first_block():
    cut_the_first_block(8)


def cut_at_random_places(count):
    chance, attempts = random.Random(SEED), []
    traces = originals()
    while len(attempts) < count:
        original = chance.choice(traces)
        file = chance.choice(original.files)
        attempts.append(cut(original, file, chance.randrange(used(original.data[file]) + 1)))
    all_fine([a + ((("dump", "--force") if i % 2 else ("dump",),),) for i, a in enumerate(attempts)])


def case_cut_at_random_places():
    cut_at_random_places(100)


def random_bits(count):
    chance, attempts = random.Random(SEED), []
    traces = originals()
    while len(attempts) < count:
        original = chance.choice(traces)
        file = chance.choice(original.files)
        position = chance.choice([chance.randrange(used(original.data[file])), chance.randrange(min(512, len(original.data[file])))])
        attempts.append(flip(original, file, position, chance.randrange(8)))
    all_fine([a + ((("dump", "--force") if i % 2 else ("dump",),),) for i, a in enumerate(attempts)])


def case_random_bits():
    random_bits(80)


def case_a_flipped_bit_in_a_block_is_noticed():
    original = Original("final")
    file, end = first_block(original)
    chance = random.Random(SEED)
    flips = [flip(original, file, chance.randrange(32, end), chance.randrange(8)) for _ in range(40)]
    for outcome, _ in all_fine(flips):
        mt.equal(outcome.status, 3, "status")


COMMANDS = "report", "frag", "timeline", "peak", "leaks", "check"


def other_commands(command, both):
    """On each file of each trace, cut and with a bit turned; as it is and with --force, or by turns."""
    chance, attempts = random.Random(command), []
    # check looks at all there is in any case, and 1 is its answer to damage
    ways = [((("check",),), (0, 1, 3))] * 2 if command == "check" else [(((command,), (command, "--force")), (0, 3))] * 2 if both else [
        (((command,),), (0, 3)), (((command, "--force"),), (0, 3))]
    for original in originals():
        for file in original.files:
            size = used(original.data[file])
            turn = len(attempts) // 2 % 2
            attempts.append(cut(original, file, chance.randrange(size)) + ways[turn])
            attempts.append(flip(original, file, chance.randrange(size), 3) + ways[1 - turn])
    all_fine(attempts)


@mt.variants(*COMMANDS[:3])
def case_other_commands(command):
    other_commands(command, both=False)


def random_bits_of_device_events(count):
    """What gets past the reader must not confuse the books of devices: any address, class, device or order."""
    chance, attempts, original = random.Random(SEED), [], Original("devices")
    file, commands = original.file(".ring"), ("report", "frag", "peak", "timeline")
    for i in range(count):
        attempts.append(flip(original, file, chance.randrange(64, used(original.data[file])), chance.randrange(8)) +
                        (((commands[i % 4], "--force"),),))
    all_fine(attempts)


def case_random_bits_of_device_events():
    random_bits_of_device_events(20)


def damaged_samples(count, step):
    """Nothing but the events is read by a dump; reports read what was sampled."""
    original = Original("system")
    data, chance = original.data["samples"], random.Random(SEED)
    attempts = [flip(original, "samples", chance.randrange(len(data)), chance.randrange(8)) +
                ((("dump", "--samples"), ("report", "--force"), ("timeline", "--json", "--force")),) for _ in range(count)]
    attempts += [cut(original, "samples", size) + ((("dump", "--samples"), ("report", "--json")),) for size in range(0, len(data), step)]
    all_fine(attempts)


def case_damaged_samples():
    damaged_samples(10, 97 * 4)


def case_empty_files():
    all_fine([(o, "emptied", f, b"") for o in originals() for f in o.files])


def case_missing_files():
    all_fine([(o, "missing", f, None) for o in originals() for f in o.files])


def case_foreign_files():
    with open(mt.MEMTRACE, "rb") as file:
        binary = file.read(100_000)
    all_fine([(o, "foreign", f, data) for o in originals() for f in o.files for data in (binary, b"no trace at all\n" * 600)])


def case_newer_version_is_refused_by_name():
    for original in originals():
        for file in original.files:
            if not file.endswith((".info", ".trace")) and file != "session":
                continue
            data = bytearray(original.data[file])
            data[8:12] = struct.pack("<I", 2)
            wrong, (got,) = attempt(original, "version 2", file, bytes(data), (("dump",),))
            mt.check(not wrong, str(wrong))
            mt.equal(got.status, 3, "status with a newer %s" % file)
            mt.check("version" in got.err, "the line does not say version: " + got.err)


def case_force_reports_what_is_intact():
    original = Original("final")
    file = original.file(".trace")
    blocks = decode.trace_blocks(os.path.join(original.path, file))
    mt.check(len(blocks) >= 2, "the golden trace has %d blocks" % len(blocks))
    whole = execute(("dump",), original.path)
    middle = bytearray(original.data[file])
    last = blocks[-1]
    middle[last.offset + 20] ^= 1
    wrong, (got,) = attempt(original, "a bad last block", file, bytes(middle), (("dump", "--force"),))
    mt.check(not wrong, str(wrong))
    mt.equal(got.status, 0, "status")
    mt.check(got.lines > whole.lines // 2, "%d lines of %d are left" % (got.lines, whole.lines))


def case_not_a_trace():
    folder = mt.scratch("empty")
    for path in (folder, folder + "/nothing", mt.MEMTRACE):
        got = execute(("report",), path)
        mt.equal(got.status, 3, "status of report %s (%s)" % (path, got.err))
        mt.equal(len(got.err.splitlines()), 1, "lines on stderr")


if __name__ == "__main__":
    mt.main()
