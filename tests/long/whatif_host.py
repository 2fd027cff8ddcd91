#!/usr/bin/env python3
"""memtrace whatif --host: six programs, each recorded on glibc and replayed on four allocators, against real runs on them without memtrace.

usage: whatif_host.py [CASE...] | --table    writes the table in docs/whatif.md"""
# serial
# timeout: 1800
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import heaps
import mt

SETTINGS = ("glibc", "MALLOC_ARENA_MAX=1", *heaps.LIBRARIES)
TIMES = 3


@mt.variants(*heaps.KINDS)
def case_against_real_runs(kind):
    for setting in SETTINGS:
        heap, figures = heaps.replayed(kind, TIMES, setting)
        mt.equal(heap["trust"], "figures", "%s is off by %s" % (kind, heap["off"]))
        heaps.check_near(figures, heaps.real(kind, TIMES, None if setting == "glibc" else setting), 0.05, "%s under %s" % (kind, setting))


@mt.variants(*heaps.LIBRARIES)
def case_recorded_there(allocator):
    """The run's own is not glibc's then."""
    for kind in ("arenas", "vectors"):
        heap, figures = heaps.replayed(kind, TIMES, "glibc", recorded_as=allocator)
        mt.equal(heap["trust"], "figures", "%s is off by %s" % (kind, heap["off"]))
        heaps.check_near(figures, heaps.real(kind, TIMES), 0.05, "%s, recorded under %s, under glibc" % (kind, allocator))


def case_the_runs_own_variables():
    """They are those of the replay, too, and others come on top of them."""
    own = "MALLOC_TRIM_THRESHOLD_=131072"
    heap, figures = heaps.replayed("large", 1, "MALLOC_ARENA_MAX=1", recorded_as=own)
    for got in (figures, {"peak": heap["run"]["peak_bytes"], "end": heap["run"]["end_bytes"]}):
        heaps.check_near(got, heaps.real("large", 1, own), 0.05, own)


# ---- the table in docs/whatif.md ---------------------------------------------------------------------------------

PAGE = os.path.join(mt.TOP, "docs/whatif.md")
BEGIN, END = "<!-- heaps -->\n", "<!-- /heaps -->\n"


def cell(said, real):
    mib = lambda bytes: "%.1f" % (bytes / (1 << 20))
    worst = max((abs(said[name] / real[name] - 1) for name in real))
    return "%s / %s; %s / %s; %.1f %%" % (mib(said["peak"]), mib(real["peak"]), mib(said["end"]), mib(real["end"]), 100 * worst)


def table():
    rows = ["| program | " + " | ".join("`%s`" % s if "=" in s else s for s in SETTINGS) + " |", "|---" * (len(SETTINGS) + 1) + "|"]
    for kind in heaps.KINDS:
        cells = [cell(heaps.replayed(kind, TIMES, s)[1], heaps.real(kind, TIMES, None if s == "glibc" else s)) for s in SETTINGS]
        rows.append("| %s | %s |" % (kind, " | ".join(cells)))
    return "\n".join(rows) + "\n"


if sys.argv[1:2] == ["--table"]:
    rows = table()
    with open(PAGE, encoding="utf-8") as file:
        before, rest = file.read().split(BEGIN)
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(before + BEGIN + rows + END + rest.split(END)[1])
    print(rows, end="")
    mt.Scratch.remove()
else:
    mt.main()
