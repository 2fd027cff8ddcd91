"""growing FORM in Python; `block` is one bytearray that grows, `long` keeps numbers for as many seconds as LONG says and frees nothing else,
`turns` are ten long ones that keep 4 MiB each; what `memo` asks for is new each time, what `recalls` asks for was asked before,
and both drop it and rest; of what Net.forward makes `layers` are kept by the loop, of `values` only how many there were."""
import functools
import json
import os
import sys
import time

FORM, UNITS, EACH = sys.argv[1], 600, 100000
kept, table, text, units, held = [], {}, bytearray(), 0, 0
begin = due = time.monotonic()


def work():
    """At the same pace however busy the machine is."""
    global due
    parts = [bytearray(30000 + 8000 * k) for k in range(10)]
    due = (due if units else time.monotonic()) + 0.008
    time.sleep(max(0, due - time.monotonic()))
    return len(parts)


def keep():
    kept.append(bytearray(EACH))
    return EACH


def insert(start, count):
    for k in range(start, start + count):
        table[k] = bytes(1000)
    return 1000 * count


def turn():
    """A long one, however busy the machine is: what it was for stays, what it needed does not."""
    table[units] = [bytearray(65536) for _ in range(64)]
    parts = [bytearray(70000 + 100 * k) for k in range(200)]
    time.sleep(max(0, begin + 0.75 * (units + 1) - time.monotonic()))
    return 64 * 65536 if parts else 0


@functools.lru_cache(None)
def compiled(key):
    """Loops within, that make what it needs and what it returns."""
    rows = []
    for layer in range(10):
        needed = [bytearray(1000 + key % 7) for _ in range(20)]
        rows.append([bytes(one[:600]) + bytes(200) for one in needed])
    return rows


def rest():
    """Of what was kept nothing is left; the program takes as long again to end."""
    compiled.cache_clear()
    time.sleep(time.monotonic() - begin)


class Net:
    def forward(self):
        return [bytearray(EACH // 4) for _ in range(4)]


if FORM == "turns":
    for _ in range(10):
        held += turn()
        units += 1
if FORM in ("fill", "works"):
    for _ in range(600):
        held += keep()
if FORM == "map":
    held += insert(0, 60000)
if FORM == "long":
    while time.monotonic() < begin + float(os.environ["LONG"]):
        kept.append(bytearray(EACH))
        held += EACH
        units += 1
        time.sleep(max(0, begin + 0.01 * units - time.monotonic()))  # however busy the machine is
for number in range(UNITS if FORM in ("memo", "recalls") else 0):
    for _ in range(60):  # as many as there happen to be: nothing that a loop's turns could be told by
        parts = [bytearray(3000 + 800 * k) for k in range(5 + (number * number) % 7)]
    time.sleep(max(0, begin + 0.012 * number - time.monotonic()))  # however busy the machine is
    rows = compiled(number if FORM == "memo" else number % 150)
    held += sum(sys.getsizeof(cell) for row in rows for cell in row) if FORM == "memo" or number < 150 else 0
    units += 1
if FORM in ("works", "warmup", "keeps", "cache", "block", "layers", "values"):
    for number in range(UNITS):
        work()
        units += 1
        if FORM == "keeps" or (FORM == "warmup" and number < UNITS // 4):
            held += keep()
        if FORM in ("layers", "values"):
            made = Net().forward()
            kept.append(made if FORM == "layers" else len(made))
            held += EACH if FORM == "layers" else 0
        if FORM == "cache":
            held += insert(100 * number, 100)
        if FORM == "block":
            text += bytes(EACH)
            held += EACH
print("ACCOUNT " + json.dumps({"kept_bytes": held, "units": units, "seconds": time.monotonic() - begin}), flush=True)
if FORM in ("memo", "recalls"):
    rest()
