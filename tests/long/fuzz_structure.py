#!/usr/bin/env python3
"""10,000 mutants of tests/fuzz, four commands on each, on all processors, and all commands where samples are damaged; docs/FUZZING.md says
what of. FUZZ_MUTANTS takes fewer."""
# timeout: 14000
import concurrent.futures
import os
import random
import sys

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path[:0] = [os.path.join(TESTS, "lib"), os.path.join(TESTS, "fuzz")]
import fuzzing
import mt
import mutants
import records

FIRST, MUTANTS = 100_000, int(os.environ.get("FUZZ_MUTANTS", "10000"))


def case_mutants():
    summary = fuzzing.fuzz(range(FIRST, FIRST + MUTANTS), count=4, on_wrong=lambda result: print("# %s" % str(result)[:3000]))
    print("\n".join("# " + line for line in summary.lines()))
    mt.equal(summary.mutants, MUTANTS, "mutants")
    mt.check(not summary.wrong, "%d mutants with complaints: tests/fuzz/run --seed %d shows the first" %
             (len(summary.wrong), summary.wrong[0].seed if summary.wrong else 0))


def damaged_samples(data):
    """(what, files): cut, bits turned, parts that never began, a last stream that is in samples.open as well or instead, no files."""
    chance = random.Random("samples")
    for at in (0, 1, 8, 31, 32, 33, 79, 80, 81, len(data) // 2, len(data) - 1):
        yield "cut off at %d" % at, {"samples": data[:at]}
    for at in chance.sample(range(len(data)), 40):
        yield "a bit at %d" % at, {"samples": data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1:]}
    first, last, items = records.sample_streams(data)[-1]
    plain = records.pack_items(items)
    for part in (1, 2, 0xFFFFFFFF):
        block = records.samples_block(first, last, plain, part)
        yield "part %d alone" % part, {"samples": records.samples_head() + block}
        yield "part %d, too" % part, {"samples": data + block}
        yield "part %d in samples.open" % part, {"samples.open": records.samples_open(len(data), first, last, plain, part)}
    for what, contents in (("no item", [[9]]), ("no subject", [[3, 0, 1, 1]]), ("twice", items)):
        yield "samples.open: " + what, {"samples.open": records.samples_open(len(data), first, last, records.pack_items(contents))}
    for head in (b"", records.samples_head()[:20], records.samples_head()):
        yield "samples.open behind %d bytes" % len(head), {"samples": head, "samples.open": records.samples_open(len(head), first, last, plain)}
    for kind in (mutants.PIPE, mutants.FOLDER, mutants.LOOP, mutants.ENDLESS):
        yield "samples is " + kind, {"samples": kind}
        yield "samples.open is " + kind, {"samples.open": kind}


def complaints(what, files):
    folder = mt.scratch("samples")
    mutants.store(files, folder)
    runs = [fuzzing.Run([folder if w in ("TRACE", fuzzing.INTACT) else w for w in command], fuzzing.ASAN, "asan") for command in fuzzing.COMMANDS]
    return ["%s: memtrace %s: %s" % (what, " ".join(r.words), r.complaint()) for r in runs if r.complaint()]


def case_samples_that_cannot_be_read():
    """Every command, under AddressSanitizer and LeakSanitizer."""
    jobs = [(what, dict(files, **changed)) for files in (mutants.Originals.get()[n] for n in ("made", "system"))
            for what, changed in damaged_samples(files["samples"])]
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = [c for each in pool.map(lambda job: complaints(*job), jobs) for c in each]
    print("# %d traces with damaged samples, %d commands on each" % (len(jobs), len(fuzzing.COMMANDS)))
    mt.check(not found, "%d: %s" % (len(found), " ;;; ".join(found[:3])))


mt.main()
