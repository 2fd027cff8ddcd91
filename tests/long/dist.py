#!/usr/bin/env python3
"""The source archive builds where nothing but it is, and what it builds records and reports."""
# timeout: 1200
import os
import sys
import tarfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt


def case_archive_builds():
    folder = mt.scratch("dist")
    done = mt.execute(["make", "dist", "B=" + folder], cwd=mt.TOP)
    mt.equal(done.status, 0, "status of make dist: %s" % done)
    (name,) = [n for n in os.listdir(folder) if n.endswith(".tar.gz")]
    with tarfile.open(os.path.join(folder, name)) as archive:
        archive.extractall(folder)
    source = os.path.join(folder, name[:-len(".tar.gz")])
    done = mt.execute(["make", "-j%d" % (os.cpu_count() or 1), "CFLAGS=-O1"], cwd=source, timeout=1000)
    mt.equal(done.status, 0, "status of make: %s" % done)
    built = os.path.join(source, "build/memtrace")
    done = mt.execute([built, "run", "-o", os.path.join(folder, "t"), "--", "sh", "-c", "echo recorded"])
    mt.check(done.status == 0 and done.out == "recorded\n" and "HOST MEMORY" in done.err, done)


mt.main()
