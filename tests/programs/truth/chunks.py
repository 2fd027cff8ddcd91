"""An ETL job reads a table in chunks and keeps three rows of each, as views: each keeps its whole chunk"""
# truth: leak chunks.py load
import sys
import numpy

COPY = "twin" in sys.argv or "release" in sys.argv


def load(number):
    return numpy.random.default_rng(number).random((3000, 40))


def clean(chunk):
    scaled = (chunk - chunk.mean(axis=0)) / chunk.std(axis=0)
    return scaled[scaled[:, 0] > 0]


def main():
    examples, total = [], 0.0
    for number in range(160):
        chunk = load(number)
        total += clean(chunk).sum()
        examples.append(chunk[:3].copy() if COPY else chunk[:3])
    print(len(examples), total)


main()
