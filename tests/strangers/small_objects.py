# truth(keeps): leak note 40.6M; tuples and strings of up to some hundred bytes, which the interpreter takes from its arenas, are kept by key
# truth(ring): passes note 3.4M; the same, of which the last 5,000 are kept
# pauses: 0 0.00005
import os
import sys
import time

PAUSE = float(os.environ.get("PAUSE", 0))
KEEPS = sys.argv[1:] == ["keeps"]
notes = {}


def note(number):
    notes[number] = ("user%d" % number, [number * 1.5, number + 1000, "x" * (300 + number % 7)])


for number in range(60_000):
    note(number)
    words = [str(number + k) for k in range(5)]
    page = bytearray(9000)
    if not KEEPS:
        notes.pop(number - 5000, None)
    if number % 20 == 0:
        time.sleep(20 * PAUSE)
