#!/usr/bin/env python3
"""--format sarif and junit, read by programs of others: models generated from the schema of SARIF, sarif-tools, junitparser."""
# timeout: 600
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../battery"))
import cases
import mt
import reach

CHECK_SARIF = """
import sys
from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as Sarif
model = Sarif.model_validate_json(open(sys.argv[1]).read()) if hasattr(Sarif, "model_validate_json") else Sarif.parse_raw(open(sys.argv[1]).read())
print(len(model.runs[0].results), sum(r.level.value == "error" for r in model.runs[0].results))
"""
CHECK_JUNIT = """
import sys, junitparser
xml = junitparser.JUnitXml.fromfile(sys.argv[1])
(suite,) = list(xml)
print(sum(1 for case in suite if case.result or case.system_out), suite.failures)
assert suite.failures == sum(any(isinstance(r, junitparser.Failure) for r in case.result) for case in suite)
"""


def traces():
    folder = mt.scratch("battery")
    kinds = ("leak", "capacity", "host_leak")
    for kind in kinds:
        cases.make(os.path.join(folder, kind), kind, 301, True)
    return [os.path.join(folder, kind) for kind in kinds]


def written(form, words):
    done = mt.execute([mt.MEMTRACE, words[0], "--format", form, *words[1:]], env=mt.clean_env())
    path = os.path.join(mt.scratch("ci"), "out." + form)
    with open(path, "w", encoding="utf-8") as file:
        file.write(done.out)
    return path


def case_others_read_them():
    python = reach.python("pydantic_sarif", "junitparser", "sarif")
    paths = traces()
    for words in [[command, *limits, path] for path in paths for command, limits in (("report", ()), ("leaks", ("--fail-over", "1M,1K/s,1K/step")))] + \
            [["diff", "--fail-over", "1M", paths[0], paths[-1]]]:
        github = mt.execute([mt.MEMTRACE, words[0], "--format", "github", *words[1:]], env=mt.clean_env()).out.splitlines()
        want = "%d %d\n" % (len(github), sum(line.startswith("::error ") for line in github))
        for form, script in (("sarif", CHECK_SARIF), ("junit", CHECK_JUNIT)):
            done = mt.execute([python, "-c", script, written(form, words)])
            mt.equal((done.status, done.out), (0, want), "%s of %s: %s" % (form, words, done.err[-800:]))
        out = os.path.join(mt.scratch("ci"), "summary.txt")
        done = mt.execute([python, "-m", "sarif", "summary", "--output", out, written("sarif", words)])
        mt.equal(done.status, 0, "sarif-tools: %s" % done)
        with open(out, encoding="utf-8") as file:
            mt.check("error: %s" % want.split()[1] in file.read(), "what sarif-tools sums up of %s" % words)


mt.main()
