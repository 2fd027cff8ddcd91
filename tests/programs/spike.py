"""A spike: a table is turned over by pandas, which needs several times its memory for a moment."""
import numpy
import pandas

ROWS, KEYS = 2_000_000, 50


def pivot(values):
    """Keys by groups of rows."""
    frame = pandas.DataFrame({"row": numpy.arange(ROWS) // KEYS, "key": numpy.arange(ROWS) % KEYS, "value": values})
    return float(frame.pivot_table(index="row", columns="key", values="value").to_numpy().sum())


def main():
    values = numpy.ones(ROWS)
    print(pivot(values))


main()
