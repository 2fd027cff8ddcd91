"""A cap: the process may use a quarter of the device, and fails with three quarters free and without asking the driver."""
# standin: DEVICES=8G CONTEXT=256M
import torch

from account import GIB, MIB, bytes_of, failing, tell


def main():
    torch.cuda.set_per_process_memory_fraction(0.25)
    held = [bytes_of(200 * MIB) for _ in range(9)]
    tell(verdict="limit", limit_bytes=2 * GIB)
    with failing(400 * MIB):
        held.append(bytes_of(400 * MIB))


main()
