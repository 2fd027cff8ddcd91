#!/usr/bin/env python3
"""Holders in programs of gevent: what variables of greenlets that wait hold, and that nothing changes for the program."""
# timeout: 1800
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cases"))
import holders
import mt

PROGRAM = """
import ctypes, gc, os, sys
import gevent
snapshot = ctypes.CDLL(os.environ["HOLDERS"]).memtrace_holders if "HOLDERS" in os.environ else lambda name: None
gc.disable()
def worker(n):
    mine = bytearray(300_000 + n)
    inner(n)
    return len(mine)
def inner(n):
    own = bytearray(200_000 + n)
    gevent.sleep(0.3)
    return own
def let_go():
    gone = bytearray(700_000)
    del gone
    gevent.sleep(0.3)
def asks():
    gevent.sleep(0.1)
    now = lambda: [gc.get_count()[1:], len(gc.get_objects()), [sys.getrefcount(w) for w in workers]]
    now()
    before = now()
    snapshot(b"greenlets")
    for _ in range(5): pass
    after = now()
    return after[0] == before[0], after[1] - before[1], after[2] == before[2]
workers = [gevent.spawn(worker, i) for i in range(3)] + [gevent.spawn(let_go)]
print(gevent.spawn(asks).get(), [w.get() for w in workers])
"""


@mt.variants(*holders.pythons())
def case_gevent(version, python):
    venv = os.path.join(mt.scratch(), version)
    for command in ([python, "-m", "venv", venv], [venv + "/bin/pip", "-q", "install", "--only-binary", ":all:", "gevent"]):
        if mt.execute(command).status:
            mt.skip("gevent is not to be had for %s" % version)
    plain = mt.plain([venv + "/bin/python", "-c", PROGRAM])
    done = holders.record(venv + "/bin/python", "-c", PROGRAM)
    mt.equal((done.out, done.err), (plain.out, plain.err), "%s: what it says" % version)
    rows = holders.heap_of(done.trace.settle())[1]["holders"]
    for function, variable, size in (("worker", "mine", 300_000), ("inner", "own", 200_000)):
        found = [h for h in rows if re.fullmatch(r"%s of %s \(<string>:\d+\) \(bytearray\)" % (variable, function), "%s (%s)" % (h["path"], h["type"]))]
        mt.equal(len(found), 3, "%s: rows of %s of %s in %s" % (version, variable, function, [h["path"] for h in rows[:20]]))
        mt.between(3 * size, sum(h["bytes"] for h in found), 3 * size + 1000, "%s: bytes of %s" % (version, variable))
    mt.check(not [h for h in rows if h["bytes"] >= 700_000], "%s: what was let go of is held: %s" % (version, rows[:3]))


if __name__ == "__main__":
    mt.main()
