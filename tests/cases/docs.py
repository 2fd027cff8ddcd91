#!/usr/bin/env python3
"""Each command has a page in docs/ that holds its --help, and README's links lead somewhere.

docs.py --refresh writes what --help says into the pages.
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

DOCS = os.path.join(mt.TOP, "docs")
FIRST_BLOCK = re.compile(r"```\n.*?```\n", re.S)


def commands():
    listing = mt.execute([mt.MEMTRACE, "--help"])
    return [m.group(1) for m in re.finditer(r"^  (\w+) +\S", listing.out, re.M)]


def page(command):
    return os.path.join(DOCS, command + ".md")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def help_of(command):
    done = mt.execute([mt.MEMTRACE, command, "--help"])
    mt.equal(done.status, 0, "status of %s --help" % command)
    return "```\n" + done.out + "```\n"


def case_help_is_listed():
    mt.check(len(commands()) >= 8, "memtrace --help lists %s" % commands())


def case_pages_hold_help():
    for command in commands():
        mt.check(os.path.exists(page(command)), "docs/%s.md is missing" % command)
        mt.check(help_of(command) in read(page(command)), "docs/%s.md and --help differ; tests/cases/docs.py --refresh" % command)


def case_links_lead_somewhere():
    for path in [os.path.join(mt.TOP, "README.md")] + [os.path.join(DOCS, n) for n in os.listdir(DOCS) if n.endswith(".md")]:
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", read(path)):
            target = os.path.join(os.path.dirname(path), link)
            mt.check(os.path.exists(target), "%s links to %s" % (os.path.relpath(path, mt.TOP), link))


def refresh():
    for command in commands():
        text = read(page(command))
        with open(page(command), "w", encoding="utf-8") as file:
            file.write(FIRST_BLOCK.sub(lambda _: help_of(command), text, count=1))
    mt.Scratch.remove()


if sys.argv[1:] == ["--refresh"]:
    refresh()
else:
    mt.main()
