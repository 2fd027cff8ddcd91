"""Both batteries side by side: the generated one (tests/battery/ahead.py), whose programs go on without what was said to be the cause, and the trials
of real programs, as their table in docs/TRIALS.md has them, which go on as was advised."""
import json
import os
import re
import sys

import mt
import trials

PAGE = os.path.join(mt.TOP, "docs/TRIALS.md")
BEGIN, END = "<!-- both -->\n", "<!-- /both -->\n"
HEAD = ["| cause | generated | right | failed | went on | twins accused | real | right | failed | went on | twins accused |",
        "|---|---|---|---|---|---|---|---|---|---|---|"]
COUNTS = ("cases", "right", "failed", "went on", "accused")  # as tests/battery/ahead.py has them


class Side:
    """Of one battery: by cause, how many cases there are, where the first verdict is right, which failed and went on without what was said, and
    of how many twins anything was said."""

    def __init__(self):
        self.causes = {}

    def add(self, cause, **counts):
        row = self.causes.setdefault(cause, dict.fromkeys(COUNTS, 0))
        for name, more in counts.items():
            row[name.replace("_", " ")] += int(more)

    def row(self, cause):
        return [str(self.causes[cause][n]) for n in COUNTS] if cause in self.causes else ["-"] * len(COUNTS)


def generated(seeds):
    side, done = Side(), mt.execute([sys.executable, os.path.join(mt.TOP, "tests/battery/ahead.py"), "%d-%d" % (seeds[0], seeds[-1])], timeout=600)
    mt.equal(done.status, 0, done.err)
    side.causes = json.loads(done.out)
    return side


def units(text):
    found = re.match(r"(\d+) of (\d+) units", text)
    return (int(found[1]), int(found[2])) if found else None


def went_on(before, after):
    """By the cells of a row, as trials.Trial.wrong() asks."""
    (done, of), further = units(before), units(after)
    return after == "ended" or bool(further and further[0] >= done + max(2, of // 20))


def real(rows):
    """Of the rows of the trials' table."""
    side = Side()
    for cells in ([c.strip() for c in row.split("|")[1:-1]] for row in rows):
        name, _, said, _, _, before, after, twin = cells
        causes = trials.header(name)["causes"]
        done, of = units(before)
        side.add(said if said in causes else causes[0], cases=1, right=said in causes, failed=done < of,
                 went_on=done < of and went_on(before, after), accused=twin != "quiet")
    return side


def lines(left, right):
    for cause in sorted({*left.causes, *right.causes} - {"none"}) + ["none"]:
        yield "| %s | %s |" % (cause, " | ".join(left.row(cause) + right.row(cause)))


def table_of(page, begin=BEGIN, end=END):
    return page[page.index(begin) + len(begin):page.index(end)]


def written(page, left, rows):
    """The page with that table made anew."""
    text = "\n".join(HEAD + list(lines(left, real(rows)))) + "\n"
    return page[:page.index(BEGIN) + len(BEGIN)] + text + page[page.index(END):]
