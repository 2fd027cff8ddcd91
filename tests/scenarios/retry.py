"""A retry that succeeds: the cache is full of segments of the wrong size, the allocator returns them and asks again. Nothing fails."""
# standin: DEVICES=4G CONTEXT=128M
from account import GIB, MIB, bytes_of, pool, tell


def main():
    for size in range(100, 800, 100):  # each larger than any before
        block = bytes_of(size * MIB)
        del block
    before = pool()
    block = bytes_of(2 * GIB)
    tell(verdict=None, before=before, end=pool(), bytes=block.numel())


main()
