#!/usr/bin/env python3
"""Programs of TensorFlow and JAX as users write them (tests/programs/frameworks), each with its truth as tests/lib/strangers.py reads it, and `# peak: WHO`
of whose line is the largest at the peak. What report says of each is true, and of its twin nothing is said. Where the library works on a thread of its own, so
that the line is not known, report names a setting that shows it: with that it is named.

FRAMEWORKS="losses retrace" picks programs."""
# timeout: 7200
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import frameworks
import mt
import strangers

FOLDER = os.path.join(mt.TOP, "tests/programs/frameworks")
WANTED = os.environ.get("FRAMEWORKS", "").split()
SETTINGS = {"jax": "jax.config.update('jax_cpu_enable_async_dispatch', False)", "tensorflow": "tf.config.run_functions_eagerly(True)"}
ADVISED = "import runpy, sys\nimport %s\n%s\ndel sys.argv[0]\nrunpy.run_path(sys.argv[0], run_name='__main__')"
IMPORTS = {"jax": "jax", "tensorflow": "tensorflow as tf"}


def judged(run, framework, advised):
    python = getattr(frameworks, framework)()
    setting = ["-c", ADVISED % (IMPORTS[framework], SETTINGS[framework])] if advised else []
    run.command, run.env = [python, *setting, run.path, *run.arguments], {"TF_CPP_MIN_LOG_LEVEL": "3"}
    trace = strangers.record(run)
    found = strangers.judge(mt.MEMTRACE, trace)
    print("# %s %s%s" % (framework, "as advised: " if advised else "", strangers.row(found)), flush=True)
    return trace, found


def wrong(found):
    return found.how not in ("right", "near") or found.notes


def holds_most(trace, who):
    """At the peak, what was imported aside."""
    sites = [s for s in mt.Trace(trace).json("peak", "--device", "host", "-n", "20")["sites"] if s["category"] != "context"]
    return any(f["function"] == who for f in sites[0]["stack"])


def faults(run, framework, peak, advised):
    """What is said wrongly of a run, and its trace. `peak`: whose line holds most then, or None."""
    trace, found = judged(run, framework, advised)
    bad = [strangers.row(found)] if wrong(found) else []
    if peak and not holds_most(trace, peak):
        bad.append("%s: %s does not hold most at the peak" % (run.name, peak))
    return bad, trace, found


def check_all(framework):
    bad = []
    for name in sorted(os.listdir(os.path.join(FOLDER, framework))):
        if not name.endswith(".py") or (WANTED and name[:-3] not in WANTED):
            continue
        path = os.path.join(FOLDER, framework, name)
        with open(path, encoding="utf-8") as file:
            peak = [line.split()[2] for line in file if line.startswith("# peak: ")]
        for run in strangers.of_file(path):
            holder = peak[0] if peak and not run.arguments else None
            said, trace, found = faults(run, framework, holder, False)
            line_alone = found.how in ("right", "near") and found.notes in ([], ["names another"])
            if said and line_alone and SETTINGS[framework] in strangers.ask(mt.MEMTRACE, "report", trace):
                said = faults(run, framework, holder, True)[0]
            bad += said
    mt.equal(bad, [], "said wrongly")


def case_tensorflow():
    check_all("tensorflow")


def case_jax():
    check_all("jax")


mt.main()
