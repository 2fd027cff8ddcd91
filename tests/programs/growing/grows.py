"""growing FORM in Python; `block` is one bytearray that grows, `long` keeps numbers for as many seconds as LONG says and frees nothing else,
`turns` are ten long ones that keep 4 MiB each."""
import json
import os
import sys
import time

FORM, UNITS, EACH = sys.argv[1], 600, 100000
kept, table, text, units, held = [], {}, bytearray(), 0, 0
begin = time.monotonic()


def work():
    parts = [bytearray(30000 + 8000 * k) for k in range(10)]
    time.sleep(0.008)
    return len(parts)


def keep():
    kept.append(bytearray(EACH))
    return EACH


def insert(start, count):
    for k in range(start, start + count):
        table[k] = bytes(1000)
    return 1000 * count


def turn():
    """A long one: what it was for stays, what it needed does not."""
    table[units] = [bytearray(65536) for _ in range(64)]
    parts = [bytearray(70000 + 100 * k) for k in range(200)]
    time.sleep(0.7)
    return 64 * 65536 if parts else 0


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
    until = time.monotonic() + float(os.environ["LONG"])
    while time.monotonic() < until:
        kept.append(bytearray(EACH))
        held += EACH
        units += 1
        time.sleep(0.01)
if FORM in ("works", "warmup", "keeps", "cache", "block"):
    for number in range(UNITS):
        work()
        units += 1
        if FORM == "keeps" or (FORM == "warmup" and number < UNITS // 4):
            held += keep()
        if FORM == "cache":
            held += insert(100 * number, 100)
        if FORM == "block":
            text += bytes(EACH)
            held += EACH
print("ACCOUNT " + json.dumps({"kept_bytes": held, "units": units, "seconds": time.monotonic() - begin}), flush=True)
