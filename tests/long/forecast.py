#!/usr/bin/env python3
"""The study of forecasts over 400 seeds a shape: the table in docs/DIAGNOSIS.md is what it prints. `forecast.py --table` writes it."""
# timeout: 1600
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

SEEDS = 400
PAGE = os.path.join(mt.TOP, "docs/DIAGNOSIS.md")
BEGIN, END = "<!-- forecast -->\n", "<!-- /forecast -->\n"


def study():
    done = mt.execute([os.path.join(mt.BUILD, "tests/unit/test_forecast")], env={**os.environ, "FORECAST_SEEDS": str(SEEDS)}, timeout=1500)
    rows = [line for line in done.out.splitlines() if line.startswith("| ")]
    return done, ["| growth, noise | in the interval | within 10 % | width | held out |", "|---|---|---|---|---|", *rows]


def parts(lines):
    """By name of the row: how many were right."""
    return {cells[1].strip(): float(cells[2]) for cells in (line.split("|") for line in lines[2:])}


def case_the_page_says_what_comes_out():
    done, lines = study()
    mt.equal(done.status, 0, "status")
    page = open(PAGE, encoding="utf-8").read()
    said, found = parts(page[page.index(BEGIN) + len(BEGIN):page.index(END)].splitlines()), parts(lines)
    mt.equal(sorted(said), sorted(found), "rows")
    for name in found:  # compilers round differently: a seed or two
        mt.between(said[name] - 0.011, found[name], said[name] + 0.011, name)


if sys.argv[1:] == ["--table"]:
    page, lines = open(PAGE, encoding="utf-8").read(), study()[1]
    with open(PAGE, "w", encoding="utf-8") as out:
        out.write(page[:page.index(BEGIN) + len(BEGIN)] + "\n".join(lines) + "\n" + page[page.index(END):])
else:
    mt.main()
