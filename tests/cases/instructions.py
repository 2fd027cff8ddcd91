#!/usr/bin/env python3
"""What a pair of malloc and free costs in instructions of the program, and of a report of it, which do not depend on load: at most 5 % more
than is kept in tests/golden/instructions.json, for the compiler that made the library. `--refresh` keeps what is measured."""
# timeout: 400
import json
import os
import re
import shutil
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

KEPT = os.path.join(mt.TOP, "tests/golden/instructions.json")
REFRESH = "--refresh" in sys.argv and not sys.argv.remove("--refresh")
FEW, MORE = 20000, 60000
MODES = {"all": {}, "young": {"MEMTRACE_RECORD": "young"}, "no stacks": {"MEMTRACE_STACKS": "none"},
         "sampled": {"MEMTRACE_RECORD": "sampled"}}


def compiler():
    """GCC 12 x86_64."""
    made_by = mt.execute(["readelf", "-p", ".comment", mt.SHIM]).out
    found = re.search(r"(GCC): \(.*?\) (\d+)|(clang) version (\d+)", made_by)
    mt.check(found, "who made the library? %s" % made_by)
    return " ".join([g for g in found.groups() if g] + [os.uname().machine])


def collected(pairs, env):
    """Of all the program's threads. What is done at the end of a window of young blocks is due by the clock, which runs on while valgrind
    takes fifty times longer: that is left out."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=end_window", "--collect-atstart=yes",
               mt.program("deep"), "5", str(pairs)]
    run = mt.shimmed(command, env=env, timeout=120)
    mt.equal(run.status, 0, run.err)
    return max(int(n) for n in re.findall(r"Collected : (\d+)", run.err))


def measure(mode):
    return (collected(MORE, MODES[mode]) - collected(FEW, MODES[mode])) / (MORE - FEW)


def reported(pairs):
    """Of a report of so many pairs, all processes' threads; without files of symbols, which are as large as the system's happen to be."""
    trace = mt.shimmed([mt.program("deep"), "5", str(pairs)]).trace
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", mt.MEMTRACE, "report", "--no-debug-files", trace.path]
    run = mt.execute(command, timeout=120)
    mt.equal(run.status, 0, run.err)
    return max(int(n) for n in re.findall(r"Collected : (\d+)", run.err))


def measure_report():
    return (reported(MORE // 2) - reported(FEW // 2)) / (MORE // 2 - FEW // 2)


def kept():
    with open(KEPT, encoding="utf-8") as file:
        return json.load(file)


def compare(what, measured):
    if not shutil.which("valgrind"):
        mt.skip("no valgrind")
    numbers, who = kept(), compiler()
    if not REFRESH and what not in numbers.get(who, {}):
        mt.skip("nothing is kept for %s" % who)
    found = measured()
    print("# %.1f instructions, kept: %s" % (found, numbers.get(who, {}).get(what)))
    if REFRESH:
        numbers.setdefault(who, {})[what] = round(found, 1)
        with open(KEPT, "w", encoding="utf-8") as file:
            json.dump(numbers, file, indent=1, sort_keys=True)
            file.write("\n")
    mt.check(found <= 1.05 * numbers[who][what], "%.1f instructions a pair, %.1f are kept" % (found, numbers[who][what]))


@mt.variants(*MODES)
def case_of_a_pair(mode):
    compare(mode, lambda: measure(mode))


def case_of_a_report():
    compare("report", measure_report)


mt.main()
