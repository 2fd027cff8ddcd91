"""A function that takes a block, and then runs one in a sub-interpreter that does so too."""
import os
import sys

try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

BYTES = 1000003
if sys.version_info >= (3, 13):
    there = interpreters.create("legacy")
elif sys.version_info >= (3, 9):
    there = interpreters.create(isolated=False)
else:
    there = interpreters.create()
SOURCE = """
def inner():
    global keep
    keep = bytearray(%d)
inner()
""" % (BYTES - 1)


def outer():
    global keep
    keep = bytearray(BYTES - 1)
    assert interpreters.run_string(there, SOURCE) is None


outer()
os._exit(0)
