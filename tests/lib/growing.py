"""Programs that grow or fill (tests/programs/growing, grows.c, vectors.cc), and what report, leaks and live say of each."""
import os
import re
import shutil

import mt

FOLDER = os.path.join(mt.TOP, "tests/programs/growing")
FORMS = {"fill": "fills an array and ends", "map": "fills a table by key and ends", "works": "fills and works on", "warmup": "grows in a warm-up only",
         "keeps": "keeps more with each unit of work", "cache": "a cache grows with each unit of work", "block": "one block grows",
         "shared": "shared memory grows", "private": "private copies of a file grow", "file": "maps more of a file", "forks": "four processes keep more",
         "stages": "each of four stages keeps more", "renews": "each of four stages replaces what the last one kept", "turns": "ten long turns keep more",
         "loads": "ten long turns read and end", "filled": "one block doubled in a warm-up only", "pushes": "one block doubled, and nothing else is done",
         "piles": "a pool of processes each epoch, never closed", "closes": "a pool each epoch, closed and joined", "pooled": "one pool for all epochs",
         "frees": "an extension frees its answers",
         "waits": "keeps more with each unit, every tenth of which waits", "pairs": "two lines keep more with each unit",
         "cleans": "keeps more with each unit, then cleans up for as long",
         "epochs": "the first three of twelve epochs keep more", "starts": "four processes grow in a warm-up only",
         "dozes": "keeps more for longer than 20 s, then waits", "computes": "reads for 5 s, then computes without memory", "memo": "a cached function is asked for more, then dropped before a rest",
         "recalls": "a cached function is asked the same again, then dropped before a rest",
         "drops": "fills an array, frees it, and goes on",
         "moves": "mappings grow, half-way made anew by another caller",
         "layers": "one line makes, another keeps", "values": "one line makes, another keeps a number of it"}
COMMON = ("fill", "map", "works", "warmup", "keeps", "cache")
SICK = {"keeps", "cache", "block", "shared", "private", "forks", "stages", "turns", "piles", "waits", "pairs", "cleans", "computes", "dozes", "memo", "layers", "moves"}
# The same in the words of tests/lib/strangers.py.
TRUTH = {form: "leak" for form in (*SICK, "computes")} | {"fill": "grows", "map": "grows", "loads": "grows", "pushes": "grows", "works": "stopped", "warmup": "stopped",
         "file": "passes", "renews": "passes", "epochs": "stopped", "starts": "stopped", "filled": "stopped", "recalls": "stopped",
         "values": "passes", "drops": "passes", "closes": "passes", "pooled": "passes", "frees": "passes"}
COLLECTED = "in the heap of a runtime that collects garbage"
PROCESSES = {"forks": 4, "starts": 4}  # of which each accounts for itself
RATE = "100K/s"  # growth that leaks --fail-over does not allow; a busy machine makes all of them slow


class Language:
    def __init__(self, command, forms=COMMON, needs=None):
        self.command, self.forms, self.needs = command, forms, needs

    def there(self):
        return not self.needs or shutil.which(self.needs)


def script(*command):
    return lambda form: [*command[:-1], os.path.join(FOLDER, command[-1]), form]


def java(form):
    """With a heap that begins small: what grows within one that the virtual machine has is its own business."""
    classes = mt.scratch("classes")
    done = mt.plain(["javac", "-J-XX:-UsePerfData", "-J-XX:TieredStopAtLevel=1", "-d", classes, os.path.join(FOLDER, "Grows.java")])
    mt.equal(done.status, 0, "javac: %s" % done)
    return ["java", "-XX:-UsePerfData", "-XX:+UseSerialGC", "-Xms8m", "-Xmx512m", "-cp", classes, "Grows", form]


C = (*COMMON, "block", "shared", "private", "file", "forks", "stages", "renews", "turns", "loads", "waits", "pairs", "cleans", "dozes", "computes", "epochs", "starts", "moves", "drops")
CPP = (*COMMON, "block", "filled", "pushes")
POOLS = ("piles", "closes", "pooled")
LANGUAGES = {
    "c": Language(lambda form: [mt.program("grows"), form], C), "c++": Language(lambda form: [mt.program("vectors"), form], CPP),
    "python": Language(lambda form: [mt.python(), os.path.join(FOLDER, "grows.py"), form], (*COMMON, "block", "turns", "memo", "recalls", "layers", "values")), "perl": Language(script("perl", "grows.pl"), needs="perl"),
    "mawk": Language(script("mawk", "-f", "grows.awk"), needs="mawk"), "gawk": Language(script("gawk", "-f", "grows.awk"), needs="gawk"),
    "lua": Language(script("lua5.4", "grows.lua"), needs="lua5.4"), "ruby": Language(script("ruby", "grows.rb"), needs="ruby"),
    "node": Language(script("node", "--max-semi-space-size=1", "grows.js"), needs="node"), "php": Language(script("php", "-n", "grows.php"), needs="php"),
    "java": Language(java, needs="javac"),
    "extension": Language(lambda form: [mt.python(), os.path.join(FOLDER, "extension.py"), mt.program("libkeeper.so"), form], ("keeps", "frees")),
    "pools": Language(lambda form: [mt.python(), os.path.join(FOLDER, "pools.py"), form], POOLS),
}


def programs():
    return [(name, form) for name, language in LANGUAGES.items() for form in language.forms]


def limited(command, prefix=""):
    """Its trace, and its status; the limits of the shell are for it alone."""
    output = os.path.join(mt.scratch("trace"), "t")
    env = mt.shim_env(output)
    preload = env.pop("LD_PRELOAD")
    done = mt.execute(["/bin/sh", "-c", prefix + 'exec env LD_PRELOAD="$0" "$@"', preload, *command], env=env)
    done.trace = mt.Trace(output)
    done.trace.settle()
    return done


def record(language, form, env=None, python=None):
    """`python` takes the place of the one that the tests use."""
    command = [python if word == mt.python() else word for word in LANGUAGES[language].command(form)] if python else LANGUAGES[language].command(form)
    done = mt.shimmed(command, env=env, timeout=300)
    mt.equal(done.status, 0, "%r: status" % done)
    done.trace.settle()
    return done


def opinions_of(trace):
    """Whether each calls it a leak."""
    live = trace.tool("live").out.strip().splitlines()
    return {
        "report": any(v["kind"] in ("leak", "processes") for v in trace.report["verdicts"]),
        "leaks": re.search(r"(grows? steadily(?!, too little)|processes pile up)", trace.tool("leaks").out) is not None,
        "fail-over": trace.tool("leaks", "--fail-over", RATE).status == 1,
        "live": bool(live) and (" grows by " in live[-1] or " pile up, " in live[-1]),
    }
