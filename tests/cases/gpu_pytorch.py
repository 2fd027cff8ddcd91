#!/usr/bin/env python3
"""The trace equals PyTorch's own accounting: the real CUDA build's caching allocator on the stand-in devices."""
# timeout: 600
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt
import torchbooks


@mt.variants(("segments", 1, False), ("expandable", 1, True), ("two processes", 2, False), ("two processes, expandable", 2, True))
def case_equals_pytorch(name, processes, expandable):
    torchbooks.check(name, processes, expandable)


mt.main()
