"""Wheels: those of `make wheel`, as in a prefix, and one in a fresh environment of every Python that is found."""
import functools
import glob
import json
import os
import re
import zipfile

import mt

PROGRAM = r"""
import glob, libmemtrace, os, time
assert libmemtrace.loaded()
def hold(n):
    return [bytearray(1 << 20) for _ in range(n)]
kept = hold(80)
def recorder():
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as file:
                if b"\0record\0" + os.environ["MEMTRACE_OUTPUT"].encode() in file.read():
                    return True
        except OSError:
            pass
end = time.monotonic() + 60
while not recorder() and time.monotonic() < end:
    time.sleep(0.05)
    bytearray(1000)
libmemtrace.step(1)
print("recorded")
"""


def wheel(machine):
    found = glob.glob(os.path.join(mt.BUILD, "wheel", "libmemtrace-*_%s.whl" % machine))
    if not found:
        mt.skip("no wheel for %s; make wheel builds it" % machine)
    mt.equal(len(found), 1, "wheels for %s" % machine)
    return found[0]


def here():
    return wheel(os.uname().machine)


@functools.lru_cache(None)
def unpacked(machine):
    """As in a prefix."""
    folder = mt.scratch("unpacked")
    with zipfile.ZipFile(wheel(machine)) as archive:
        for name in archive.namelist():
            part = re.sub(r"^libmemtrace-[^/]*\.data/(data/|scripts(?=/))", lambda m: "" if m[1] == "data/" else "bin", name)
            path = os.path.join(folder, part)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(archive.read(name))
            os.chmod(path, archive.getinfo(name).external_attr >> 16)
    return folder


def pythons():
    """One of each version: those in PATH, and that of the tests' environment."""
    names = [path for folder in os.environ["PATH"].split(":") for path in sorted(glob.glob(os.path.join(folder, "python3*"))) if re.search(r"/python3(\.\d+)?$", path)]
    found = {}
    for path in [*names, mt.python()]:
        done = mt.execute([path, "-c", "import sys, venv; print(sys.version_info[:2])"])
        if done.status == 0:
            found.setdefault(done.out, path)
    return sorted(found.values())


def pip(venv, *words):
    done = mt.execute([mt.python(), "-m", "pip", "--python", os.path.join(venv, "bin/python"), *words], env=mt.clean_env(PIP_DISABLE_PIP_VERSION_CHECK="1"))
    mt.equal(done.status, 0, "status of pip: %s" % done)
    return done.out


def files_in(folder):
    return {os.path.relpath(os.path.join(d, f), folder) for d, _, names in os.walk(folder) for f in names
            if not f.endswith(".pyc") and not os.path.islink(os.path.join(d, f))}


def every_python(path, libraries):
    """Installs it in a fresh environment of each, records there in both ways, and takes it out again. `libraries`: what --version says of
    those that the program needs."""
    tried = 0
    for python in pythons():
        venv = os.path.join(mt.scratch("venv"), "v")
        mt.equal(mt.execute([python, "-m", "venv", "--without-pip", venv]).status, 0, "status of venv")
        before = files_in(venv)
        pip(venv, "install", "--no-index", "--no-deps", path)
        mt.check({"bin/memtrace", "lib/libmemtrace.so", "share/man/man1/memtrace.1"} <= files_in(venv), sorted(files_in(venv) - before))
        records(venv, libraries)
        tried += 1
        pip(venv, "uninstall", "-y", "libmemtrace")
        mt.equal(files_in(venv) - before, set(), "left by pip uninstall")
    mt.check(tried, "no Python")


def records(venv, libraries):
    """By LD_PRELOAD the library must find its recorder, by run the program its library."""
    python, memtrace = os.path.join(venv, "bin/python"), os.path.join(venv, "bin/memtrace")
    done = mt.execute([memtrace, "--version"])
    mt.equal(done.out.splitlines()[0], mt.execute([mt.MEMTRACE, "--version"]).out.splitlines()[0], "version")
    mt.check(re.search(r"libdw +\S+, " + libraries, done.out), done.out)
    folder = mt.scratch("t")
    env = mt.clean_env(PATH=os.path.join(venv, "bin") + ":" + os.environ["PATH"])
    run = mt.execute(["memtrace", "run", "-o", folder + "/run", "--", "python", "-c", PROGRAM], env=env)
    mt.check(run.status == 0 and run.out == "recorded\n" and "HOST MEMORY" in run.err, run)
    records_by_preload(python, memtrace, os.path.join(venv, "lib/libmemtrace.so"), folder)


def records_by_preload(python, memtrace, shim, folder):
    done = mt.execute([python, "-c", PROGRAM], env=mt.clean_env(LD_PRELOAD=shim, MEMTRACE_OUTPUT=folder + "/preload"))
    mt.equal((done.status, done.out, done.err), (0, "recorded\n", ""), "python under the wheel's library")
    trace = mt.Trace(folder + "/preload")
    trace.settle()
    mt.check(not trace.files(".ring"), "no recorder was found: %s" % trace.files())
    report = json.loads(mt.execute([memtrace, "peak", "--json", "--by", "function", trace.path]).out)
    mt.equal(report, json.loads(mt.execute([mt.MEMTRACE, "peak", "--json", "--by", "function", trace.path]).out), "what both programs read")
    held, _ = mt.blocks_of(json.loads(mt.execute([memtrace, "peak", "--json", trace.path]).out)["sites"], "hold")
    mt.between(80 << 20, held, 81 << 20, "bytes of hold()")
