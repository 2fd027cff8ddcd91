"""A table of numbers is read line by line, into small objects: lines and words come and go, and none of the objects does"""
# truth: none
import os


def load(path):
    table = {}
    with open(path, encoding="ascii") as file:
        for line in file:
            key, *values = line.rstrip().split(",")
            table[key] = [float(value) for value in values]
    return table


def main():
    path = "table_%d.csv" % os.getpid()
    with open(path, "w", encoding="ascii") as file:
        file.writelines("%d,%d.5,%d.25,%d\n" % (n, n, n, n) for n in range(120000))
    try:
        print(len(load(path)))
    finally:
        os.unlink(path)


main()
