#!/usr/bin/env python3
"""Does it grow, or does it fill? Programs in ten languages that fill a table and end, fill it and work on, keep more in a warm-up only, or keep
more with each unit of work: who is called a leak, and that report, leaks and live are of one opinion. The table is in docs/DIAGNOSIS.md.

NAMEs as arguments pick cases, GROWING="perl-keeps c-fill" picks programs, and --table writes the table of one run of all of them."""
# timeout: 3600
import concurrent.futures
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt
from growing import FORMS, LANGUAGES, SICK, outcome, programs

WANTED = os.environ.get("GROWING", "").split()
AT_ONCE = 3  # they mostly wait
PAGE = os.path.join(mt.TOP, "docs/DIAGNOSIS.md")
BEGIN, END = "<!-- growing -->\n", "<!-- /growing -->\n"


def chosen():
    for language, form in programs():
        name = "%s-%s" % (language, form)
        if WANTED and name not in WANTED:
            continue
        if LANGUAGES[language].there():
            yield name, language, form
        else:
            print("# %s: not installed" % name)


def look(name, language, form):
    opinions = outcome(language, form)
    print("# %-14s %s" % (name, opinions), flush=True)
    return name, form, opinions


def study():
    """All of them, and the rows of the table."""
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        found = list(pool.map(lambda one: look(*one), chosen()))
    lines = ["| form | programs | wrong | commands differ |", "|---|---|---|---|"]
    for form, words in FORMS.items():
        of = [(name, opinions) for name, which, opinions in found if which == form]
        wrong = [name for name, opinions in of if opinions["report"] != (form in SICK)]
        differ = [name for name, opinions in of if len(set(opinions.values())) > 1]
        if of:
            lines.append("| %s | %d | %s | %s |" % (words, len(of), ", ".join(wrong) or 0, ", ".join(differ) or 0))
    return found, lines


def case_programs():
    """Both errors at once, since one alone says little."""
    found, lines = study()
    print("\n".join("# " + line for line in lines))
    wrong = {name for name, form, opinions in found if opinions["report"] != (form in SICK)}
    differ = {name for name, form, opinions in found if len(set(opinions.values())) > 1}
    mt.check(not differ, "report, leaks and live differ: %s" % sorted(differ))
    mt.check(not wrong, "called a leak or not, wrongly: %s" % sorted(wrong))
    mt.check(WANTED or len(found) >= 60, "only %d programs ran" % len(found))


if sys.argv[1:] == ["--table"]:
    page, rows = open(PAGE, encoding="utf-8").read(), study()[1]
    with open(PAGE, "w", encoding="utf-8") as out:
        out.write(page[:page.index(BEGIN) + len(BEGIN)] + "\n".join(rows) + "\n" + page[page.index(END):])
else:
    mt.main()
