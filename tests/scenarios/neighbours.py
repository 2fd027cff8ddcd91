"""Other processes: 32 MiB are asked and 28.25 MiB free, of 23.52 GiB two neighbours hold 15.24 (incident 2).

usage: neighbours.py [--traced]    the larger neighbour is traced as well
"""
# standin: DEVICES=23.52G CONTEXT=0.43G
import json
import os
import subprocess
import sys
import time

from account import GIB, MIB, bytes_of, failing, fill, pool, tell

CONTEXT = int(0.43 * GIB)
# As the driver rounds what is not the context.
SIZES = [CONTEXT + round((size * GIB - CONTEXT) / (2 * MIB)) * 2 * MIB for size in (3.80, 11.44)]


def start(size, traced):
    environment = {k: v for k, v in os.environ.items() if traced or not k.startswith("MEMTRACE_SESSION")} | ({} if traced else {"LD_PRELOAD": ""})
    child = subprocess.Popen([sys.executable, os.path.join(os.path.dirname(__file__), "neighbour.py"), "0", str(size - CONTEXT)],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    return child, json.loads(child.stdout.readline())["pid"]


def main():
    traced = "--traced" in sys.argv
    children = [start(SIZES[0], False), start(SIZES[1], traced)]
    bytes_of(2 * MIB)
    left = pool()["free_bytes"]
    held = fill(2 * MIB + (left - int(28.25 * MIB)) // (2 * MIB) * 2 * MIB)
    while pool()["free_bytes"] >= 30 * MIB:
        held = [held, bytes_of(2 * MIB)]
    tell(verdict="other_process", context_bytes=CONTEXT, traced=traced,
         neighbours=[{"pid": pid, "bytes": size} for (_, pid), size in zip(children, SIZES)])
    time.sleep(1.5)  # long enough for them to be seen, once a second
    try:
        with failing(32 * MIB):
            held = [held, bytes_of(32 * MIB)]
    finally:
        for child, _ in children:
            child.stdin.close()
            child.wait()


main()
