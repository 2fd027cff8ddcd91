"""A spike: a table is turned over, which needs several times its memory for a moment. pandas does it, or numpy where that is missing."""
try:
    import pandas
except ImportError:
    pandas = None
import numpy

ROWS, KEYS = 400_000, 50


def pivot(values):
    """Keys by groups of rows, as pandas' pivot_table makes it."""
    if pandas:
        frame = pandas.DataFrame({"row": numpy.arange(ROWS) // KEYS, "key": numpy.arange(ROWS) % KEYS, "value": values})
        return float(frame.pivot_table(index="row", columns="key", values="value").to_numpy().sum())
    wide = numpy.zeros((ROWS, KEYS), dtype=numpy.float64)
    wide[numpy.arange(ROWS), numpy.arange(ROWS) % KEYS] = values
    return float(wide.sum())


def main():
    values = numpy.ones(ROWS)
    print(pivot(values))


main()
