#!/usr/bin/env python3
"""The shim's dlsym is the C library's for everyone but the names of its tables: same results, same errors, same caller."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt  # noqa: E402
from fakecuda import *  # noqa: E402,F403


def case_without_libraries():
    """A program that only asks whether CUDA is there is told what it is told without us, in the same words; and about other names."""
    path = os.path.join(mt.scratch("absent"), "absent")
    cc("-o", path, os.path.join(SOURCES, "absent.c"), "-ldl")
    trace = mt.same([path])
    mt.equal(raw_events(trace), [])


def pending(*arguments):
    folder = libraries()
    return program("-".join(("pending", *(a.strip("-") for a in arguments))), *arguments, folder + "/libcuda.so.1",
                   source="pending.c")


def case_pending_error():
    """What dlopen failed for can still be asked after the first call of a hook, which looks its real function up."""
    out, trace = run([pending()])
    mt.check("libnot-there.so" in out, out)
    mt.equal([e[2] for e in events(trace)], ["cuMemAlloc_v2", "cuMemFree_v2"])


def case_under_dlopen():
    """A library's constructor waits for a thread that makes the first call of a hook: nothing is waited for that dlopen holds."""
    library = pending("-DLIBRARY", "-shared", "-fPIC")
    out, trace = run([pending(), library])
    mt.equal(out, "constructor 0 1\n")
    mt.equal([(e[2], e[4]) for e in events(trace)], [("cuMemAlloc_v2", 300)])


def weak(name, *libraries_):
    """tests/cuda/weak.c and its library, linked with these."""
    folder = libraries()
    path = os.path.join(folder, name)
    source = os.path.join(SOURCES, "weak.c")
    cc("-shared", "-fPIC", "-DLIBRARY", "-o", path + ".so", source, "-Wl,-z,now,-z,relro")
    cc("-fPIE", "-pie", "-o", path, source, "-Wl,--no-as-needed", path + ".so", *libraries_)
    return path


def case_weak_references():
    """`if (cuMemAlloc_v2)` says what it says without us, where no library has the function, and where one has."""
    out, trace = run([weak("weak-without")])
    mt.equal(out, "NULL NULL NULL NULL NULL\nNULL NULL there\n" * 2)
    mt.equal(raw_events(trace), [])
    out, trace = run([weak("weak-with", libraries() + "/libcuda.so.1")])
    mt.equal(out, "there there there NULL NULL\nthere NULL there\n0 0\n" * 2)
    mt.equal([e[2] for e in events(trace)], ["cuMemAlloc_v2", "cuMemFree_v2"] * 2)


def case_weak_reference_loaded_later():
    """There it can't be undone in time: the call says that there is no device."""
    library = weak("weak-later") + ".so"
    done = mt.shimmed([mt.python(), "-c", "import ctypes; ctypes.CDLL(%r).ask_in_library()" % library])
    mt.equal((done.status, done.out.splitlines()[-1:]), (0, ["100 100"]))
    mt.equal(raw_events(done.trace), [])


def between():
    path = os.path.join(libraries(), "between.so")
    if not os.path.exists(path):
        cc("-shared", "-fPIC", "-o", path, os.path.join(SOURCES, "between.c"), "-ldl")
    return path


def wrapped(*preload):
    path = program("next", libraries() + "/libcuda.so.1", source="next.c")
    env = {"LD_LIBRARY_PATH": libraries(), "MEMTRACE_OUTPUT": os.path.join(mt.scratch("trace"), "t"), "LD_PRELOAD": " ".join(preload)}
    return mt.execute([path], env=mt.clean_env(**env)), mt.Trace(env["MEMTRACE_OUTPUT"])


def case_next():
    """Another preloaded library asks for the next function after itself and gets it, wherever it stands: after us, where our wrapper calls
    it, or before us, where it calls our wrapper. Either way the call is one event."""
    want, _ = wrapped(between())
    mt.equal((want.status, want.out), (0, "rand wrapped\nallocate 0\nfree 0\nbetween: 1\n"))
    for order in ((mt.SHIM, between()), (between(), mt.SHIM)):
        got, trace = wrapped(*order)
        mt.compare(want, got)
        mt.equal([(e[0], e[2], e[4]) for e in events(trace.intact())],
                 [("device-alloc", "cuMemAlloc_v2", 70), ("device-free", "cuMemFree_v2", 0)])


def case_dlsym_of_another():
    """A preloaded library has a dlsym of its own. Behind us it is asked by way of ours; before us it calls ours, and both start."""
    command, other = [mt.program("asks")], mt.program("libanswers.so")
    want = mt.plain(command, preload=[other])
    mt.equal((want.status, want.out), (0, "answers 4242\ncuMemAlloc_v2 4242\ncuMemFree_v2 -1\n"))
    mt.same(command, preload=[other])
    output = os.path.join(mt.scratch("trace"), "t")
    mt.compare(want, mt.execute(command, env=mt.clean_env(LD_PRELOAD=other + " " + mt.SHIM, MEMTRACE_OUTPUT=output)))
    mt.check(mt.Trace(output).intact().host["allocations"], "nothing recorded")


mt.main()
