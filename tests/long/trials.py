#!/usr/bin/env python3
"""All trials of tests/lib/trials.py: each program's cause is found, its advice helps, and nothing is said of its twin.

trials.py --refresh writes the table of docs/TRIALS.md; --refresh NAME... only those rows of it.
"""
# timeout: 7200
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt
import trials

PAGE = os.path.join(mt.TOP, "docs/TRIALS.md")
BEGIN, END = "<!-- trials -->\n", "<!-- /trials -->\n"
HEAD = ["| program | what it does | said | followed | before | with the advice |", "|---|---|---|---|---|---|"]


@mt.variants(*trials.names())
def case_advice_helps(name):
    trials.check(name)


def case_the_page_has_them_all():
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    rows = page[page.index(BEGIN) + len(BEGIN):page.index(END)].splitlines()[2:]
    mt.equal([row.split("|")[1].strip() for row in rows], trials.names(), "programs in docs/TRIALS.md (trials.py --refresh)")


def refresh(names):
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    old = {row.split("|")[1].strip(): row for row in page[page.index(BEGIN):page.index(END)].splitlines()[3:]}
    rows = [trials.Trial(name).row() if name in (names or trials.names()) else old[name] for name in trials.names() if not names or name in old or name in names]
    with open(PAGE, "w", encoding="utf-8") as out:
        out.write(page[:page.index(BEGIN) + len(BEGIN)] + "\n".join(HEAD + rows) + "\n" + page[page.index(END):])


if sys.argv[1:2] == ["--refresh"]:
    refresh(sys.argv[2:])
else:
    mt.main()
