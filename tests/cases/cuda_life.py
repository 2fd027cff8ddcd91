#!/usr/bin/env python3
"""CUDA where programs surprise: at exit, in forked children, two majors of the runtime in one process, libraries that come and go,
threads that block every signal. On the fake libraries of tests/cuda, whose log says which function was really called."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt  # noqa: E402
from fakecuda import *  # noqa: E402,F403


def life(what, *arguments, **env):
    folder = libraries()
    path = program("life", folder + "/libcuda.so.1", folder + "/libcudart.so.13", "-rdynamic", source="life.c")
    log = os.path.join(mt.scratch("log"), "log")
    env.update(LD_LIBRARY_PATH=folder, FAKE_LOG=log)
    got = mt.shimmed([path, what, *arguments], env=env)
    mt.equal(got.status, 0, "status %s" % got)
    got.trace.intact()
    if not os.path.exists(log):
        return got.out, got.trace, []
    with open(log) as file:
        return got.out, got.trace, [line.split() for line in file]


def plugin():
    folder = libraries()
    path = os.path.join(folder, "plugin.so")
    if not os.path.exists(path):
        cc("-shared", "-fPIC", "-o", path, os.path.join(SOURCES, "plugin.c"), folder + "/libcudart.so.12")
    return path


def case_exit():
    """atexit, on_exit and destructors free after the shim's own; one block is never freed."""
    out, trace, log = life("exit")
    mt.equal([c[0] for c in calls(out)], [10] * 4 + [11] * 3)
    compare(expected(out), events(trace))
    mt.equal([line[1] for line in log if line[0] != "libcuda.so.1"], ["cudaMalloc"] * 4 + ["cudaFree"] * 3, "really called")


def case_fork():
    """A child frees what it inherited: the driver refuses, and so it is undone. Its own block is on a device it records anew."""
    out, trace, _ = life("fork")
    rows = raw_events(trace)
    mt.equal(len(trace.processes), 2)
    parent, child = ([row for row in rows if row["process"] == n] for n in (0, 1))
    mt.equal([(r["record"], r["size"]) for r in parent],
             [("device-alloc", 100), ("device-alloc", 101), ("device-free", 0), ("device-free", 0)])
    mt.equal([(r["record"], r["size"]) for r in child],
             [("device-free", 0), ("device-undo", 0), ("device-alloc", 102), ("device-free", 0)])
    mt.equal({r["ordinal"] for r in rows}, {0})
    mt.equal(child[0]["addr"], parent[0]["addr"])


def case_two_majors():
    """Linked, by RTLD_DEFAULT and by handle: each call reaches the library that the caller meant, and is one event."""
    out, trace, log = life("majors", plugin())
    mt.check("PLUGIN plugin_linked 0\nPLUGIN plugin_default 0\n" in out, out)
    mt.equal([line[0] for line in log if line[1] == "cudaMalloc"],
             ["libcudart.so.13", "libcudart.so.12", "libcudart.so.13", "libcudart.so.12", "libcudart.so.13", "libcudart.so.11.0"])
    mt.equal([line[0] for line in log if line[1] == "cudaFree"],
             ["libcudart.so.12", "libcudart.so.13", "libcudart.so.12", "libcudart.so.13", "libcudart.so.11.0", "libcudart.so.13"])
    mt.equal([(e[0], e[2], e[4]) for e in events(trace)],
             [("device-alloc", "cudaMalloc", 100)] +
             [row for n in (300, 301, 200, 200, 200) for row in (("device-alloc", "cudaMalloc", n), ("device-free", "cudaFree", 0))] +
             [("device-free", "cudaFree", 0)])


def case_scope_of_a_plugin():
    """RTLD_DEFAULT in a library that was loaded with RTLD_LOCAL: what it links is found, though the program doesn't see it."""
    script = "import ctypes\nlibrary = ctypes.CDLL(%r)\nprint(library.plugin_default(40), library.plugin_linked(41))" % plugin()
    got = mt.shimmed([mt.python(), "-c", script], env={"LD_LIBRARY_PATH": libraries()})
    mt.equal((got.status, got.out), (0, "0 0\n"), "said %r" % got.err)
    mt.equal([(e[0], e[2], e[4]) for e in events(got.trace.intact())],
             [row for n in (40, 41) for row in (("device-alloc", "cudaMalloc", n), ("device-free", "cudaFree", 0))])


def case_reload():
    """A library that is unloaded and loaded again is found anew."""
    out, trace, log = life("reload", plugin())
    mt.equal(out.count("PLUGIN plugin_linked 0"), 3, out)
    mt.equal(out.count("PLUGIN plugin_default 0"), 3, out)
    mt.equal([e[4] for e in events(trace) if e[0] == "device-alloc"], [300, 400, 301, 401, 302, 402])


def case_masked_thread():
    out, trace, _ = life("masked")
    compare(expected(out), events(trace))


def case_longjmp():
    """A call that a signal handler left for good doesn't hide those that follow."""
    out, trace, _ = life("longjmp")
    compare(expected(out), events(trace))


def case_weak():
    """A weak reference to a function that the runtime doesn't have stays NULL."""
    out, _, _ = life("weak")
    mt.equal(out, "weak NULL\n")


def case_threads():
    """Look-ups and calls in some threads while another one loads and unloads a library that links the runtime."""
    path = program("stress", libraries() + "/libcuda.so.1", source="stress.c")
    got = mt.shimmed([path, plugin()], env={"LD_LIBRARY_PATH": libraries()})
    mt.equal((got.status, got.out), (0, "16150 blocks, 0 wrong\n"), "said %r" % got.err[-300:])
    kinds = [e[0] for e in events(got.trace.intact())]
    mt.equal((kinds.count("device-alloc"), kinds.count("device-free"), len(kinds)), (16150, 16150, 32300), "events")


def case_nvidias_runtime():
    """NVIDIA's own runtime, static and dynamic, of both majors: it asks the driver for hundreds of functions, in its own ways. Neither the
    fake nor the stand-in has the tables it wants after that, so it ends with an error; the same one with the shim."""
    cuda = os.path.join(mt.VENV, "cuda")
    majors = {"13": cuda + "/13/nvidia/cu13", "12": cuda + "/12/nvidia/cuda_runtime"}
    if not os.path.exists(majors["12"] + "/lib/libcudart_static.a"):
        mt.skip("NVIDIA's runtimes are not installed (scripts/setup check)")
    script = "import ctypes, sys; l, p = ctypes.CDLL(sys.argv[1]), ctypes.c_void_p(); " \
             "print(l.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(9)), l.cudaGetLastError(), l.cudaFree(None), l.cudaDeviceReset())"
    commands = []
    for major, home in majors.items():
        path = os.path.join(libraries(), "runtime-" + major)
        cc("-o", path, os.path.join(SOURCES, "runtime.c"), "-isystem" + home + "/include", "-isystem" + majors["13"] + "/include",
           home + "/lib/libcudart_static.a", "-ldl", "-lrt", "-lpthread")
        commands += [[path], [mt.python(), "-c", script, "%s/lib/libcudart.so.%s" % (home, major)]]
    for folder in ("/nonexistent", os.path.join(mt.BUILD, "standin")):
        for command in commands:
            env = {"LD_LIBRARY_PATH": folder, "MEMTRACE_STANDIN_DIR": mt.scratch("standin")}
            mt.compare(mt.plain(command, env=env), mt.shimmed(command, env=env))


mt.main()
