"""Calls main() of a shared object, through so many Python frames: for tracers that trace Python programs only, and for what Python
frames cost.

usage: call.py [-d FRAMES] LIBRARY [ARGUMENT...]
"""
import ctypes
import sys


class Layer:
    """Called through C, as PyTorch's modules are: two or three native frames for each of Python."""

    def __call__(self, frames, arguments):
        if frames > 1:
            return Layer()(frames - 1, arguments)
        return main(len(arguments), (ctypes.c_char_p * len(arguments))(*arguments))


words = sys.argv[1:]
depth = 1
if words[0] == "-d":
    depth, words = int(words[1]), words[2:]
main = ctypes.CDLL(words[0]).main
sys.exit(Layer()(depth, [a.encode() for a in words]))
