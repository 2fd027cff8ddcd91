#!/usr/bin/env python3
"""Each command has a page in docs/ that holds its --help; links of all pages lead somewhere, and every page is linked.

docs.py --refresh writes what --help says into the pages, and what help words says into the glossary.
"""
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

DOCS = os.path.join(mt.TOP, "docs")
FIRST_BLOCK = re.compile(r"```\n.*?```\n", re.S)


commands = mt.commands


def page(command):
    return os.path.join(DOCS, command + ".md")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def help_of(command):
    done = mt.execute([mt.MEMTRACE, command, "--help"])
    mt.equal(done.status, 0, "status of %s --help" % command)
    return "```\n" + done.out + "```\n"


GLOSSARY = os.path.join(DOCS, "GLOSSARY.md")


def glossary():
    done = mt.execute([mt.MEMTRACE, "help", "words"], env=mt.clean_env(COLUMNS="140"))
    mt.equal(done.status, 0, "status of help words")
    return "```\n" + done.out + "```\n"


def case_glossary_is_help_words():
    mt.check(glossary() in read(GLOSSARY), "docs/GLOSSARY.md and help words differ; tests/cases/docs.py --refresh")


def verdicts():
    kinds = re.findall(r'^VERDICT\(\w+, "(\w+)"', read(os.path.join(mt.TOP, "analyzer/diagnosis/verdicts.def")), re.M)
    mt.check(len(kinds) >= 10, kinds)
    return kinds


def case_verdicts_are_explained():
    rows = re.findall(r"^### (\w+)$", read(os.path.join(DOCS, "DIAGNOSIS.md")), re.M)
    listed = re.search(r"A verdict is one of ([^;]*);", read(os.path.join(DOCS, "report.md")))[1]
    listed = re.findall(r"\w+", listed)
    mt.equal([k for k in verdicts() if k not in rows], [], "verdicts without a section in DIAGNOSIS.md")
    mt.equal(sorted(listed), sorted(verdicts()), "verdicts in report.md")
    row = re.search(r"^\| `verdicts\[\]\.kind` \| string \| (.*) \|$", read(os.path.join(DOCS, "JSON.md")), re.M)[1]
    mt.equal([k for k in verdicts() if "`%s`" % k not in row], [], "verdicts that JSON.md does not list")


def case_confidences_are_their_table():
    rows = re.findall(r'^CONFIDENCE\(\w+, +([\d.]+), "([^"]*)"\)$', read(os.path.join(mt.TOP, "analyzer/diagnosis/confidences.def")), re.M)
    page = read(os.path.join(DOCS, "DIAGNOSIS.md"))
    shown = re.findall(r"^\| ([\d.]+) \| (.*) \|$", page[page.index("<!-- confidences -->"):page.index("<!-- /confidences -->")], re.M)
    mt.check(len(rows) >= 10, rows)
    mt.equal(shown, rows, "docs/DIAGNOSIS.md and confidences.def")


def case_words_of_screens_are_in_the_glossary():
    """The words that a stranger asked about, and each kind of cause."""
    kinds = [name.replace("_", " ") for name in verdicts()]
    words = ["freed at once", "kept by allocators", "copied after fork", "context", "smaller parts", "unexplained", "at the same pace", "its share", "known from"]
    heads = [line for line in read(GLOSSARY).splitlines() if line and not line.startswith((" ", "#", "`"))]
    missing = [w for w in words + kinds if not any(re.search(r"(^|, )%s(,|$)" % re.escape(w), head) for head in heads)]
    mt.equal(missing, [], "words that the glossary lacks")


def case_help_is_listed():
    mt.check(len(commands()) >= 8, "memtrace --help lists %s" % commands())


def case_pages_hold_help():
    for command in commands():
        mt.check(os.path.exists(page(command)), "docs/%s.md is missing" % command)
        mt.check(help_of(command) in read(page(command)), "docs/%s.md and --help differ; tests/cases/docs.py --refresh" % command)


def pages():
    """All pages for people, by path."""
    yield from (os.path.join(mt.TOP, name) for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "tests/README.md"))
    for folder in (DOCS, os.path.join(DOCS, "design")):
        yield from (os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".md"))


def anchors(path):
    """What a link to a heading of the page is written as."""
    heads = re.findall(r"^#+ (.*)", read(path), re.M) if path.endswith(".md") else []
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


def case_links_lead_somewhere():
    for path in pages():
        for link, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", read(path)):
            target = os.path.join(os.path.dirname(path), link) if link else path
            mt.check(os.path.exists(target), "%s links to %s" % (os.path.relpath(path, mt.TOP), link))
            mt.check(not anchor or anchor in anchors(target), "%s links to %s#%s" % (os.path.relpath(path, mt.TOP), link, anchor))


def case_every_page_is_listed():
    """README leads to each page of docs/, DESIGN to each of docs/design/."""
    for listing, folder in (("README.md", "docs"), ("docs/DESIGN.md", "docs/design")):
        text = read(os.path.join(mt.TOP, listing))
        linked = {os.path.basename(link) for link in re.findall(r"\]\(([^)#:]+\.md)", text)}
        missing = [n for n in os.listdir(os.path.join(mt.TOP, folder)) if n.endswith(".md") and n not in linked]
        mt.equal(missing, [], "pages of %s/ that %s does not link" % (folder, listing))


def case_every_tutorial_is_listed():
    """In README's line, in the page's order, by the words that its titles have."""
    with open(os.path.join(mt.TOP, "docs/TUTORIALS.md"), encoding="utf-8") as file:
        titles = re.findall(r"^## (.*)$", file.read(), re.M)
    with open(os.path.join(mt.TOP, "README.md"), encoding="utf-8") as file:
        line, = re.findall(r"^\| \[TUTORIALS\].*line: (.*) \|$", file.read(), re.M)
    words, listed = ("host", "device", "server", "DataLoader"), line.split(", ")
    mt.equal((len(titles), len(listed)), (len(words), len(words)), "tutorials of %s, in %s" % (titles, listed))
    for word, title, part in zip(words, titles, listed):
        mt.check(word in title and word in part, "%r is not what README lists: %r" % (title, part))


def case_readme_is_short():
    mt.check(read(os.path.join(mt.TOP, "README.md")).count("\n") <= 200, "README.md has more than 200 lines")


def case_readme_says_how_to_be_rid_of_it():
    """What was installed and built, traces, and the recording itself; and how large traces may become."""
    text = read(os.path.join(mt.TOP, "README.md"))
    mt.equal([w for w in ("make uninstall", "make distclean", "`rm -r`", "`unset LD_PRELOAD`", "`MEMTRACE_LIMIT`", "working directory") if w not in text], [],
             "what README does not name")


def case_tests_that_pages_name_exist():
    """`name.py` is a test, with the words behind it in its text; `trials/name.py` a program; `battery` is followed by a kind."""
    rows = [line for line in read(os.path.join(DOCS, "DIAGNOSIS.md")).splitlines() if line.startswith("| ") and (".py`" in line or "`battery`" in line)]
    kinds = read(os.path.join(mt.TOP, "tests/battery/cases.py"))
    mt.check(len(rows) >= 24, "%d rows" % len(rows))
    for row in rows:
        for name, word in re.findall(r"`(\w+\.py)`(?: (\w+))?", row):
            path = os.path.join(mt.TOP, "tests/cases", name)
            mt.check(os.path.exists(path) and (word or "") in read(path), "no test %s %s" % (name, word))
        for name in re.findall(r"`(trials/\w+\.py)`", row):
            mt.check(os.path.exists(os.path.join(mt.TOP, "tests", name)), "no %s" % name)
        for kind in re.findall(r"`battery` (\w+)", row):
            mt.check("def %s(" % kind in kinds, "the battery has no %s" % kind)


EXAMPLE = re.compile(r"^    (?:eval \$\()?memtrace ([a-z]+(?: [^#>)\n]*)?)", re.M)
OF_OPTIONS = ("unknown command", "unknown option", "unknown value", "is no option", "needs a value", "takes no value", "is no ", "unexpected word", "name two",
              "not with", "is none of its keys")


def examples():
    """(page, words) of each command that a page shows, but for titles of screens."""
    for path in [os.path.join(mt.TOP, "README.md")] + [page(c) for c in commands()]:
        for match in EXAMPLE.finditer(read(path)):
            words = match[1].split()
            if "OPTIONS" not in match[1] and "[" not in match[1] and "   " not in match[1].strip():
                yield os.path.basename(path), words


def case_examples_are_commands():
    """What the pages tell to type is understood: no option or value of it is wrong, whatever this trace may lack."""
    folder = mt.scratch("examples")
    done = mt.shimmed([mt.program("marks"), "grow"])
    done.trace.settle()
    for name in ("before", "after", "DIR", "memtrace-python-host-4711"):
        shutil.copytree(done.trace.path, os.path.join(folder, name))
    with open(os.path.join(folder, "lsan.supp"), "w", encoding="utf-8"):
        pass
    tried = 0
    for name, words in examples():
        words = [w.replace("/data/", folder + "/") for w in words]
        if "--" in words:
            words = words[:words.index("--") + 1] + ["true"]
        got = mt.execute([mt.MEMTRACE, *words], cwd=folder)
        mt.check(got.status in (0, 1, 2, 3) and not any(text in got.err for text in OF_OPTIONS),
                 "%s: memtrace %s: %s %s" % (name, " ".join(words), got.status, got.err))
        tried += 1
    mt.check(tried >= 20, "%d examples" % tried)


def refresh():
    for command in commands():
        text = read(page(command))
        with open(page(command), "w", encoding="utf-8") as file:
            file.write(FIRST_BLOCK.sub(lambda _: help_of(command), text, count=1))
    text = read(GLOSSARY)
    with open(GLOSSARY, "w", encoding="utf-8") as file:
        file.write(FIRST_BLOCK.sub(lambda _: glossary(), text, count=1))
    mt.Scratch.remove()


if sys.argv[1:] == ["--refresh"]:
    refresh()
else:
    mt.main()
