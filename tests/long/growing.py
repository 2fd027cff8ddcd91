#!/usr/bin/env python3
"""Does it grow, or does it fill? Programs in ten languages that fill a table and end, fill it and work on, keep more in a warm-up only, or keep
more with each unit of work: who is called a leak, and that report, leaks and live are of one opinion. The table is in docs/DIAGNOSIS.md.

NAMEs as arguments pick cases, GROWING="perl-keeps c-fill" picks programs, and --table prints the table."""
# timeout: 3600
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt
from growing import FORMS, LANGUAGES, SICK, outcome, programs

WANTED = os.environ.get("GROWING", "").split()


def case_programs():
    """Both errors at once, since one alone says little."""
    rows, wrong, undecided = {}, [], []
    for language, form in programs():
        name = "%s-%s" % (language, form)
        if WANTED and name not in WANTED:
            continue
        if not LANGUAGES[language].there():
            print("# %s: not installed" % name)
            continue
        opinions = outcome(language, form)
        print("# %-14s %s" % (name, opinions), flush=True)
        if len(set(opinions.values())) > 1:
            undecided.append((name, opinions))
        if opinions["report"] != (form in SICK):
            wrong.append(name)
        rows.setdefault(form, []).append((name, opinions["report"]))
    for form in FORMS:
        found = rows.get(form, [])
        print("# | %s | %d | %d |" % (FORMS[form], len(found), sum(1 for _, leak in found if leak != (form in SICK))))
    mt.check(not undecided, "report, leaks and live differ: %s" % undecided)
    mt.check(not wrong, "called a leak or not, wrongly: %s" % wrong)
    mt.check(WANTED or sum(map(len, rows.values())) >= 60, "only %d programs ran" % sum(map(len, rows.values())))


mt.main()
