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
import strangers
from growing import FORMS, LANGUAGES, SICK, opinions_of, programs, record

WANTED = os.environ.get("GROWING", "").split()
AT_ONCE = 3  # they mostly wait
TOO_LITTLE = 0.05  # of all programs: those of which only the runtime can tell
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
    """With `unknown`: of a heap that is collected the report says that only its runtime knows what is live."""
    trace = record(language, form).trace
    opinions = opinions_of(trace)
    unknown = form in SICK and strangers.said_by_report(mt.MEMTRACE, trace.path).kind == "collected"
    print("# %-14s %s%s" % (name, opinions, ", only the runtime can tell" if unknown else ""), flush=True)
    return name, form, opinions, unknown


def is_wrong(form, opinions, unknown):
    return opinions["report"] != (form in SICK) and not unknown


def study():
    """All of them, and the rows of the table."""
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        found = list(pool.map(lambda one: look(*one), chosen()))
    lines = ["| form | programs | wrong | only the runtime can tell | commands differ |", "|---|---|---|---|---|"]
    for form, words in FORMS.items():
        of = [(name, opinions, unknown) for name, which, opinions, unknown in found if which == form]
        cells = ([name for name, *said in of if is_wrong(form, *said)], [name for name, _, unknown in of if unknown],
                 [name for name, opinions, _ in of if len(set(opinions.values())) > 1])
        if of:
            lines.append("| %s | %d | %s |" % (words, len(of), " | ".join(", ".join(cell) or "0" for cell in cells)))
    return found, lines


def case_programs():
    """Both errors at once, since one alone says little."""
    found, lines = study()
    print("\n".join("# " + line for line in lines))
    wrong = {name for name, form, *said in found if is_wrong(form, *said)}
    differ = {name for name, _, opinions, _ in found if len(set(opinions.values())) > 1}
    unknown = {name for name, _, _, unknown in found if unknown}
    mt.check(not differ, "report, leaks and live differ: %s" % sorted(differ))
    mt.check(not wrong, "called a leak or not, wrongly: %s" % sorted(wrong))
    mt.check(len(unknown) <= TOO_LITTLE * len(found), "too many are not told: %s" % sorted(unknown))
    mt.check(WANTED or len(found) >= 60, "only %d programs ran" % len(found))


if sys.argv[1:] == ["--table"]:
    page, rows = open(PAGE, encoding="utf-8").read(), study()[1]
    with open(PAGE, "w", encoding="utf-8") as out:
        out.write(page[:page.index(BEGIN) + len(BEGIN)] + "\n".join(rows) + "\n" + page[page.index(END):])
else:
    mt.main()
