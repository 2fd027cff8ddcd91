"""Programs that make nothing but calls that fail, drawn by a seed; and whether every command reads their traces."""
import os
import re
import shutil
import sys

import fakecuda
import mt

COMMANDS = [["report", "--json"], ["leaks"], ["peak"], ["html", "-o", "/dev/null"], ["timeline", "-q"], ["frag"], ["dump"], ["check"], ["whatif"],
            ["live", "--every", "1"], ["diff"], ["symbolize"], ["list", "--verdict"], ["pack", "-o", "/dev/null"], ["pack", "--redact", "-o", "/dev/null"],
            *(["export", "--format", form] for form in ("folded", "csv", "pprof", "perfetto", "snapshot", "speedscope"))]
READS_NOTHING = {"whatif": 2, "frag": 2, "export snapshot": 2}  # there is no pool of a device in such a trace


def table(name, kinds):
    """Names of the functions in a hook table."""
    with open(os.path.join(mt.TOP, "shim/hooks", name)) as file:
        return re.findall(r"^(?:%s)\((?:[^,()]+, +)?(?:[^,()]+, +)?(\w+), +\(" % kinds, file.read(), re.M)


def run(command, env=None):
    """It lives, and does the same as without the shim."""
    trace = mt.same(command, env=env)
    done = mt.plain(command, env=env)
    mt.equal(done.status, 0, "of %s" % done)
    return trace


def read(trace):
    """Every command reads it."""
    other = os.path.join(mt.scratch("copy"), "t")
    shutil.copytree(trace.path, other)
    for command in COMMANDS:
        out = ["-o", "/dev/null"] if command[-1] in ("pprof", "perfetto", "snapshot") else []
        done = mt.execute([mt.MEMTRACE, *command, *out, trace.path, *([other] if command[0] == "diff" else [])])
        allowed = {0, READS_NOTHING.get(" ".join(w for w in command if w != "--format"), 0)}
        mt.check(done.status in allowed and (done.status == 0 or "no " in done.err), "%s: %s" % (command, done))
        mt.check("event" not in done.err, "%s complains: %s" % (command, done))


def both(trace):
    """As it was written and as it is once it was folded; and the other decoder has the same events."""
    read(trace)
    dump = trace.tool("dump")
    again = mt.execute([sys.executable, os.path.join(mt.TOP, "scripts/decode.py"), trace.path])
    mt.equal((again.status, again.out == dump.out), (0, True), "the other decoder: status, same output")
    folded = os.path.join(mt.scratch("folded"), "t")
    shutil.copytree(trace.path, folded)
    folded = mt.fold(mt.Trace(folded))
    mt.equal([alive(folded, key) for key in ("host", "map")], [alive(trace, key) for key in ("host", "map")], "what lives once it was folded")
    read(folded)


def alive(trace, key):
    return trace.report[key]["live_bytes"], trace.report[key]["live_blocks"]


def host(seed, count):
    """What lives in the program is what lives in it without these calls."""
    still = run([mt.program("fails"), str(seed), "0"])
    trace = run([mt.program("fails"), str(seed), str(count)])
    for key in ("host", "map"):
        mt.equal(alive(trace, key), alive(still, key), "%s, seed %d" % (key, seed))
    both(trace)
    return trace


def cuda(seed, count):
    program = fakecuda.program("failing", source="failing.c")
    trace = run([program, str(seed), str(count)], env={"LD_LIBRARY_PATH": fakecuda.libraries()})
    both(trace)
    return trace


_ascend = None


def ascend(seed, count):
    global _ascend
    if not _ascend:
        _ascend = mt.scratch("acl")
        source = os.path.join(mt.TOP, "tests/cuda/failing.c")
        fakecuda.cc("-shared", "-fPIC", "-DASCEND", "-DLIBRARY", "-Wl,-soname,libascendcl.so", "-o", _ascend + "/libascendcl.so", source)
        fakecuda.cc("-DASCEND", "-o", _ascend + "/failing", source)
    trace = run([_ascend + "/failing", str(seed), str(count)], env={"LD_LIBRARY_PATH": _ascend})
    both(trace)
    return trace
