"""An ETL job cleans addresses by a function with a cache that has no bound, and every address comes once"""
# truth: leak memoize.py clean
import functools
import sys


@functools.lru_cache(maxsize=100 if "twin" in sys.argv else None)
def clean(text):
    words = [word.strip(" .,;").lower() for word in text.split()]
    return " ".join(sorted(words))


def rows(count):
    for number in range(count):
        yield "%d, Long Street; Flat %d. Town %d, " % (number, number % 40, number % 900) + "Near The Old Mill, " * 60


def main():
    longest = 0
    for row in rows(25000):
        longest = max(longest, len(clean(row)))
    print(longest)


main()
