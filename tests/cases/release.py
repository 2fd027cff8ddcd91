#!/usr/bin/env python3
"""What a release is: one version in one place, a program that says what it is, an archive of the source that is whole."""
import os
import re
import sys
import tarfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt


def version():
    return mt.execute([os.path.join(mt.TOP, "scripts/version")]).out.strip()


def git(*words):
    done = mt.execute(["git", *words], cwd=mt.TOP)
    if done.status != 0:
        mt.skip("no git checkout: %s" % done.err.strip()[:100])
    return done.out


def case_version_says_which_build():
    done = mt.execute([mt.MEMTRACE, "--version"])
    mt.equal((done.status, done.err), (0, ""))
    lines = done.out.splitlines()
    mt.equal(lines[0], "memtrace " + version())
    rows = {line[2:16].strip(): line[16:] for line in lines[1:]}
    notes = mt.execute([mt.need("readelf"), "-n", mt.MEMTRACE]).out
    mt.equal(rows["build id"], re.search(r"Build ID: ([0-9a-f]+)", notes)[1], "build id")
    with open(os.path.join(mt.TOP, "format/format.h"), encoding="utf-8") as file:
        mt.equal(rows["reads"], "trace format " + re.search(r"#define MT_VERSION (\d+)", file.read())[1])
    mt.equal(rows["machine"].split(",")[0], os.uname().machine)


def case_version_says_whose_libraries():
    """Those that the program asks the loader for are the system's; their versions are what their packages say."""
    said = mt.execute([mt.MEMTRACE, "--version"]).out
    rows = {m[1]: (m[2], m[3]) for m in re.finditer(r"^  (\w+) +([\d.]+), (.*)$", said, re.M)}
    needed = mt.execute([mt.need("readelf"), "-d", mt.MEMTRACE]).out
    for name, file in (("libdw", "libdw.so"), ("zstd", "libzstd.so"), ("zlib", "libz.so"), ("jansson", "libjansson.so")):
        mt.equal(rows[name][1], "the system's library" if file in needed else "built in", name)
    for name, package in (("libdw", "libdw1"), ("zstd", "libzstd1"), ("zlib", "zlib1g"), ("jansson", "libjansson4")):
        # Debian 13 has libdw1t64, which provides libdw1
        done = mt.execute(["dpkg-query", "-W", "-f", "${Version}\n", package, package + "t64"])
        versions = [re.sub(r"^(\d+:)?(.*\+really)?", "", line) for line in done.out.split()]
        if versions and rows[name][1] != "built in":
            mt.check(any(one.startswith(rows[name][0]) for one in versions), "%s is %s, its package %s" % (name, rows[name][0], versions))


def case_the_version_is_in_one_place():
    """No other file has it, but the history of changes, whose newest entry is about it."""
    mt.check(re.fullmatch(r"\d+\.\d+\.\d+", version()), version())
    found = set(git("grep", "-l", "-F", version(), "--", ".", ":!tests", ":!docs").split())
    mt.equal(found, {"format/version.h", "CHANGELOG.md"}, "files with %s" % version())
    with open(os.path.join(mt.TOP, "CHANGELOG.md"), encoding="utf-8") as file:
        mt.equal(re.search(r"^## (\S+?),? ", file.read(), re.M)[1].rstrip(","), version(), "newest entry of CHANGELOG.md")


def case_dist_is_the_source():
    """The archive has what is committed and nothing else, is the same when it is made again, and make understands it."""
    committed = set(git("ls-tree", "-r", "--name-only", "HEAD").split("\n")) - {""}
    folder = mt.scratch("dist")
    made = []
    for name in ("a", "b"):
        build = os.path.join(folder, name)
        done = mt.execute(["make", "dist", "B=" + build], cwd=mt.TOP)
        mt.equal(done.status, 0, "status of make dist: %s" % done)
        made.append(os.path.join(build, "memtrace-%s.tar.gz" % version()))
    with open(made[0], "rb") as a, open(made[1], "rb") as b:
        mt.check(a.read() == b.read(), "made twice, two archives")
    prefix = "memtrace-%s/" % version()
    with tarfile.open(made[0]) as archive:
        names = {n.name[len(prefix):] for n in archive.getmembers() if not n.isdir() and n.name.startswith(prefix)}
        mt.equal(names, committed, "files of the archive")
        archive.extractall(folder)
    # without git, and with nothing compiled: make knows how to come by everything
    done = mt.execute(["make", "-n", "all", "B=build"], cwd=os.path.join(folder, prefix))
    mt.check(done.status == 0 and done.out.count(" -c -o ") > 200, "make -n of it: status %s, %s" % (done.status, done.err[-300:]))


mt.main()
