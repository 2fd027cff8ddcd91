#!/usr/bin/env python3
"""A wheel of what is built here, with the layout of those that are published: pip installs it in a fresh environment of every Python that is
found, and it records and reports there. tests/long/wheel_install.py does so with those of `make wheel`."""
import glob
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt
import wheels


def case_installs_and_records():
    done = mt.execute(["make", "--no-print-directory", "wheel-local", "-o", "all", "B=" + mt.BUILD], cwd=mt.TOP)
    mt.equal(done.status, 0, "status of make: %s" % done)
    (path,) = glob.glob(os.path.join(mt.BUILD, "wheel/local/*.whl"))
    wheels.every_python(path, libraries="the system's library")


mt.main()
