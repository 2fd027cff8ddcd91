# truth(text): stopped load 16.0M; a file is read as a whole, then worked through in pieces, each with scratch memory
# truth(lines): stopped load 16.0M; the same as a file in memory
# truth(dict): stopped load 10.0M; a dictionary is made of keys at once
# pauses: 0 0.005
# short
import io
import os
import sys
import time

PAUSE = float(os.environ.get("PAUSE", "0"))
form = sys.argv[1]


def load():
    if form == "dict":
        return dict.fromkeys(range(300_000))
    text = "%d,shop,%d\n" * 1_200_000
    return text if form == "text" else io.StringIO(text)


def main():
    data, total = load(), 0
    for piece in range(200):
        scratch = bytearray(400_000)
        if form == "lines":
            total += sum(len(data.readline()) for _ in range(500))
        elif form == "text":
            total += data.count("shop", piece * 60_000, piece * 60_000 + 60_000)
        else:
            total += sum(key in data for key in range(piece * 1000, piece * 1000 + 1000))
        total += len(scratch)
        time.sleep(PAUSE)
    return total


main()
