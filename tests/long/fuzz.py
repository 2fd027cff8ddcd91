#!/usr/bin/env python3
"""All that tests/cases/fuzz.py has a tenth of: traces cut at every byte of a block, cut and with bits turned at random."""
# timeout: 900
import os
import sys

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path[:0] = [os.path.join(TESTS, "lib"), os.path.join(TESTS, "cases")]
import fuzz
import mt


def case_cut_at_every_byte_of_the_first_block():
    fuzz.cut_the_first_block(1)


def case_cut_at_1000_random_places():
    fuzz.cut_at_random_places(1000)


def case_random_bits():
    fuzz.random_bits(800)


@mt.variants(*fuzz.COMMANDS)
def case_other_commands(command):
    fuzz.other_commands(command, both=True)


def case_random_bits_of_device_events():
    fuzz.random_bits_of_device_events(160)


def case_damaged_samples():
    fuzz.damaged_samples(40, 97)


mt.main()
