#!/usr/bin/env python3
"""A wheel that is built from the sources again, in another folder and with nothing kept of the first build, has the same bytes."""
# timeout: 1800
import glob
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt


@mt.variants("x86_64", "aarch64")
def case_built_again_it_is_the_same(machine):
    first = glob.glob(os.path.join(mt.BUILD, "wheel", "*_%s.whl" % machine))
    if not first or not os.path.exists(os.path.join(mt.TOP, "build/wheel", machine, "root/.complete")):
        mt.skip("no wheel for %s; make wheel builds it" % machine)
    source = os.path.join(mt.scratch("again"), "elsewhere")
    os.makedirs(source + "/build/wheel/" + machine)
    for name in ("Makefile", "memtrace.h", "LICENSE", "README.md", "shim", "analyzer", "format", "scripts", "python", "page"):
        path = os.path.join(mt.TOP, name)
        (shutil.copytree if os.path.isdir(path) else shutil.copy2)(path, os.path.join(source, name))
    shutil.copytree(os.path.join(mt.TOP, "tests/unwind"), source + "/tests/unwind")
    shutil.copytree(os.path.join(mt.TOP, "tests/standin"), source + "/tests/standin")
    os.makedirs(source + "/build/page")
    os.symlink(os.path.join(mt.TOP, "build/page/node_modules"), source + "/build/page/node_modules")
    os.symlink(os.path.join(mt.TOP, "build/venv-wheel"), source + "/build/venv-wheel")
    os.symlink(os.path.join(mt.TOP, "build/wheel", machine, "root"), source + "/build/wheel/%s/root" % machine)
    done = mt.execute(["make", "-j%d" % (os.cpu_count() or 1), "B=build", "wheel-" + machine], cwd=source, timeout=1500)
    mt.equal(done.status, 0, "status of make: %s" % done)
    (again,) = glob.glob(source + "/build/wheel/*.whl")
    mt.equal(os.path.basename(again), os.path.basename(first[0]))
    with open(again, "rb") as a, open(first[0], "rb") as b:
        mt.check(a.read() == b.read(), "built twice, two wheels")


mt.main()
