"""Expandable segments: pages are mapped as the pool grows, some are returned by empty_cache(), and a request fails."""
# standin: DEVICES=2G CONTEXT=64M
import os

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = os.environ["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"

import torch

from account import MIB, bytes_of, failing, tell


def main():
    small = [bytes_of(100 << 10) for _ in range(40)]
    large = [bytes_of(30 * MIB) for _ in range(30)]
    del small[::3], large[5:20]
    torch.cuda.empty_cache()
    large += [bytes_of(7 * MIB) for _ in range(9)]
    del large[::2]
    tell(verdict="capacity")
    with failing(1900 * MIB):
        large.append(bytes_of(1900 * MIB))


main()
