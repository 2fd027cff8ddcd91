"""Ordinary programs as users write them (tests/strangers), each with its truth in its first lines, and what report and leaks say of them.

    # truth: KIND WHO BYTES; why                what is true of the program, or
    # truth(FORM): KIND WHO BYTES; why          of the program with the argument FORM
    # pauses: 0 0.001                           seconds that a turn waits, by PAUSE in the environment: each is a run of its own
    # needs: COMMAND   # busy: N                what it needs; N others that compute beside it
    # short                                     tests/cases/strangers.py runs it, too, without a pause and with the first

KIND is leak (goes on while other memory goes), grows (goes on and nothing else is freed), backlog (comes faster than it goes), stopped, or passes.
WHO is a function that makes it; BYTES are all that stay until the end, or - where the program prints KEPT BYTES, or nobody counts.
"""
import json
import os
import re
import shutil
import subprocess
import types

import growing
import mt
from growing import COLLECTED

FOLDER = os.path.join(mt.TOP, "tests/strangers")
BUILT = os.path.join(mt.BUILD, "tests/strangers")
SICK = ("leak", "grows", "backlog")
KINDS = (*SICK, "stopped", "passes")
OPINIONS = ("right", "near", "too little", "wrong")
NEAR = {("leak", "grows"), ("leak", "backlog"), ("backlog", "leak"), ("backlog", "grows")}  # seen, under another name
COLLECTS_BY_BYTES = ("--max-semi-space-size=1", "--single-threaded-gc", "--predictable-gc-schedule")  # V8: at another speed it frees at the same turns
COMPILES_NOTHING = "-Xint"  # the JVM: what its compilers map depends on how long the program runs
BYTES_OFF = 0.2  # of what is said to grow, before it counts as wrong: a line may also make blocks that pass

# ---- truth --------------------------------------------------------------------------------------------------------


class Truth(types.SimpleNamespace):
    """kind, who and bytes (None: not known)."""

    @classmethod
    def read(cls, words):
        kind, who, size = words.split(";")[0].split()
        return cls(kind=kind, who=None if who == "-" else who, bytes=amount(size))

    def __str__(self):
        return "%s %s %s" % (self.kind, self.who or "-", "-" if self.bytes is None else self.bytes)


def amount(text):
    """12.0M are 12,000,000."""
    if text == "-":
        return None
    return int(float(text.rstrip("kM")) * {"k": 1e3, "M": 1e6}.get(text[-1], 1))


def of_file(path):
    """The program's runs: name, command, environment and truth of each."""
    with open(path, encoding="utf-8") as file:
        head = "".join(line.lstrip("#/- ") for line in file.readlines()[:12])
    pauses = re.search(r"^pauses: (.*)$", head, re.M)
    needs = re.search(r"^needs: (.*)$", head, re.M)
    busy = re.search(r"^busy: (\d+)$", head, re.M)
    base = os.path.basename(path)
    for form, words in re.findall(r"^truth(?:\((\w+)\))?: (.*)$", head, re.M):
        for number, pause in enumerate(pauses.group(1).split() if pauses else ["0"]):
            name = base.replace(".", "_") + ("-" + form if form else "") + ("@" + pause if pause != "0" else "")
            yield types.SimpleNamespace(name=name, path=path, arguments=[form] if form else [], pause=pause, truth=Truth.read(words),
                                        needs=needs.group(1).split() if needs else [], busy=int(busy.group(1)) if busy else 0,
                                        short=number < 2 and re.search(r"^short$", head, re.M) is not None)


def of_growing():
    """Those of tests/lib/growing.py, with its truth."""
    for language, form in growing.programs():
        yield types.SimpleNamespace(name="growing-%s-%s" % (language, form), path=None, language=language, form=form, busy=0, short=False,
                                    truth=Truth(kind=growing.TRUTH[form], who=None, bytes=None),
                                    needs=[] if growing.LANGUAGES[language].there() else [growing.LANGUAGES[language].needs])


def programs():
    own = [run for name in sorted(os.listdir(FOLDER)) if "." in name and not name.endswith(".h") for run in of_file(os.path.join(FOLDER, name))]
    return own + list(of_growing())


# ---- a run --------------------------------------------------------------------------------------------------------


@mt.once
def built(path):
    """What runs it: compiled where it must be, and left there, so that kept traces have their names."""
    base, ending = os.path.splitext(os.path.basename(path))
    out, made = os.path.join(BUILT, base), os.path.join(mt.scratch("built"), base)
    options = ["-O1", "-g", "-fno-builtin", "-Wall", path, "-o", made, "-lpthread"]
    compilers = {".c": ["cc", *options], ".cc": ["c++", *options], ".rs": ["rustc", "-g", "-o", made, path],
                 ".java": ["javac", "-J-XX:-UsePerfData", "-d", os.path.dirname(made), path]}
    if ending in compilers:
        done = mt.plain(compilers[ending], cwd=mt.TOP)  # debug information names it: the same file each time
        mt.equal(done.status, 0, "%s" % done)
        os.makedirs(BUILT, exist_ok=True)
        for name in os.listdir(os.path.dirname(made)):
            new = os.path.join(BUILT, "%s~%d" % (name, os.getpid()))
            shutil.copy(os.path.join(os.path.dirname(made), name), new)
            os.replace(new, os.path.join(BUILT, name))  # at once: another test may be running it
    return {".c": [out], ".cc": [out], ".rs": [out], ".py": [mt.python(), path], ".rb": ["ruby", path], ".pl": ["perl", path], ".lua": ["lua5.4", path],
            ".js": ["node", *COLLECTS_BY_BYTES, path], ".php": ["php", "-n", path], ".awk": ["gawk", "-f", path],
            ".java": ["java", COMPILES_NOTHING, "-XX:-UsePerfData", "-XX:+UseSerialGC", "-Xms8m", "-Xmx512m", "-cp", BUILT, base]}[ending]


def there(run):
    return all(shutil.which(command) for command in run.needs)


def record(run, output=None):
    """Its trace, in which TRUTH says what is true of it. Others compute beside it where it is to be held up."""
    beside = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(run.busy)]
    try:
        command = getattr(run, "command", None) or ([*built(run.path), *run.arguments] if run.path else growing.LANGUAGES[run.language].command(run.form))
        env = dict(getattr(run, "env", {}), **({"PAUSE": run.pause} if run.path else {}))
        done = mt.shimmed(command, env=env, output=output or os.path.join(mt.scratch("trace"), run.name), timeout=300)
    finally:
        for one in beside:
            one.kill()
            one.wait()
    mt.equal(done.status, 0, "%r: status" % done)
    done.trace.settle()
    kept = re.search(r"^KEPT (\d+)$", done.out, re.M) or re.search(r'^ACCOUNT .*"kept_bytes": (\d+)', done.out, re.M)
    truth = Truth(**vars(run.truth))
    truth.bytes = int(kept.group(1)) * growing.PROCESSES.get(getattr(run, "form", None), 1) if kept else truth.bytes
    with open(os.path.join(done.trace.path, "TRUTH"), "w", encoding="ascii") as file:
        file.write("%s\n" % truth)
    return done.trace.path


# ---- what is said of it -------------------------------------------------------------------------------------------


def ask(analyzer, *arguments):
    done = mt.execute([analyzer, *arguments], env=mt.clean_env(COLUMNS="200"))
    mt.check(done.status == 0, "%s" % done)
    return done.out


# What the headline says where no verdict does, and of how much.
HEADLINES = {"leak": r"keeps more and more, ([\d.]+ \w+)", "grows": r"only grew, ([\d.]+ \w+)",
             "backlog": r"falls behind: more waits, and waits longer, ([\d.]+ \w+)"}
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def said_by_headline(headline):
    for kind, words in HEADLINES.items():
        found = re.search(words, headline)
        if found:
            return types.SimpleNamespace(kind=kind, words=headline, bytes=amount_said(found.group(1)), where=headline)
    return None


def amount_said(words):
    number, unit = words.split()
    return float(number) * UNITS[unit]


def said_by_report(analyzer, trace):
    """The one place that knows how report puts it: a kind of SICK, `healthy`, `too little`, `collected` (of a collector's heap nobody knows what is
    alive), `sampled` (nothing of so many bytes grows), or `silent`; its words; bytes, and the owner's text."""
    report, screen = json.loads(ask(analyzer, "report", "--json", trace)), ask(analyzer, "report", trace)
    headline = " ".join(line for line in screen.split("\nHOST MEMORY")[0].splitlines()[2:] if not line.startswith("peak ")).strip()
    found = [v for v in report["verdicts"] + report.get("facts", []) if v["kind"] in (*SICK, "processes")]
    if found:
        first = max(found, key=lambda v: v["bytes"])
        kind = "leak" if first["kind"] == "processes" else "collected" if COLLECTED in first["evidence"] else first["kind"]
        return types.SimpleNamespace(kind=kind, words=first["evidence"], bytes=first["bytes"], where=json.dumps(first))
    if said_by_headline(headline):
        return said_by_headline(headline)
    told = re.search(r"nothing of ([\d.]+ \w+) or more goes on growing", headline)  # of what was sampled
    if told:
        return types.SimpleNamespace(kind="sampled", words=headline, bytes=amount_said(told.group(1)), where=headline)
    kind = ("healthy" if re.search(r"healthy\b|nothing grew", headline) else
            "too little" if re.search(r"too (little|short|few)|would tell", headline) else "silent")
    return types.SimpleNamespace(kind=kind, words=headline, bytes=None, where=headline)


def said_by_leaks(analyzer, trace):
    """The same of leaks: a kind of SICK, `stopped`, `too little`, or `healthy`."""
    text = " ".join(re.split(r"\n\n", ask(analyzer, "leaks", trace).split("\nGROWTH", 1)[-1])[0].split())
    kind = ("backlog" if "backlog" in text else
            "leak" if re.search(r"grows? steadily(?!, too little)|processes pile up", text) else
            "too little" if re.search(r"too little|too short|too few|to the end of only", text) else
            "stopped" if re.search(r"not since|stopped", text) else
            "grows" if re.search(r"\bgrows\b", text) else "healthy")
    return types.SimpleNamespace(kind=kind, words=text)


def opinion(truth, said):
    """right, near (it was seen, under another name), too little, or wrong; and what else is not as it is."""
    if said.kind in SICK:
        how = "right" if said.kind == truth.kind else "near" if (truth.kind, said.kind) in NEAR else "wrong"
    elif said.kind in ("too little", "collected") or (said.kind == "silent" and truth.kind in SICK):
        how = "too little"
    elif said.kind == "sampled" and truth.kind in SICK:  # growth by less than `bytes` can't be told
        how = "too little" if truth.bytes is not None and truth.bytes < said.bytes else "wrong"
    else:
        how = "wrong" if truth.kind in SICK else "right"
    notes = []
    if how in ("right", "near") and truth.kind in SICK:
        if truth.who and truth.who not in said.where:
            notes.append("names another")
        if truth.bytes and said.bytes is not None and abs(said.bytes / truth.bytes - 1) > BYTES_OFF:
            notes.append("%.2f of the bytes" % (said.bytes / truth.bytes))
    return how, notes


def judge(analyzer, trace):
    with open(os.path.join(trace, "TRUTH"), encoding="ascii") as file:
        truth = Truth.read(file.read())
    report, leaks = said_by_report(analyzer, trace), said_by_leaks(analyzer, trace)
    how, notes = opinion(truth, report)
    return types.SimpleNamespace(name=os.path.basename(trace), truth=truth, report=report, leaks=leaks, how=how, notes=notes)


def row(found):
    return "%-11s %-34s %-36s report: %-10s leaks: %-10s %s" % (found.how, found.name, found.truth, found.report.kind, found.leaks.kind,
                                                              "; ".join([*found.notes, found.report.words[:90]]))


def counts(found):
    """How many of each opinion, of sick programs and of healthy ones."""
    table = {}
    for one in found:
        key = ("sick" if one.truth.kind in SICK else "healthy", one.how)
        table[key] = table.get(key, 0) + 1
    return ", ".join("%s %s: %d" % (*key, number) for key, number in sorted(table.items()))


def table(found):
    """The rows of docs/DIAGNOSIS.md: by truth, how often report was right."""
    lines = ["| truth | runs | %s |" % " | ".join(OPINIONS), "|---|---|---|---|---|---|"]
    for kind in (*KINDS, "all"):
        hows = [one.how for one in found if kind in (one.truth.kind, "all")]
        lines.append("| %s | %d | %s |" % (kind, len(hows), " | ".join(str(hows.count(how)) for how in OPINIONS)))
    return "\n".join(lines) + "\n"
