"""The programs of others that read what `memtrace export` writes. scripts/setup (check) brings them into $VENV/consumers, or where
CONSUMERS says; a test without its one is skipped."""
import json
import os
import subprocess

import mt

FOLDER = os.environ.get("CONSUMERS", os.path.join(mt.VENV, "consumers"))


def path(name):
    found = os.path.join(FOLDER, name)
    if not os.path.exists(found):
        mt.skip("%s is not installed (make setup-check)" % name)
    return found


def pprof(*words):
    """What Go's pprof prints."""
    home = mt.scratch("pprof")
    done = mt.execute([path("pprof"), *words], env=mt.clean_env(HOME=home, PPROF_TMPDIR=home))
    mt.equal(done.status, 0, "pprof %s: %r" % (words, done))
    return done.out


def python(module, *words):
    """Runs a module of a Python package that lies there."""
    return subprocess.run([mt.python(), "-m", module, *words], env=mt.clean_env(PYTHONPATH=path("python")), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=mt.WAIT)


def script(text, *words):
    """Runs a script that imports packages from there; returns what it printed."""
    done = subprocess.run([mt.python(), "-c", text, *words], env=mt.clean_env(PYTHONPATH=path("python")), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=mt.WAIT)
    mt.equal((done.returncode, done.stderr), (0, ""), "script on %s" % (words,))
    return done.stdout


def trace_processor(trace, *queries):
    """The rows that Perfetto's trace_processor answers each query with."""
    node = mt.need("node")
    script_path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "trace_processor.mjs")
    done = mt.execute([node, script_path, path("trace_processor"), trace, *queries], env=mt.clean_env())
    mt.equal((done.status, done.err), (0, ""), "trace_processor")
    return json.loads(done.out)
