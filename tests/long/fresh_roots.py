#!/usr/bin/env python3
"""README's two commands on machines that were never used: Debian 12 and 13 from debootstrap, with git, make and certificates and nothing else.
They are given what this machine reaches package registries with: its resolver, certificates, apt's and pip's configuration."""
# serial
# timeout: 10800
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import fresh
import mt

PLACE = "/root/a b/memtrace"  # a path with a blank, where demo has to work
def everything_is_asked_for_at_once(root):
    """Who has no rights is told one line to type, and needs no other."""
    os.chmod(root.path + "/root", 0o755)
    mt.equal(mt.execute(["chown", "-R", "1000:1000", root.path + PLACE]).status, 0, "status of chown")
    status, text = root.run("make demo", 300, user="somebody", place=PLACE)
    lines = [line for line in text.splitlines() if line.startswith("setup: ")]
    mt.check(status == 2 and len(lines) == 1, "status %s: %s" % (status, text[-600:]))
    mt.check("python3-venv" in lines[0] and "sudo" not in lines[0] and "as root:" in lines[0], lines[0])
    typed = lines[0].partition("as root:")[2].strip()
    status, text = root.run("{ %s; } >/dev/null 2>&1" % typed, 1200, place=PLACE)
    mt.equal(status, 0, "status of %s" % typed)


@mt.variants("bookworm", "trixie")
def case_two_commands(suite):
    with fresh.fresh(suite, ("git", "make", "ca-certificates")) as root:
        mt.equal(mt.execute(["git", "clone", "-q", mt.TOP, root.path + PLACE]).status, 0, "status of git clone")
        user = "root"
        if suite == "bookworm":
            everything_is_asked_for_at_once(root)
            user = "somebody"
        status, text = root.run("make demo", 3600, user, PLACE)
        mt.check(status == 0 and "LARGEST OWNERS" in text, "make demo: status %s: %s" % (status, text[-1500:]))
        said = re.search(r"^setup: PyTorch.* into .*: \d+ packages, (\d+)\+? MB$", text, re.M)
        mt.check(said and int(said[1]) > 50, "what is downloaded is not said: %s" % text[:1500])
        # the tests preload libraries, which no path with a blank can be
        status, _ = root.run("cp -a . /root/memtrace && chown -R 0:0 /root/memtrace && rm -rf /root/memtrace/build/venv", 300, place=PLACE)
        mt.equal(status, 0, "status of cp")
        status, text = root.run("cd /root/memtrace && make -j$(nproc) check", 5400, place=PLACE)
        last = text.strip().splitlines()[-1] if text.strip() else ""
        failed = [line for line in text.splitlines() if ": not ok - " in line]
        mt.check(status == 0 and " 0 failed" in last, "make check: status %s, %s: %s" % (status, last, "; ".join(failed)[:2000]))


mt.main()
