"""Devices in tests: the stand-in's environment and its log, PyTorch's CUDA build on it, the scenarios.

    done = gpu.scenario("capacity")                 # under the shim; done.trace, done.account, done.log
    done = gpu.shimmed([gpu.python(), "x.py"], devices="2G,2G")
"""
import functools
import glob
import json
import os
import re
import signal

import mt

STANDIN = os.path.join(mt.BUILD, "standin")
VENV = os.path.join(mt.TOP, os.environ.get("VENV_GPU", "build/venv-gpu"))
REAL = os.environ.get("MEMTRACE_TEST_GPU")  # the Python whose PyTorch has a real GPU: tests/gpu/check.py
SCENARIOS = os.path.join(mt.TOP, "tests/scenarios")


@functools.lru_cache(None)
def python():
    """The Python with PyTorch's CUDA build, or skip."""
    if REAL:
        return REAL
    path = os.path.join(VENV, "bin/python")
    if not glob.glob(os.path.join(VENV, "lib/python3*/site-packages/torch/lib/libtorch_cuda.so")):
        mt.skip("PyTorch's CUDA build is not installed (scripts/setup gpu)")
    if not glob.glob(os.path.join(STANDIN, "libcublas.so.*")):
        mt.fail("the stand-in was not built for it (make standin)")
    return path


def devices(sizes="2G,2G"):
    """How many there are: real ones, or the stand-in's of such sizes."""
    if not REAL:
        return len(sizes.split(","))
    return int(mt.plain([REAL, "-c", "import torch; print(torch.cuda.device_count())"]).out)


def environment(folder=None, log=None, **settings):
    """Variables that make a program find the stand-in, with a machine of its own unless FOLDER is another program's.
    SETTINGS are MEMTRACE_STANDIN_*: devices="2G,2G", context="64M", granularity=1, pid_shift=100000."""
    folder = folder or mt.scratch("standin")
    if REAL:
        return {}
    paths = [STANDIN] + [p for p in os.environ.get("LD_LIBRARY_PATH", "").split(":") if p]
    env = {"LD_LIBRARY_PATH": ":".join(paths), "MEMTRACE_STANDIN_DIR": folder,
           "MEMTRACE_STANDIN_LOG": log or os.path.join(folder, "log"), "TORCH_SHOW_CPP_STACKTRACES": "0"}
    env.update({"MEMTRACE_STANDIN_" + k.upper(): str(v) for k, v in settings.items()})
    return env


def read_log(path):
    """The driver's own account: a list of dictionaries (see tests/standin/README.md)."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        # A process that is killed in mid-write leaves a part of a line before the next one's.
        lines = [line[line.rindex("{"):] for line in file if "{" in line]
    return [json.loads(line) for line in lines if line.endswith("}\n")]


# What PyTorch 2 dies of behind its last line now and then, on a busy machine: twice in some 150 runs of a training without the tracer, once in 130 with it.
DIES_AT_EXIT = "terminate called without an active exception"


def run(command, env=None, traced=True, folder=None, timeout=mt.WAIT, preload=(), shim=None, **settings):
    """Runs a command with the stand-in, under the shim if TRACED; the result has .log, and .account if it printed one. One that PyTorch's exit has
    aborted says nothing, and runs again."""
    runner = functools.partial(mt.shimmed, shim=shim) if traced else mt.plain
    for _ in range(3):
        standin = environment(folder, **settings)
        done = runner(command, env=dict(standin, **(env or {})), timeout=timeout, preload=preload)
        if folder or done.status != -signal.SIGABRT or DIES_AT_EXIT not in done.err:
            break
    done.log = read_log(standin.get("MEMTRACE_STANDIN_LOG", ""))
    done.account = account(done.out)
    done.folder = standin.get("MEMTRACE_STANDIN_DIR")
    return done


def shimmed(command, **options):
    return run(command, **options)


def account(text):
    """The ACCOUNT lines of a scenario as one dictionary; its ooms are a list."""
    facts = {"ooms": []}
    for line in text.splitlines():
        if line.startswith("ACCOUNT "):
            new = json.loads(line[8:])
            if "oom" in new:
                facts["ooms"].append(new.pop("oom"))
            facts.update(new)
    return facts


def settings_of(path):
    """The scenario's machine, from its line `# standin: DEVICES=... CONTEXT=...`."""
    with open(path, encoding="utf-8") as file:
        found = re.search(r"^# standin: (.*)$", file.read(), re.M)
    return {k.lower(): v for k, v in (word.split("=", 1) for word in found.group(1).split())} if found else {}


def scenario(name, *arguments, paused=False, env=None, **options):
    """Runs tests/scenarios/NAME.py on the machine it describes; PAUSED: without its imports, which is faster."""
    path = os.path.join(SCENARIOS, name + ".py")
    options["env"] = dict(env or {}, **({"MEMTRACE_PAUSED": "1"} if paused else {}))
    return run([python(), path, *map(str, arguments)], **dict(settings_of(path), **options))
