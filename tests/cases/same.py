#!/usr/bin/env python3
"""tests/same, which says whether two builds print the same: of one build nothing differs, and whatever does is found."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import golden_traces
import mt

SAME = os.path.join(mt.TOP, "tests/same")
NO_READERS = {"run", "env", "start", "stop", "record", "prune", "fleet", "import", "push"}  # commands that print nothing of a trace
# A program that answers as fast as a shell does: its arguments, and what it writes.
PLAIN = """case " $* " in *" written "*) echo page >written ;; esac
echo "answer to $*"
"""


def program(name, text):
    path = os.path.join(mt.scratch(name), "memtrace")
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)
    return path


def same(old, new, *only):
    """(exit status, what is said of each command that differs, the counts)."""
    trace = golden_traces.unpack("gpu", mt.scratch("trace"))
    done = mt.execute([sys.executable, SAME, *only, old, new, trace])
    mt.equal(done.err, "", "stderr")
    *differences, last = done.out.splitlines()
    counts = re.fullmatch(r"(\d+) compared of 1 traces, (\d+) differ; (\d+) of them refused, (\d+) more not known, by .*", last)
    mt.check(counts, "last line: " + last)
    return done.status, [line.split(": memtrace ", 1)[1] for line in differences], tuple(map(int, counts.groups()))


def case_a_build_is_the_same_as_itself():
    mt.equal(same(mt.MEMTRACE, mt.MEMTRACE, "--only", "frag"), (0, [], (4, 0, 0, 0)))


def case_one_figure_is_enough():
    """The largest hole is 1 byte larger, in the JSON alone."""
    new = program("other", """[ "$1 $2" = "frag --json" ] || exec %s "$@"
%s "$@" >json; status=$?
awk '!done && /_bytes": [0-9]+,/ { sub(/[0-9]+,/, $2 + 1 ","); done = 1 } { print }' json; rm json
exit $status
""" % (mt.MEMTRACE, mt.MEMTRACE))
    status, differences, counts = same(mt.MEMTRACE, new, "--only", "frag")
    mt.equal((status, counts, len(differences)), (1, (4, 1, 0, 0), 1))
    mt.check(re.fullmatch(r"frag --json T: stdout: @@ .* \| -.*_bytes.* \| \+.*_bytes.*", differences[0]), differences)


UNKNOWN = """[ "$1" != html ] || { echo "memtrace: unknown command 'html'" >&2; exit 2; }\n"""
REFUSED = """[ "$1" != html ] || { echo "memtrace: T/samples: fields that don't exist" >&2; exit 3; }\n"""
# What OLD and NEW do before they answer or behind it: of what of `html -o written T` it is said that it differs, (refused, not known).
WAYS = {
    "nothing": (PLAIN, PLAIN, [], (0, 0)),
    "output": (PLAIN, PLAIN + "[ $1 != html ] || echo more\n", ["stdout"], (0, 0)),
    "a message": (PLAIN, PLAIN + "[ $1 != html ] || echo more >&2\n", ["stderr"], (0, 0)),
    "the status": (PLAIN, PLAIN + "[ $1 != html ]\n", ["status"], (0, 0)),
    "a file": (PLAIN, PLAIN + "[ $1 != html ] || echo more >>written\n", ["written"], (0, 0)),
    "no file": (PLAIN, PLAIN + "[ $1 != html ] || rm written\n", ["written"], (0, 0)),
    "one file more": (PLAIN, PLAIN + "[ $1 != html ] || echo more >beside\n", ["beside"], (0, 0)),
    "a command that is gone": (PLAIN, UNKNOWN + PLAIN, ["status", "stderr", "stdout", "written"], (0, 0)),
    "a new command": (UNKNOWN + PLAIN, PLAIN, [], (0, 1)),
    "what both refuse": (REFUSED + PLAIN, REFUSED + PLAIN, [], (1, 0)),
}


@mt.variants(*WAYS)
def case_it_is_said_what_differs(way):
    old, new, parts, (refused, unknown) = WAYS[way]
    status, differences, counts = same(program("old", old), program("new", new), "--only", "html")
    mt.equal((status, counts), (1 if parts else 0, (1 - unknown, 1 if parts else 0, refused, unknown)))
    mt.equal([line.split(": ")[:2] for line in differences], [["html -o written T", part] for part in parts])


def case_every_command_of_a_trace_is_asked():
    """What the program has and tests/same does not ask, a move could break unseen."""
    log = os.path.join(mt.scratch("log"), "log")
    asked = program("asked", 'echo "$1" >>%s\n' % log)
    mt.equal(same(asked, asked)[0], 0, "status")
    with open(log, encoding="utf-8") as file:
        heard = set(file.read().split())
    known = set(re.findall(r"(?m)^  (\w+) +", mt.execute([mt.MEMTRACE, "--help"]).out))
    mt.equal(known - NO_READERS - heard, set(), "commands that tests/same does not ask")


mt.main()
