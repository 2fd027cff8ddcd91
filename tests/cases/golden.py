#!/usr/bin/env python3
"""Golden traces of each format version: `memtrace dump` and the independent decoder print the text that is kept.

golden.py --refresh [NAME...] records them anew, for a new format version; the change is a commit of its own.
"""
# timeout: 240
import collections
import difflib
import hashlib
import os
import shutil
import signal
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import golden_traces
import mt

DECODE = os.path.join(mt.TOP, "scripts/decode.py")
LIMIT = 200 << 10


def dump(trace):
    return mt.execute([mt.MEMTRACE, "dump", "--nodes", trace])


def decode(trace):
    return mt.execute([sys.executable, DECODE, "--nodes", trace])


def same_text(done, want):
    mt.equal(done.status, 0, "status of %s" % done)
    difference = list(difflib.unified_diff(want.splitlines(), done.out.splitlines(), "golden", "got", n=0, lineterm=""))
    mt.check(not difference, "%d lines differ: %s" % (len(difference), " | ".join(difference[:8])))


@mt.variants(*((n, how) for n in golden_traces.NAMES for how in ("dump", "decode")))
def case_text(name, how):
    with open(golden_traces.text(name), encoding="utf-8") as file:
        same_text(globals()[how](golden_traces.unpack(name, mt.scratch("golden"))), file.read())


@mt.variants("dump", "decode")
def case_samples(how):
    """Made by tests/lib/samplesfile.py: every kind of subject, three streams."""
    trace = golden_traces.unpack("system", mt.scratch("golden"))
    command = [mt.MEMTRACE, "dump"] if how == "dump" else [sys.executable, DECODE]
    with open(os.path.join(golden_traces.FOLDER, "system.samples"), encoding="utf-8") as file:
        same_text(mt.execute([*command, "--samples", trace]), file.read())


def snapshot_text(trace):
    """What memtrace holders says of it, and what the decoder finds: each item of the snapshot counts."""
    screen = mt.execute([mt.MEMTRACE, "holders", "--no-debug-files", trace])
    decoded = mt.execute([sys.executable, DECODE, "--holders", trace])
    mt.equal((screen.status, decoded.status, decoded.err), (0, 0, ""), "statuses")
    lines = decoded.out.splitlines()
    counts = ["%s %d" % c for c in sorted(collections.Counter(line.split()[0] for line in lines).items())]
    return "\n".join(screen.out.splitlines()[1:] + lines[:1] + counts + ["sha256 " + hashlib.sha256(decoded.out.encode()).hexdigest(), ""])


def case_holders():
    with open(os.path.join(golden_traces.FOLDER, "holders.snapshot"), encoding="utf-8") as file:
        want, got = file.read(), snapshot_text(golden_traces.unpack("holders", mt.scratch("golden")))
    mt.check(got == want, "\n".join(difflib.unified_diff(want.splitlines(), got.splitlines(), "golden", "got", n=0, lineterm="")))


@mt.variants(*((n,) for n in golden_traces.NAMES))
def case_small(name):
    mt.between(1, os.path.getsize(golden_traces.archive(name)) + os.path.getsize(golden_traces.text(name)), LIMIT, "bytes of " + name)


def case_blocks_and_raw_chunks_agree():
    """Killed half-way with its recorder: blocks, and chunks that no block covers."""
    output = os.path.join(mt.scratch("trace"), "t")
    child = subprocess.Popen([mt.program("busy"), "200000", "2000", "300", "3000"], env=mt.shim_env(output, MEMTRACE_LIMIT="64M"),
                             stdout=subprocess.DEVNULL, cwd=mt.scratch())
    trace = mt.Trace(output)
    mt.until(lambda: trace.files(".trace"), "the first block")
    recorder = trace.recorder()
    child.kill()
    if recorder:
        os.kill(recorder, signal.SIGKILL)
    child.wait()
    mt.check(trace.files(".trace") and trace.files(".ring"), "this has not both: %s" % trace.files())
    done = dump(output)
    mt.equal(done.status, 0, "status of %s" % done)
    same_text(decode(output), done.out)


def case_python_program_agrees():
    trace = mt.shimmed([mt.python(), "-c", "import json; kept = [bytearray(100 * i) for i in range(100)]"]).trace.settle()
    done = dump(trace.path)
    mt.equal(done.status, 0, "status of %s" % done)
    same_text(decode(trace.path), done.out)


# ---- recording them ---------------------------------------------------------------------------------------------


KEPT = """
class Cycle: pass
kept = [bytearray(100000) for i in range(9)]
def make(n):
    inside = bytearray(n)
    return lambda: inside
closure, lost = make(70000), Cycle()
lost.itself, lost.payload = lost, bytearray(50000)
import gc; gc.disable()
del lost
"""


def patch(path, offset, size, text):
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(struct.pack("%ds" % size, text))


def scrub(trace):
    """Which machine it was is nobody's business, and no process here must seem to be one of the trace's."""
    if os.path.exists(os.path.join(trace, "samples")):
        os.unlink(os.path.join(trace, "samples"))
    session = os.path.join(trace, "session")
    patch(session, mt.session_offset("boot_id"), 40, b"00000000-0000-0000-0000-000000000000")
    patch(session, mt.session_offset("host"), 64, b"golden")


def record(how):
    """Under a path that is the same on every machine."""
    home = "/tmp/memtrace-golden"
    shutil.rmtree(home, ignore_errors=True)
    os.mkdir(home)
    for file in (mt.SHIM, mt.MEMTRACE, os.path.join(mt.BUILD, "tests/golden/record")):
        shutil.copy(file, home)
    for file in ("libcuda.so.1", "libnvidia-ml.so.1"):
        shutil.copy(os.path.join(mt.BUILD, "standin", file), home)
    env = {"LD_LIBRARY_PATH": home, "MEMTRACE_STANDIN_DIR": home, "MEMTRACE_STANDIN_DEVICES": "1G",
           "PATH": "/usr/bin:/bin", "LD_PRELOAD": home + "/libmemtrace.so", "MEMTRACE_OUTPUT": home + "/trace"}
    command = [home + "/record", how]
    if how == "holders":  # few events beside the snapshot, which is large
        env.update(MEMTRACE_HOLDERS="1", MEMTRACE_RECORD="young", MEMTRACE_STACKS="sample", MEMTRACE_SAMPLE="100K")
        command = ["/usr/bin/python3", "-I", "-S", "-c", KEPT]
    subprocess.run(command, env=env, cwd=home, check=False)
    mt.Trace(home + "/trace").settle()
    return home + "/trace"


def refresh():
    for how in sys.argv[2:] or ("killed", "final", "tree", "devices", "gpu", "holders"):
        trace = record(how)
        scrub(trace)
        golden_traces.pack(how, trace)
        done = dump(trace)
        mt.equal(done.status, 0, "status of %s" % done)
        with open(golden_traces.text(how), "w", encoding="utf-8") as file:
            file.write(done.out)
        if how == "holders":
            with open(os.path.join(golden_traces.FOLDER, "holders.snapshot"), "w", encoding="utf-8") as file:
                file.write(snapshot_text(trace))
        print("%-8s %7d bytes, %d lines" % (how, os.path.getsize(golden_traces.archive(how)), done.out.count("\n")))
    mt.Scratch.remove()


if sys.argv[1:2] == ["--refresh"]:
    refresh()
else:
    mt.main()
