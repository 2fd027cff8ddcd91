#!/usr/bin/env python3
"""Under musl, Alpine's C library: files of cases with programs that are made for it, a program that is linked with it, and a machine that has
nothing but musl."""
# timeout: 1800
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import fresh
import golden_traces
import mt
import musl

FILES = ("oracle", "signals", "kill", "marks", "sampling", "loader", "start_stop", "sessions", "descriptors", "losses", "forks", "threads", "mappings", "exits")
# The status of a program that returns is not known there without a parent; threads count as those that allocate, and glibc's pthread_create
# does so for main(); musl's mprotect() rounds what is not on a page.
DIFFER = {"forks chain of execs", "exits exec", "exits alone return", "exits alone exit", "exits alone execfail", "exits alone thread",
          "threads 10000 threads", "mappings made usable",
          "forks fork among threads",  # LIMITS: a free of another thread that is under way at the fork
          "sessions pool of threads",  # a Python of glibc cannot use a library that is made for musl
          "sessions env keeps what is preloaded"}  # it says where the library lies, to which the build folder here has a link


def linked(target):
    """The folder of `make static` or `make musl`."""
    done = mt.execute(["make", "--no-print-directory", "-o", "all", "-o", os.path.relpath(mt.SHIM, mt.TOP), target, "B=" + os.path.relpath(mt.BUILD, mt.TOP)], cwd=mt.TOP, timeout=600)
    if target == "musl" and "make setup-musl" in done.err:
        mt.skip("no libraries for musl; make setup-musl builds them")
    mt.equal(done.status, 0, "status of make: %s" % done)
    return os.path.join(mt.BUILD, target)


def build_folder():
    """The build's, with programs of musl where they can be made."""
    folder = mt.scratch("build")
    musl.loader()
    for name in os.listdir(mt.BUILD):
        if name != "tests":
            os.symlink(os.path.join(mt.BUILD, name), os.path.join(folder, name))
    programs = os.path.join(folder, "tests/programs")
    shutil.copytree(os.path.join(mt.BUILD, "tests"), os.path.join(folder, "tests"), symlinks=True)
    made = [name for name, _, ending in (n.partition(".") for n in os.listdir(os.path.join(mt.TOP, "tests/programs"))) if ending == "c" and musl.build(name, programs)]
    mt.check(len(made) > 40 and {"busy", "forks", "oracle", "libmod_a"} <= set(made), made)
    return folder, {n.partition(".")[0] for n in os.listdir(os.path.join(mt.TOP, "tests/programs")) if n.endswith(".c")} - set(made)


def missing(line):
    """The program that a case had no use without."""
    found = re.search(r"tests/programs/(\w+) is not built$", line)
    return found and found[1]


def case_files_of_cases():
    folder, not_made = build_folder()
    failed, passed = set(), 0
    for name in FILES:
        done = mt.execute([sys.executable, os.path.join(mt.TOP, "tests/cases", name + ".py")], env=mt.clean_env(B=folder, VENV=mt.VENV), timeout=600)
        passed += done.out.count("\nok - ") + done.out.startswith("ok - ")
        bad = re.findall(r"^not ok - (.*)$", done.out, re.M)
        failed |= {line for line in bad if not any(line.startswith(known) for known in DIFFER) and missing(line) not in not_made}
        mt.check(done.status == 0 or bad, "%s" % done)
    mt.equal(failed, set())
    mt.check(passed > 135, "only %d cases" % passed)
    mt.say("# %d cases passed" % passed)


def case_linked_with_musl_alone():
    """It asks the system for no library, and none of glibc is in it."""
    path = os.path.join(linked("musl"), "memtrace")
    mt.check("NEEDED" not in mt.execute([mt.need("readelf"), "-d", path]).out, "it needs libraries")
    with open(path, "rb") as file:
        mt.check(b"GNU C Library" not in file.read(), "glibc is in it")
    said = mt.execute([path, "--version"])
    mt.check(said.status == 0 and re.search(r"^  libdw +\S+, built in$", said.out, re.M) and "not glibc" in said.out, said)


@mt.variants(*((n, *w) for n in golden_traces.NAMES for w in (("report",), ("peak", "-n", "all"), ("leaks",), ("timeline",), ("dump",))))
def case_reads_the_same(name, *words):
    """What it prints of kept traces is what the program of glibc prints."""
    trace = golden_traces.unpack(name, mt.scratch("golden"))
    here, there = (mt.execute([path, *words, "--force", trace] + ["--json"] * (words[0] != "dump")) for path in (mt.MEMTRACE, os.path.join(linked("musl"), "memtrace")))
    mt.equal((there.status, there.out, there.err), (here.status, here.out, here.err))


@mt.variants("static", "musl")
def case_machine_without_glibc(target):
    """Only musl's loader, the program that is linked statically, and the library beside it."""
    mt.need_root()
    folder = linked(target)
    root = mt.scratch("root")
    for name in ("proc", "sys", "dev", "tmp", "bin", "lib"):
        os.mkdir(os.path.join(root, name))
    shutil.copy(musl.loader(), root + "/lib/")
    for name in ("memtrace", "libmemtrace.so"):
        shutil.copy(os.path.join(folder, name), root + "/bin/")
    mt.check(musl.build("busy", root + "/bin"), "busy is not built")

    def run(*words):
        return mt.execute(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private", "sh", "-c", fresh.ENTER, root, "--", *words])
    done = run("/bin/memtrace", "run", "-o", "/tmp/t", "--", "/bin/busy", "200000", "10", "100")
    mt.check(done.status == 7 and "HOST MEMORY" in done.err and "busy.c" in done.err and "exit 7" in done.err, done)
    mt.check([n for n in os.listdir(root + "/tmp/t") if n.endswith(".trace")], "no recorder worked")
    said = run("/bin/memtrace", "leaks", "--json", "/tmp/t")
    mt.equal((said.out, said.status), (mt.execute([mt.MEMTRACE, "leaks", "--json", "--no-debug-files", root + "/tmp/t"]).out.replace(root, ""), 0), "what both programs read")
    mt.equal(run("/bin/memtrace", "html", "-o", "/tmp/t.html", "/tmp/t").status, 0, "status of html")


mt.main()
