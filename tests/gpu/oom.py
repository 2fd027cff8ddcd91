"""Fills the first device, fails, and tells of it: `oom.py caught` goes on, `oom.py fatal` doesn't."""
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../scenarios"))
from account import GIB, MIB, bytes_of, failing, pool, tell  # noqa: E402


def main():
    request = int(2.5 * GIB) if pool()["total_bytes"] > 8 * GIB else 300 * MIB
    held = [bytes_of(8 * MIB)]
    while pool()["free_bytes"] > request:
        held.append(bytes_of(min(request, pool()["free_bytes"] - request // 2)))
    with failing(request, outcome=sys.argv[1]):
        held.append(bytes_of(request))
    tell(end=pool())


main()
