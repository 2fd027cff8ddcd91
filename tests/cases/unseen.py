#!/usr/bin/env python3
"""Whoever is not recorded, or only in part, is said, with the reason; such a run is neither complete nor healthy."""
import functools
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt
from fakecuda import cc

NOBODY = "65534"


@functools.lru_cache(None)
def static():
    """A static program that takes 32 MiB, where somebody else can run it."""
    folder = mt.scratch("static")
    os.chmod(folder, 0o755)
    os.chmod(os.path.dirname(folder), 0o755)
    with open(os.path.join(folder, "large.c"), "w") as file:
        file.write("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
                   "int main(void) { puts(memset(malloc(32 << 20), 1, 32 << 20) ? \"large\" : \"\"); return 0; }\n")
    path = os.path.join(folder, "large")
    cc("-static", "-o", path, path + ".c")
    return path


def said(trace, path, why, words):
    """One process, by name and reason, wherever a trace is summed up."""
    losses = trace.settle().report["losses"]
    mt.equal([(os.path.basename(u["path"]), u["why"]) for u in losses["unrecorded"]], [(os.path.basename(path), [why])])
    mt.equal((losses["unrecorded_processes"], losses["unrecorded_why"]), (1, [why]))
    text = trace.summary()
    mt.check("INCOMPLETE" in text and "%s (%s" % (os.path.basename(path), words) in text, "the report does not say it: %s" % text)
    mt.check("healthy" not in text and "no trouble" not in text, text)
    mt.equal([t["unrecorded_processes"] for t in trace.json("list")["traces"]], [1])
    mt.check("incomplete" in trace.tool("list").out, "the list does not say it")
    mt.equal(trace.tool("check").status, 1, "status of check")


def nothing(trace):
    losses = trace.settle().report["losses"]
    mt.equal((losses["unrecorded_processes"], losses["unrecorded_why"], losses["unrecorded"]), (0, [], []))


@mt.variants("exec %s", "%s; true", "(%s); true", "env %s; true")
def case_static(script):
    """As the shell's next image, of its vfork child, of a forked child, and of a program that looks it up."""
    said(mt.same(["sh", "-c", script % static()], intact=False), static(), "static", "static or of 32 bits")


@mt.variants("spawn", "spawnp", "subprocess", "execvpe")
def case_static_by_python(how):
    folder, name = os.path.split(static())
    command = {"spawn": "os.waitpid(os.posix_spawn(%r, ['x'], os.environ), 0)" % static(),
               "spawnp": "os.waitpid(os.posix_spawnp(%r, ['x'], os.environ), 0)" % name,
               "subprocess": "import subprocess; subprocess.run([%r])" % static(),
               "execvpe": "os.execvpe(%r, ['x'], os.environ)" % name}[how]
    path = folder + ":" + os.environ.get("PATH", "")
    said(mt.same([mt.python(), "-c", "import os; " + command], env={"PATH": path}, intact=False), static(), "static", "static")


def case_script_of_a_static_interpreter():
    path = os.path.join(mt.scratch("script"), "script")
    with open(path, "w") as file:
        file.write("#!%s -x\n" % static())
    os.chmod(path, 0o755)
    said(mt.same(["sh", "-c", path + "; true"], intact=False), path, "static", "static")


def case_environment():
    """A list without us is said; an empty one is somebody's wish."""
    said(mt.same(["sh", "-c", "env -i /bin/true; true"], intact=False), "/bin/true", "environment", "started without LD_PRELOAD")
    nothing(mt.same(["sh", "-c", "LD_PRELOAD= /bin/true; true"]))


def case_gains_rights():
    mt.need_root()
    folder = mt.scratch("setuid")
    path = os.path.join(folder, "true")
    mt.execute(["cp", "/bin/true", path])
    os.chown(path, int(NOBODY), int(NOBODY))
    os.chmod(path, 0o4755)
    said(mt.same(["sh", "-c", path + "; true"], intact=False), path, "secure", "it gains rights")


def case_gives_up_rights():
    """Capabilities live until exec: the next image can't write to the trace."""
    mt.need_root()
    setpriv = mt.need("setpriv")
    trace = mt.same(["sh", "-c", "%s --reuid=%s --clear-groups /bin/echo x; true" % (setpriv, NOBODY)], intact=False)
    said(trace, "/bin/echo", "rights", "no rights to the trace directory")


def case_su():
    mt.need_root()
    said(mt.same([mt.need("su"), "-s", "/bin/sh", "nobody", "-c", "true"], intact=False), "/bin/sh", "rights", "no rights")


def case_behind_another_allocator():
    """What libc makes of another function is made of that malloc, as without us: ls would crash of reallocarray."""
    jemalloc = mt.library("libjemalloc.so.2")
    output = os.path.join(mt.scratch("trace"), "t")
    want = mt.execute(["ls", "-l", "/usr"], env=mt.clean_env(LD_PRELOAD=jemalloc))
    got = mt.execute(["ls", "-l", "/usr"], env=mt.clean_env(LD_PRELOAD=jemalloc + " " + mt.SHIM, MEMTRACE_OUTPUT=output))
    mt.compare(want, got)
    mt.equal(got.status, 0, "ls behind another allocator")
    said(mt.Trace(output), jemalloc, "behind", "its malloc is first")
    nothing(mt.same(["ls", "-l", "/usr"], preload=[jemalloc]))


def case_loaded_late():
    """The program is hooked then, and recorded from that moment on: tests/cases/attach.py."""
    output = os.path.join(mt.scratch("trace"), "t")
    done = mt.execute([mt.python(), "-c", "import ctypes; ctypes.CDLL(%r); x = [b'x' * (100000 + i) for i in range(100)]" % mt.SHIM],
                      env=mt.clean_env(MEMTRACE_OUTPUT=output))
    mt.equal((done.status, done.err), (0, ""))
    nothing(mt.Trace(output))
    mt.check(mt.Trace(output).processes[0]["recorded"]["attached"], "it does not say that the library came later")


def case_who_is_recorded():
    """Programs in every way that begins one that is recorded, and calls that fail, leave no such note."""
    script = ("import os, subprocess\nsubprocess.run(['sh', '-c', 'true; /bin/true; $(command -v env) true'])\n"
              "os.waitpid(os.posix_spawn('/bin/true', ['x'], os.environ), 0)\n"
              "for path in ('/no/such', %r):\n  try: os.execv(path, ['x'])\n  except OSError: pass\n"
              "os.execvp('true', ['x'])" % os.path.dirname(static()))
    nothing(mt.same([mt.python(), "-c", script]))
    nothing(mt.same(["/lib64/ld-linux-x86-64.so.2", "/bin/true"]) if os.path.exists("/lib64/ld-linux-x86-64.so.2") else mt.same(["true"]))


def case_failed_exec():
    """It was about to become a static program, and goes on."""
    bad = os.path.join(mt.scratch("bad"), "bad")
    with open(static(), "rb") as file, open(bad, "wb") as out:
        out.write(file.read(4096)) # what it begins with is whole
    script = "import os\ntry: os.execv(%r, ['x'])\nexcept OSError: print('failed')" % bad  # not executable
    nothing(mt.same([mt.python(), "-c", script]))


mt.main()
