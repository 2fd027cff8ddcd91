#!/usr/bin/env python3
"""Other processes on an Ascend device, which nobody lists: what was used before we began is theirs."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import ascend
import mt
import screen

GIB, CONTEXT = 1 << 30, 64 << 20

# Allocates so many GiB each; then waits if it is told to.
PROGRAM = """
import ctypes, sys
acl = ctypes.CDLL("libascendcl.so")
p = ctypes.c_void_p()
codes = [acl.aclrtSetDevice(0)] + [acl.aclrtMalloc(ctypes.byref(p), ctypes.c_size_t(int(n) << 30), 0) for n in sys.argv[2:]]
print(*codes, flush=True)
if sys.argv[1] == "wait":
    sys.stdin.read()
sys.exit(codes[-1] != 0)
"""


def command(*words):
    return [mt.python(), "-c", PROGRAM, *map(str, words)]


def beside(neighbour, *sizes):
    """A traced program's trace; an untraced one has held `neighbour` GiB of the 64 before, unless that is 0."""
    env = mt.clean_env(**ascend.settings(devices="64G", MEMTRACE_STANDIN_CONTEXT=str(CONTEXT),
                                         LD_LIBRARY_PATH=os.path.dirname(ascend.library(shape="layered"))))
    other = subprocess.Popen(command("wait", neighbour), env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) if neighbour else None
    try:
        if other:
            mt.equal(other.stdout.readline().split(), ["0", "0"], "what the neighbour got")
        done = mt.shimmed(command("go", *sizes), env=env)
    finally:
        if other:
            other.communicate(timeout=60)
    mt.equal(done.out.split(), ["0"] * len(sizes) + ["207001"], "what the traced one got")
    return done.trace


def case_what_was_used_before_is_theirs():
    trace = beside(20, 30, 20)
    report = trace.report
    device = report["devices"][0]
    ledger = device["ledger"]
    # both contexts are in what is used; up to 1 GiB of it is left for ours
    mt.between(20 * GIB + 2 * CONTEXT - GIB, ledger["other_processes"], 20 * GIB, "other processes")
    mt.equal(sum(ledger[k] for k in ("pool_allocated", "pool_free", "other_own", "other_processes", "free", "unexplained")), ledger["total"])
    mt.between(0, ledger["unexplained"], GIB, "unexplained")
    others = [p for p in device["processes"] if not p["traced"]]
    mt.equal([(p["pid"], p["name"], p["before"], p["bytes"]) for p in others], [(0, "in use before", True, ledger["other_processes"])])
    verdict = report["verdicts"][0]
    mt.equal((verdict["kind"], verdict["bytes"]), ("other_process", ledger["other_processes"]))
    mt.check("before we began" in verdict["evidence"], verdict["evidence"])
    seen = screen.Screen(trace.tool("report").out)
    mt.check("use when we began" in seen.text, "the screen: %s" % seen.text)


def case_alone():
    """A context is no neighbour."""
    report = beside(0, 40, 30).report
    mt.equal((report["devices"][0]["ledger"]["other_processes"], report["devices"][0]["ledger"]["unexplained"]), (None, CONTEXT))
    mt.check("other_process" not in [v["kind"] for v in report["verdicts"]], report["verdicts"])


mt.main()
