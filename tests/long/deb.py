#!/usr/bin/env python3
"""The Debian package: lintian has no word against it, and on a machine that has nothing else it records and reports."""
# serial
# timeout: 3600
import glob
import gzip
import json
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import fresh
import mt

BUILT = mt.scratch("deb")


def package():
    """Built once, of what is committed."""
    found = glob.glob(BUILT + "/deb/memtrace_*.deb")
    if not found:
        mt.need("dpkg-buildpackage")
        mt.need("dh")
        done = mt.execute(["make", "-o", "setup-deb", "deb", "B=" + BUILT], cwd=mt.TOP, timeout=1800)
        mt.equal(done.status, 0, "status of make deb: %s" % done)
        found = glob.glob(BUILT + "/deb/memtrace_*.deb")
    return found[0]


def case_lintian_is_content():
    done = mt.execute([mt.need("lintian"), "--allow-root", "--fail-on", "error,warning", package()])
    mt.equal((done.status, done.out), (0, ""), "what lintian says")


def case_holds_multiarch_paths():
    listing = mt.execute(["dpkg-deb", "-c", package()]).out
    triplet = mt.execute(["dpkg-architecture", "-qDEB_HOST_MULTIARCH"]).out.strip()
    for name in ("usr/bin/memtrace", "usr/lib/%s/libmemtrace.so" % triplet, "usr/include/memtrace.h", "usr/share/man/man1/memtrace-report.1.gz",
                 "usr/share/bash-completion/completions/memtrace", "usr/share/zsh/vendor-completions/_memtrace", "usr/share/fish/vendor_completions.d/memtrace.fish"):
        mt.check("./" + name + "\n" in listing, "%s is not in %s" % (name, listing))


def case_writes_pages_with_scripts():
    if not os.path.isdir(os.path.join(mt.TOP, "build/page/node_modules/uplot")):
        mt.skip("npm's packages for the page are not installed (make setup-page)")
    folder = mt.scratch("unpacked")
    mt.equal(mt.execute(["dpkg-deb", "-x", package(), folder]).status, 0)
    for name, opened in (("usr/bin/memtrace", open), ("usr/share/doc/memtrace/page.notices.gz", gzip.open)):
        with opened(os.path.join(folder, name), "rb") as file:
            content = file.read()
        for package_of_npm in (b"uplot", b"d3-flame-graph"):
            mt.check(re.search(b"^%s [0-9.]+ \\(.*\\)\n" % package_of_npm, content, re.M), "%s is not in %s" % (package_of_npm, name))


def case_used_in_a_fresh_root():
    """Debian 12 with nothing but apt and the package: the library is found by its name alone, and finds its recorder."""
    with fresh.fresh("bookworm", ("ca-certificates",)) as root:
        shutil.copy(package(), root.path + "/memtrace.deb")
        status, text = root.run("apt-get update -qq && apt-get install -y -qq --no-install-recommends /memtrace.deb >/dev/null", 900)
        mt.equal(status, 0, "status of apt-get install: %s" % text[-800:])
        # two seconds, so that it gets a recorder
        held = "perl -e 'my @k = map { \"x\" x 1e6 } 1..30; for (1..40) { select undef, undef, undef, 0.05; my $x = \"y\" x 5e5; } print \"held\\n\"'"
        # in one go: with the end of each run() everything is killed that it has started, the recorder as well
        status, text = root.run("cd /tmp && LD_PRELOAD=libmemtrace.so MEMTRACE_OUTPUT=/tmp/t %s; for i in $(seq 300); do ls /tmp/t | grep -q ring || break; "
                                "sleep 0.2; done" % held, 200)
        mt.equal((status, text), (0, "held\n"), "perl with LD_PRELOAD=libmemtrace.so")
        status, text = root.run("ls /tmp/t; memtrace peak --json /tmp/t >/tmp/t.json && memtrace report /tmp/t", 120)
        mt.check(status == 0 and "HOST MEMORY" in text and ".trace" in text and ".ring" not in text, "report: status %s, %s" % (status, text))
        with open(root.path + "/tmp/t.json", encoding="utf-8") as file:
            mt.check(sum(s["bytes"] for s in json.load(file)["sites"]) > 30e6, "30 MB at the peak")
        status, text = root.run("cd /tmp && memtrace run -o /tmp/r -- %s" % held, 120)
        mt.check(status == 0 and "held" in text and "HOST MEMORY" in text, "memtrace run: status %s, %s" % (status, text))
        status, text = root.run("memtrace --version", 60)
        mt.check(status == 0 and "the system's library" in text, text)
        status, text = root.run("apt-get purge -y -qq memtrace >/dev/null; ls /usr/bin/memtrace /usr/lib/*/libmemtrace*", 120)
        mt.check("No such file" in text and "libmemtrace.so\n" not in text, "left: %s" % text)


mt.main()
