"""Calls main() of a shared object with arguments: a native workload for tracers that only trace Python.

usage: call.py FILE.so ARGUMENT...
"""
import ctypes
import sys

arguments = [a.encode() for a in sys.argv[1:]]
sys.exit(ctypes.CDLL(sys.argv[1]).main(len(arguments), (ctypes.c_char_p * len(arguments))(*arguments)))
