"""Caught: the batch is halved until it fits, as find_executable_batch_size does; the run goes on and ends well."""
# standin: DEVICES=4G CONTEXT=128M
from torch import nn

from account import MIB, bytes_of, failing, pool, tell

SAMPLE = 40 * MIB  # activations of one


def step(weights, batch):
    activations = bytes_of(batch * SAMPLE)
    return weights, activations


def main():
    weights = nn.Linear(8192, 8192, device="cuda")
    batch, failures = 256, 0
    while batch:
        if batch * SAMPLE + 300 * MIB < 3.8 * 1024 * MIB:
            break
        with failing(batch * SAMPLE, outcome="caught"):
            step(weights, batch)
        failures += 1
        batch //= 2
    for _ in range(20):
        step(weights, batch)
    tell(verdict=None, failures=failures, batch=batch, end=pool())


main()
