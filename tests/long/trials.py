#!/usr/bin/env python3
"""All trials of tests/lib/trials.py: each program's cause is found, its advice helps, and nothing is said of its twin.

trials.py --refresh writes the tables of docs/TRIALS.md; --refresh NAME... only those rows of the first; --both only the second, from the rows
of the first and the generated battery.
"""
# timeout: 7200
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import both
import mt
import trials

PAGE = os.path.join(mt.TOP, "docs/TRIALS.md")
BEGIN, END = "<!-- trials -->\n", "<!-- /trials -->\n"
HEAD = ["| program | what it does | said | confidence | followed | before | with the advice | twin |", "|---|---|---|---|---|---|---|---|"]
SEEDS = range(301, 311)  # as docs/DIAGNOSIS.md has


@mt.variants(*trials.names())
def case_advice_helps(name):
    trials.check(name)


@mt.variants("leak_behind_loading", "leak_graph_of_all", "leak_rollout", "leak_windows")
def case_figures_a_step_are_the_programs(name):
    trials.figures_a_step_are_the_programs(name)


def case_the_page_has_them_all():
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    rows = page[page.index(BEGIN) + len(BEGIN):page.index(END)].splitlines()[2:]
    mt.equal([row.split("|")[1].strip() for row in rows], trials.names(), "programs in docs/TRIALS.md (trials.py --refresh)")


def rows_of(page):
    return {row.split("|")[1].strip(): row for row in page[page.index(BEGIN):page.index(END)].splitlines()[3:]}


def write(rows):
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    page = page[:page.index(BEGIN) + len(BEGIN)] + "\n".join(HEAD + [rows[name] for name in sorted(rows)]) + "\n" + page[page.index(END):]
    with open(PAGE, "w", encoding="utf-8") as out:
        out.write(page)


def refresh(names):
    """Row by row: what was done stands, however it ends."""
    with open(PAGE, encoding="utf-8") as file:
        rows = rows_of(file.read())
    write({name: row for name, row in rows.items() if name in trials.names()})
    for name in names or trials.names():
        rows[name] = trials.Trial(name).row()
        write(rows)


def refresh_both():
    left = both.generated(SEEDS)
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    page = both.written(page, left, rows_of(page).values())
    with open(PAGE, "w", encoding="utf-8") as out:
        out.write(page)


if sys.argv[1:2] == ["--refresh"]:
    refresh(sys.argv[2:])
if sys.argv[1:] in (["--refresh"], ["--both"]):
    refresh_both()
elif sys.argv[1:2] != ["--refresh"]:
    mt.main()
