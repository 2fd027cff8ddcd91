"""A stream of records is split in two by tee(); the second is read when the first has ended"""
# truth: backlog tee.py records
import itertools
import sys


def records(count):
    for number in range(count):
        yield bytearray(b"%08d" % number) * 60


def main():
    first, second = itertools.tee(records(60000))
    checked = 0
    for record in first:
        checked += record[7] == 48
        if "twin" in sys.argv:
            next(second)
    print(checked, sum(len(record) for record in second))


main()
