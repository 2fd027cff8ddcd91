#!/usr/bin/env python3
"""A Debian with nothing but python3 and python3-venv: pip installs the wheel, a program is recorded, reported, and has its page, in less
than two minutes and without a compiler."""
# serial
# timeout: 3600
import glob
import os
import shutil
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import fresh
import mt

PROGRAM = """
import json
def load():
    return [json.loads('{"n": %d, "text": "%s"}' % (n, "x" * 1000)) for n in range(50000)]
rows = load()
print(len(rows))
"""
STEPS = ("python3 -m venv v && v/bin/pip install --no-index -q /root/libmemtrace-*.whl", "v/bin/memtrace run -o t -- v/bin/python train.py",
         "v/bin/memtrace report t", "v/bin/memtrace html -o t.html t && head -c 15 t.html")


def case_two_minutes():
    wheels = glob.glob(os.path.join(mt.BUILD, "wheel", "libmemtrace-*_%s.whl" % os.uname().machine))
    if not wheels:
        mt.skip("no wheel; make wheel builds it")
    with fresh.fresh("bookworm", ("python3", "python3-venv", "ca-certificates")) as root:
        shutil.copy(wheels[0], root.path + "/root/")
        with open(root.path + "/root/train.py", "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        status, text = root.run("command -v cc gcc clang tcc make", 60)
        mt.check(status != 0 and not text, "a compiler is there: %s" % text)
        said, begin = [], time.monotonic()
        for step in STEPS:
            status, text = root.run(step, 300, place="/root")
            mt.equal(status, 0, "status of %s: %s" % (step, text[-800:]))
            said.append(text)
        seconds = time.monotonic() - begin
        mt.say("# %.0f s" % seconds)
        mt.check("50000\n" in said[1] and "HOST" in said[1] and "train.py:4 load" in said[2], said)
        mt.check(said[3].lower().endswith("<!doctype html>"), said[3])
        mt.check(seconds < 120, "%.0f s" % seconds)


mt.main()
