"""Summaries that are kept as tests/golden/screens/NAME.COLUMNSxROWS.txt: what differs from run to run is masked, words and layout are not.

    goldens.compare("spike", trace)      # at 80x24 and at 120x40; a test that is run with --refresh writes them instead

A kept screen is one run's, with each digit as #. Two are the same if they have the same words in what every summary has, in the same order: title,
headline or failure, causes, advice, what to ask next. Of what fills the rest (rows of owners, processes, the machine) the headings that both have
must be the same and come in the same order: how many there are depends on what a machine has.
"""
import os
import re
import sys

import mt

SIZES = (80, 24), (120, 40)
FOLDER = os.path.join(mt.TOP, "tests/golden/screens")
REFRESH = "--refresh" in sys.argv and not sys.argv.remove("--refresh")
ALWAYS = "memtrace report|OUT OF MEMORY|FAILED|[A-Z]+ TROUBLE|peak |healthy|INCOMPLETE|WHY|WHAT TO DO|NEARLY FULL|FILLING UP"
PYTHONS_OWN = "imported modules", "libraries' constructors", "Python objects (pymalloc arenas)"
FIGURES = re.compile(r"^(.*?) +(# [KMGT]?i?B   (?:high|medium|low))$")


def masked(text, trace):
    """One run's screen without what is only that run's, at its places."""
    text = text.replace(trace.path, "DIR").replace(os.uname().nodename, "HOST")
    return re.sub(r"[▁-█](?:[▁-█ ]*[▁-█])?", lambda bars: "~" * len(bars[0]), re.sub(r"\d", "#", text))


def flat(line):
    """A masked line without what depends on how long its figures are, and on which of a Python's own needs most."""
    line = re.sub(r"#[#,.]*", "#", re.sub(r"#x[#a-f]+", "#x#", line))
    line = re.sub(r"# bytes \((# PiB)\)", r"\1", line)
    line = re.sub(r"# (?:[KMGT]i)?B\b", "# B", re.sub(r"#:#:#|# s\b", "# s", line))
    line = re.sub(r"^peak # B (?:of heap|mapped)(.* of it )(?:%s)$" % "|".join(map(re.escape, PYTHONS_OWN)), r"peak # B\1the interpreter's", line)
    return re.sub(r"~+", "~", line)


def steady(words):
    """Without what depends on when the sampler looked."""
    return re.sub(r", then it was hit between two samples", "", re.sub(r" +", " ", words))


def sections(text):
    """[(heading, words)]: what is wrapped is one text, with a cause's figures before its evidence."""
    found = []
    for line in map(flat, text.splitlines()):
        line = re.sub(r"^.*?   (# process(?:es)? on )", r"\1", line)  # how much of a command there is room for is the host's name's business
        if not line.strip():
            continue
        if not line.startswith(" ") or not found:
            found.append([re.sub(r" {2,}", "  ", line), []])
            continue
        row = FIGURES.match(line)
        found[-1][1].append("%s %s" % (row[2], row[1].strip()) if row else line.strip())
    return [(heading, steady(" ".join(rows))) for heading, rows in found]


def is_kept(heading):
    return re.match(ALWAYS, heading) is not None or re.match(r"# process(?:es)? on ", heading) is not None


def differences(got, want):
    got, want = sections(got), sections(want)
    words = [[part for part in s if is_kept(part[0])] for s in (got, want)]
    if words[0] != words[1]:
        return "%s, not %s" % next((pair for pair in zip(*words) if pair[0] != pair[1]), tuple(words))
    rest = [[heading for heading, _ in s if not is_kept(heading)] for s in (got, want)]
    both = [[heading for heading in side if heading in rest[0] and heading in rest[1]] for side in rest]
    if both[0] != both[1]:
        return "order of headings: %s, not %s" % tuple(both)
    if rest[1] and not both[1]:
        return "none of the headings %s: %s" % (rest[1], rest[0])
    return None


def fits(text, columns, rows):
    lines = text.splitlines()
    mt.check(len(lines) <= rows, "%d lines of %d: %s" % (len(lines), rows, text))
    wide = [line for line in lines if len(line) > columns]
    mt.check(not wide, "wider than %d columns: %s" % (columns, wide))
    mt.check("\n\n\n" not in text and not text.startswith("\n"), "empty lines: %s" % text)


def compare(name, trace):
    trace.settle()
    for columns, rows in SIZES:
        text = trace.summary(columns=columns, rows=rows)
        path = os.path.join(FOLDER, "%s.%dx%d.txt" % (name, columns, rows))
        fits(text, columns, rows)
        if REFRESH:
            os.makedirs(FOLDER, exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(masked(text, trace))
            continue
        with open(path, encoding="utf-8") as file:
            wrong = differences(masked(text, trace), file.read())
        mt.check(not wrong, "the screen differs from %s (--refresh): %s\n%s" % (os.path.relpath(path, mt.TOP), wrong, text))
