"""Trials of advice: programs of tests/trials/ that run out of memory for a known cause are run, judged, and run once more as the report
advises. Advice is right if the program then goes on where it failed, or is not given.

A program says in comments: `# standin:` its machine, `# cause:` the first verdicts that are right (or `none`), with `|` between them,
and `# follow:` what it can follow. It counts its units of work (see tests/trials/trial.py); --twin is the same program without the cause.
"""
import functools
import glob
import os
import re

import gpu
import mt

PLACE = os.path.join(mt.TOP, "tests/trials")
TIMEOUT = 300

# What an advice asks for, by its words; the first that matches is followed.
FOLLOWS = (
    (r"expandable_segments:True", "expandable"),
    (r"drop (one|all but one) of them|drop it once copied", "drop"),
    (r"detach", "detach"),
    (r"torch\.no_grad", "no_grad"),
    (r"CUBLAS_WORKSPACE_CONFIG", "workspace"),
    (r"find what (holds|keeps)|leaves the except", "release"),
    (r"raise the cap", "cap"),
    (r"reduce what", "less_outside"),
    (r"empty_cache", "empty_cache"),
    (r"let workers keep nothing", "host"),
    (r"keep fewer processes|let the neighbours|stagger", "alone"),
    (r"smaller batch|shorter input|smaller model|fewer or shorter|this input|need less", "batch"),
    (r"larger device", "larger"),
)
ENVIRONMENT = {
    "expandable": {"PYTORCH_ALLOC_CONF": "expandable_segments:True", "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
    "workspace": {"CUBLAS_WORKSPACE_CONFIG": ":16:8"},
}


def names():
    return sorted(os.path.basename(p)[:-3] for p in glob.glob(os.path.join(PLACE, "*.py")) if not p.endswith("/trial.py"))


def header(name):
    with open(os.path.join(PLACE, name + ".py"), encoding="utf-8") as file:
        text = file.read()
    found = dict(re.findall(r"^# (\w+): (.*)$", text, re.M))
    return {"causes": [c.strip() for c in found["cause"].split("|")], "follows": found.get("follow", "").split(),
            "about": re.search(r'"""(.*?)(?:\n\n|""")', text, re.S)[1].replace("\n", " ")}


def larger(devices):
    """The same devices with twice the memory."""
    return ",".join(re.sub(r"[\d.]+", lambda m: str(2 * float(m[0])), d) for d in devices.split(","))


def run(name, *arguments, env=None, traced=True, **machine):
    path = os.path.join(PLACE, name + ".py")
    env = dict({"MEMTRACE_PAUSED": "1", "PYTHONPATH": gpu.SCENARIOS}, **(env or {}))
    done = gpu.run([gpu.python(), path, *arguments], env=env, traced=traced, timeout=TIMEOUT, **dict(gpu.settings_of(path), **machine))
    mt.check("units" in done.account, "%s %s did not begin: %s" % (name, arguments, done.err[-800:]))
    return done


@functools.lru_cache(None)
def traced(name, *arguments):
    """One run for all that is asked of it."""
    return run(name, *arguments)


class Trial:
    """One program, what was said of it, and what came of the advice."""

    def __init__(self, name):
        self.name, self.about = name, header(name)
        self.done = traced(name)
        report = self.done.trace.report
        self.verdicts = [v for v in report["verdicts"] if v["device"] != "host"]
        self.first = self.verdicts[0] if self.verdicts else None
        self.kind = self.first["kind"] if self.first else "none"
        self.advice = (self.first or {}).get("advice") or ""
        self.status = report["status"]
        self.follow = next((what for words, what in FOLLOWS if re.search(words, self.advice)), None)
        self.after = None
        if self.follow == "larger":
            self.after = run(name, traced=False, devices=larger(gpu.settings_of(os.path.join(PLACE, name + ".py"))["devices"]))
        elif self.follow in ENVIRONMENT:
            self.after = run(name, traced=False, env=ENVIRONMENT[self.follow])
        elif self.follow in self.about["follows"]:
            self.after = run(name, "--follow", self.follow, traced=False)

    def units(self):
        return self.done.account["units"]

    def wrong(self):
        """None, or what is wrong."""
        if self.kind not in self.about["causes"]:
            return "said %s, not %s: %s" % (self.kind, " or ".join(self.about["causes"]), [(v["kind"], v["certainty"], v["evidence"]) for v in self.verdicts])
        elsewhere = [site for site in (self.first or {}).get("sites", []) if self.kind in ("copies", "leak") and not site.startswith(self.name + ".py:")]
        if elsewhere:
            return "the lines are none of the program's: %s" % elsewhere
        if not self.advice:
            return None if self.kind == "none" else "no advice"
        if not self.after:
            return "the advice can't be followed: %s" % self.advice
        if not self.after.account["ended"] and self.after.account["units"] < self.units() + max(2, self.after.account["of"] // 20):
            return "%s was followed: %d units before, %d with it: %s" % (self.follow, self.units(), self.after.account["units"], self.advice)
        return None

    def row(self):
        came = "ended" if self.after and self.after.account["ended"] else "%d of %d units" % (self.after.account["units"], self.after.account["of"]) if self.after else "-"
        sure = "%.2f" % self.first["confidence"] if self.first else "-"
        before = "%d of %d units" % (self.units(), self.done.account["of"])
        cells = self.name, self.about["about"].rstrip("."), self.kind, sure, self.follow or "-", before, came, said_of_twin(self.name) or "quiet"
        return "| %s |" % " | ".join(cells)


def said_of_twin(name):
    """None, or what is wrong with it."""
    done = traced(name, "--twin")
    mt.check(done.account["ended"], "%s --twin did not end: %s" % (name, done.err[-800:]))
    report = done.trace.report
    said = [(v["kind"], v["evidence"]) for v in report["verdicts"]]
    return None if (report["status"], said) == ("ok", []) else "%s, %s" % (report["status"], said)


def twin_is_healthy(name):
    mt.equal(said_of_twin(name), None, "status and verdicts of %s --twin" % name)


def check(name):
    wrong = Trial(name).wrong()
    mt.check(not wrong, "%s: %s" % (name, wrong))
    twin_is_healthy(name)


def figures_a_step_are_the_programs(name):
    """Of three quarters of its units, as PyTorch counts what is in use behind each."""
    done = traced(name, "--account")
    live, steps = done.account["live"], done.trace.report["steps"]
    first = len(live) // 4
    own = (live[-1] - live[first]) / (len(live) - 1 - first)
    mt.between(done.account["units"] - 1, steps["count"], done.account["units"] + 1, "steps; the first one may have come by other stacks")
    mt.between(0.98 * own, steps["growth"]["cuda:0 pool"]["bytes_per_step"], 1.02 * own, "more each step")
    ends = [s["stack"][:1] for s in done.trace.json("leaks")["sites"] if s["runs_out_at_step"] or s["runs_out_at_s"]]
    mt.check(not ends or done.account["ended"], "forecasts of a run whose memory has ended: %s" % ends)
