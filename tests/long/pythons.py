#!/usr/bin/env python3
"""Interpreters that this machine does not have: Python frames of 3.14 from Debian's packages in a root of its own, and of one for aarch64
under qemu; what is said of a program under the Pythons of Debian 12, 13 and sid, and of uv's standalone builds. What they need is downloaded
into the build folder (scripts/pyroot)."""
# timeout: 1800
import glob
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cases"))
import interpreters
import mt
import python as frames


def root(suite, arch, version):
    """The folder that is / to such a Python."""
    mt.need("apt-get")
    folder = os.path.join(mt.BUILD, "pyroot-%s-%s" % (version, arch))
    done = mt.execute([os.path.join(mt.TOP, "scripts/pyroot"), folder, suite, arch, version], timeout=600)
    if done.status != 0:
        mt.skip("Python %s for %s can't be had: %s" % (version, arch, done.err[-200:]))
    return os.path.join(folder, "root")


def check(folder, trace, least):
    want, sites = frames.expected(folder), frames.recorded(trace)
    frames.compare(want, frames.collect((frames.python_frames(s), s["bytes"]) for s in sites))
    mt.check(len(want) >= least, "only %d different stacks" % len(want))
    left = [s for s in sites if any((f["function"] or "").startswith("_PyEval_EvalFrameDefault") for f in s["stack"])]
    mt.check(not left, "evaluators are left in %d stacks" % len(left))


def within(place, *command):
    """Runs it where `place` is / and the folders of this test are in it."""
    mounts = "".join('mkdir -p "$0/%s" && mount --rbind /%s "$0/%s" && ' % ((d,) * 3) for d in (mt.TOP.strip("/"), mt.Scratch.root.strip("/"), "proc", "dev"))
    return mt.execute([mt.need("unshare"), "-m", "sh", "-c", mounts + 'exec chroot "$0" "$@"', place, *command], timeout=300,
                      env=mt.clean_env(PYTHONDONTWRITEBYTECODE=""))


def record(place, version, trace, *arguments):
    done = within(place, "/usr/bin/python" + version, "-c", "import os, sys; os.environ.update(LD_PRELOAD=sys.argv[1], MEMTRACE_OUTPUT=sys.argv[2]); "
                  "os.execv(sys.executable, [sys.executable] + sys.argv[3:])", mt.SHIM, trace.path, *arguments)
    mt.equal(done.status, 0, "status of %s" % done)
    return trace.settle()


def case_3_14():
    """Offsets by what the interpreter says of itself (_Py_DebugOffsets)."""
    mt.need_root()
    place, folder = root("sid", "amd64", "3.14"), mt.scratch()
    check(folder, record(place, "3.14", mt.Trace(os.path.join(folder, "t")), frames.PROGRAM, os.path.join(folder, "log")), 250)


@mt.variants(("bookworm", "3.11"), ("trixie", "3.13"), ("sid", "3.14"))
def case_says_the_same(suite, version):
    """Stripped, with parts of functions elsewhere, and ld.so without symbols. The symbols are looked up where the libraries are."""
    mt.need_root()
    place, trace = root(suite, "amd64", version), mt.Trace(os.path.join(mt.scratch(), "t"))
    within(place, "/usr/bin/python" + version, interpreters.PROGRAM)  # compiles the modules
    record(place, version, trace, interpreters.PROGRAM)
    done = within(place, mt.MEMTRACE, "symbolize", trace.path)
    mt.equal(done.status, 0, "status of %s" % done)
    interpreters.check(trace)


def case_standalone():
    """uv's builds: the interpreter in the executable, made by clang, laid out by its profile."""
    found = glob.glob(os.path.expanduser("~/.local/share/uv/python/cpython-3.*-linux-x86_64-gnu/bin/python3"))
    if not found:
        mt.skip("uv has installed no Python here")
    for python in found:
        interpreters.check(mt.shimmed([python, interpreters.PROGRAM]).trace.settle())


def case_aarch64():
    qemu, cc = mt.need("qemu-aarch64"), mt.need("aarch64-linux-gnu-gcc")
    place, folder, build = root("trixie", "arm64", "3.13"), mt.scratch(), os.path.join(mt.BUILD, "aarch64")
    shim = os.path.join(build, "libmemtrace.so")
    mt.equal(mt.execute(["make", "-C", mt.TOP, "CC=" + cc, "B=" + build, shim], timeout=600).status, 0, "status of make")
    trace = mt.Trace(os.path.join(folder, "t"))
    names = [n for n in mt.execute([mt.python(), frames.PROGRAM, "--list"]).out.split() if n != "forks"]  # too slow for its children
    env = {"LD_PRELOAD": shim, "MEMTRACE_OUTPUT": trace.path, "PYTHONHOME": os.path.join(place, "usr"), "PYTHONDONTWRITEBYTECODE": "1"}
    given = [word for key, value in env.items() for word in ("-E", "%s=%s" % (key, value))]
    done = mt.execute([qemu, "-L", place] + given + [os.path.join(place, "usr/bin/python3.13"), frames.PROGRAM, os.path.join(folder, "log")] + names,
                      timeout=500)
    mt.equal(done.status, 0, "status of %s" % done)
    check(folder, trace, 200)


mt.main()
