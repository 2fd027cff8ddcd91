"""What the programs beside it have in common: units of work that are counted, however they end, and which advice is followed.

usage of each: NAME.py [--twin | --follow WHAT] [--account]

--account: and says how many bytes of the device were in use behind each unit, as PyTorch counts them.
"""
import atexit
import functools
import json
import sys
import time

import torch

import account  # noqa: F401  (of tests/scenarios: begins the recording)

TWIN = "--twin" in sys.argv
FOLLOW = sys.argv[sys.argv.index("--follow") + 1] if "--follow" in sys.argv else None
take = functools.partial(torch.empty, dtype=torch.uint8, device="cuda")  # so many bytes; C, so that its caller is the innermost line
PAUSE = 0.02  # for a unit: a device that computes takes its time
ACCOUNT = "--account" in sys.argv
STATE = {"units": 0, "of": 0, "ended": False}


def follows(what):
    """Whether this run is the one without the cause, or does as was advised."""
    return TWIN or FOLLOW == what


def units(count):
    """0, 1, ...: one for each unit of work, such as a step or a request."""
    STATE["of"] = count
    for i in range(count):
        time.sleep(PAUSE)
        yield i
        STATE["units"] = i + 1
        if ACCOUNT:
            STATE.setdefault("live", []).append(torch.cuda.memory_allocated())
    STATE["ended"] = True


@atexit.register
def tell():
    print("ACCOUNT " + json.dumps(STATE), flush=True)
