#!/usr/bin/env python3
"""Traces that lie: 120 mutants of tests/fuzz under the sanitizers, some commands on each, and what earlier ones found. tests/long has 10,000."""
# timeout: 400
import json
import os
import subprocess
import sys
import tempfile

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path[:0] = [os.path.join(TESTS, "lib"), os.path.join(TESTS, "fuzz")]
import fuzzing
import mt
import mutants
import records
from records import decode

MUTANTS = 100
READ_SAMPLES = [c for c in fuzzing.COMMANDS if c[0] in ("check", "live") or c[:2] in (("report", "--all"), ("timeline", "--force")) or "--samples" in c]


def case_mutants():
    """Each command has its share; the numbers are always the same."""
    summary = fuzzing.fuzz(range(MUTANTS), count=3)
    mt.equal(summary.mutants, MUTANTS, "mutants")
    mt.check(not summary.wrong, "%d: %s" % (len(summary.wrong), " ;;; ".join(str(w) for w in summary.wrong[:3])))
    names = {fuzzing.name_of(c) for c in fuzzing.COMMANDS}
    mt.check(names <= set(summary.commands), "never run: %s" % (names - set(summary.commands)))
    fine = sum(row[1] for row in summary.commands.values()) / sum(row[0] for row in summary.commands.values())
    mt.check(fine > 0.5, "only %.0f %% of the commands got past the reader: mutants are refused, not read" % (100 * fine))


def case_a_number_is_the_same_mutant():
    for seed in (3, 4, 5, 6):
        first, second = mutants.Mutant(seed), mutants.Mutant(seed)
        mt.equal((first.what, first.elf), (second.what, second.elf))
        mt.equal(*((m.module if m.elf else m.files) for m in (first, second)))


def case_what_is_no_file_is_not_cut():
    """A number whose mutant makes a link of a file and then cuts it."""
    mutants.Mutant(103375).write(mt.scratch("cut"))


def case_structures_come_back_as_they_were():
    """What takes files apart and puts them together changes nothing by itself: dumps are equal."""
    for name, files in mutants.Originals.get().items():
        again = dict(files)
        for file, data in files.items():
            if file.endswith(".trace"):
                with tempfile.NamedTemporaryFile() as copy:
                    copy.write(data)
                    copy.flush()
                    head, blocks = records.read_blocks(data, copy.name)
                for block in blocks:
                    if block.type in (decode.BLOCK_EVENTS, decode.BLOCK_FOLDED):
                        covers = block.covers
                        records.write_events(block, records.read_events(block))
                        block.covers = covers
                again[file] = head + b"".join(b.pack() for b in blocks)
            elif file.endswith(".info"):
                again[file] = records.Info(data, decode.INFO_LOG).pack()
        dumps = [mt.execute([mt.MEMTRACE, "dump", "--nodes", store(f)]) for f in (files, again)]
        mt.equal([d.status for d in dumps], [0, 0], "status of dump of %s: %s" % (name, dumps[1]))
        mt.equal(dumps[1].out == dumps[0].out, True, "%s is the same" % name)


# ---- what was found -------------------------------------------------------------------------------------------------


def store(files):
    folder = mt.scratch("mutant")
    mutants.store(files, folder)
    return folder


def run_all(files, commands=fuzzing.COMMANDS):
    folder = store(files)
    for command in commands:
        words = [folder if w in ("TRACE", fuzzing.INTACT) else w for w in command]
        tool, kind = (fuzzing.ASAN, "asan") if os.path.exists(fuzzing.ASAN) else (mt.MEMTRACE, "plain")
        why = fuzzing.Run(words, tool, kind).complaint()
        mt.check(not why, "memtrace %s: %s" % (" ".join(command), why))


def case_places_without_frames():
    """An evaluator that has left its frame, as the outermost of a stack, and as all of it."""
    files = dict(mutants.Originals.get()["killed"])
    name = next(n for n in files if n.endswith(".nodes"))
    nodes = records.read_nodes(files[name])
    for changed in (lambda i: i == 4, lambda i: i % 3 == 0, lambda i: True):
        lost = [[0xC0000000FFFFFFFF, n[1], 2] if n[0] and changed(i) else n for i, n in enumerate(nodes)]
        run_all(dict(files, **{name: records.write_nodes(lost)}), [c for c in fuzzing.COMMANDS if c[0] in ("report", "peak", "leaks", "frag")])


def case_a_device_of_unknown_size():
    """Without the information on a process nobody knows how large its device is: expandable segments have room for a request even so."""
    files = {name: data for name, data in mutants.Originals.get()["devices"].items() if not name.endswith(".info")}
    run_all(files, [c for c in fuzzing.COMMANDS if c[0] == "whatif"])


def late(shift):
    """The first event comes some seconds after the start, others for as long."""
    with tempfile.TemporaryDirectory() as folder:
        b = mutants.battery
        t = b.Trace(os.path.join(folder, "t"))
        p = t.process(600, ["late"])
        for i in range(40):
            p.at(shift + i * 0.2)
            p.malloc(1 << 20, p.stack(("/src/a.py", "f", 3)))
        t.save()
        return mutants.load(t.path)


def case_a_program_that_begins_late():
    """Windows before its first event have nothing in them, instead of what memory held."""
    for shift in (0.0, 3.0, 40.0):
        run_all(late(shift), [c for c in fuzzing.COMMANDS if c[0] in ("report", "timeline", "leaks", "live", "diff")])


def case_live_ends_where_another_process_has_the_number():
    """The trace does not know when its process was started: it is not who was started later."""
    files = dict(mutants.Originals.get()["made"])
    session = files["session"]
    files["session"] = session[:64] + mutants.HERE + session[104:]
    with subprocess.Popen(["sleep", "600"]) as other:
        try:
            for name in [n for n in files if n.endswith(".info")]:
                info = records.Info(files[name], decode.INFO_LOG)
                info.head.fields.update(pid=other.pid, boot_start=0, exit_kind=0, start_mono_ns=10 ** 9, pair_mono_ns=10 ** 9)
                files[name] = info.pack()
            done = mt.execute([mt.MEMTRACE, "live", "--every", "1", store(files)], timeout=30)
        finally:
            other.kill()
    mt.equal(done.status, 0, "status: %s" % done)
    mt.check("ended" in done.out, done.out)


def case_live_ends_where_a_process_is_not_known():
    """Its info can't be read, so that its file's name is all there is of it: that is no reason to believe that the machine's process 1 is meant."""
    files = dict(mutants.Originals.get()["final"])
    name = next(n for n in files if n.endswith(".trace"))
    files["1-0.trace"] = files[name]
    files["session"] = files["session"][:64] + mutants.HERE + files["session"][104:]
    done = mt.execute([mt.MEMTRACE, "live", "--every", "1", store(files)], timeout=30)
    mt.equal(done.status, 0, "status: %s" % done)
    mt.check("ended" in done.out, done.out)


def case_rings_that_cannot_be():
    """Lists by ring would take gigabytes."""
    files = dict(mutants.Originals.get()["final"])
    name = next(n for n in files if n.endswith(".trace"))
    with tempfile.NamedTemporaryFile() as copy:
        copy.write(files[name])
        copy.flush()
        head, blocks = records.read_blocks(files[name], copy.name)
    block = next(b for b in blocks if b.type == decode.BLOCK_EVENTS)
    events, covers = records.read_events(block), block.covers
    events[5].ring = (1 << 30) - 1
    records.write_events(block, events)
    block.covers = covers
    files[name] = head + b"".join(b.pack() for b in blocks)
    folder = store(files)
    done = mt.execute([mt.MEMTRACE, "leaks", folder])
    mt.equal(done.status, 3, "status: %s" % done)
    mt.check(name in done.err, done.err)
    run = fuzzing.Run(["leaks", "--force", folder], mt.MEMTRACE, "plain")
    mt.check(run.status == 0 and run.mib < 200, "status %d, %d MiB" % (run.status, run.mib))


def made_with(**files):
    return dict(mutants.Originals.get()["made"], **files)


def last_stream():
    first, last, items = records.sample_streams(mutants.Originals.get()["made"]["samples"])[-1]
    return first, last, records.pack_items(items)


def case_samples_that_begin_in_the_middle_of_a_stream():
    """A part of a stream that never began, of any number, has nothing to decompress it with."""
    for part, commands in ((1, READ_SAMPLES), (0xFFFFFFFF, fuzzing.COMMANDS)):
        run_all(made_with(samples=records.samples_head() + records.samples_block(*last_stream(), part)), commands)


def case_samples_that_cannot_be_opened():
    """What lies in the place of samples.open is no part of a trace: it is said, not passed over, and nothing is left behind."""
    for kind in (mutants.ENDLESS, mutants.FOLDER, mutants.PIPE, mutants.LOOP):
        files = made_with(**{"samples.open": kind})
        run_all(files, READ_SAMPLES)
        folder = store(files)
        for command in ("report", "timeline"):
            done = mt.execute([mt.MEMTRACE, command, folder], timeout=30)
            mt.equal(done.status, 3, "status of %s where samples.open is %s: %s" % (command, kind, done))
            mt.check("samples.open" in done.err, done.err)
        forced = mt.execute([mt.MEMTRACE, "report", "--force", folder], timeout=30)
        mt.equal(forced.status, 0, "status with --force: %s" % forced)
        mt.check("INCOMPLETE" in forced.out, forced.out)


def case_check_reads_samples():
    data = mutants.Originals.get()["made"]["samples"]
    damaged = (("cut off", made_with(samples=data[:-1]), False), ("a bit", made_with(samples=data[:200] + bytes([data[200] ^ 1]) + data[201:]), True),
               ("no item", made_with(samples=records.samples_head() + records.samples_block(10 ** 12, 10 ** 12, records.varint(9))), True),
               ("a directory", made_with(**{"samples.open": mutants.FOLDER}), True), ("whole", made_with(), None))
    for what, files, problem in damaged:
        done = mt.execute([mt.MEMTRACE, "check", "--json", store(files)])
        found = [f for f in json.loads(done.out)["findings"] if "/samples" in f["where"]]
        mt.equal([f["problem"] for f in found], [] if problem is None else [problem], "%s: %s" % (what, done.out))


def failure_in(path):
    """A trace of a failure in line 2 of that file, as a report shows it."""
    b = mutants.battery
    t = b.Trace(os.path.join(mt.scratch("source"), "t"))
    p = t.process(700, ["train.py"])
    device = p.device(0, "GPU-0", 24 << 30)
    p.alloc(device, b.DEVICE, 20 << 30, p.stack((path, "work", 2)))
    p.fail(device, b.DEVICE, 8 << 30, p.stack((path, "work", 2)))
    p.fail(device, b.POOL, 8 << 30, p.stack((path, "work", 2)), 20 << 30, 20 << 30)
    p.exit = (b.EXIT_CODE, 1)
    t.save()
    done = mt.execute([mt.MEMTRACE, "report", "--all", t.path], timeout=20)
    mt.equal(done.status, 0, "status: %s" % done)
    return done.out


def case_source_files_are_regular_and_small():
    path = os.path.join(mt.scratch("source"), "own.py")
    with open(path, "w") as file:
        file.write("import torch\nTHE_LINE = 1\n")
    os.utime(path, (10 ** 9, 10 ** 9))
    mt.check("THE_LINE" in failure_in(path), "the line is not shown at all")
    os.truncate(path, 17 << 20)
    os.utime(path, (10 ** 9, 10 ** 9))
    mt.check("THE_LINE" not in failure_in(path), "a large file is read")
    os.unlink(path)
    os.mkfifo(path)
    os.utime(path, (10 ** 9, 10 ** 9))
    mt.check("THE_LINE" not in failure_in(path), "of a pipe")


mt.main()
