#!/usr/bin/env python3
"""Report, its JSON, Markdown and findings for CI, leaks, live, the page, diff and peak --fit are of one opinion about what grows: of the golden
traces, of programs of each kind of growth, and of generated ones with devices, some of each. Of all traces that tests leave: tests/long/agreement.py."""
# timeout: 600
import os
import sys
import tarfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../battery"))
import agree
import cases
import mt
import strangers

SHORT = {run.name: run for run in strangers.programs() if run.short and run.pause == "0"}
GOLDEN = sorted(name.split(".")[0] for name in os.listdir(os.path.join(mt.TOP, "tests/golden")) if name.endswith(".tar.gz"))


@mt.variants(*list(SHORT)[::3], long=[name for i, name in enumerate(SHORT) if i % 3])
def case_strangers(name):
    if not strangers.there(SHORT[name]):
        mt.skip("%s is not installed" % " ".join(SHORT[name].needs))
    agree.check_all(strangers.record(SHORT[name]))


@mt.variants(*GOLDEN)
def case_golden(name):
    path = os.path.join(mt.scratch("golden"), "t")
    with tarfile.open(os.path.join(mt.TOP, "tests/golden", name + ".tar.gz")) as archive:
        archive.extractall(path, filter="data")
    agree.check_all(path, page=False)


@mt.variants(*list(cases.KINDS)[::2], long=list(cases.KINDS)[1::2])
def case_devices(kind):
    path = os.path.join(mt.scratch("device"), "t")
    cases.make(path, kind, 301, True)
    agree.check_all(path, page=False)


def case_finds_what_rose():
    """The check itself: a rise that goes on is found, one that has stopped or comes and goes is not."""
    def points(low, above=0):
        return [{"time_s": i / 10, "low_bytes": int(v * 1e6), "high_bytes": int((v + above) * 1e6)} for i, v in enumerate(low)]
    steady, stopped, waves = list(range(100)), list(range(50)) + [50] * 50, [i % 10 for i in range(100)]
    mt.check(agree.rose(points(steady))[0] > 0.3e8, "a steady rise is not found")
    mt.check(agree.rose(points(steady + [5]))[0] > 0.3e8, "a rise before the final fall is not found")
    mt.equal(agree.rose(points(stopped))[0], 0, "what has stopped")
    mt.equal(agree.rose(points(waves, 5))[0], 0, "what comes and goes")


mt.main()
