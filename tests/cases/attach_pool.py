#!/usr/bin/env python3
"""Attached to a program of PyTorch: what its pool had before is known, block by block, as the pool itself says."""
# timeout: 600
import json
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import attaching
import gpu
import mt
import torchbooks
from agree import BEFORE

PROGRAM = os.path.join(mt.TOP, "tests/programs/pool_before.py")


def target_of(threads=0, expandable=False):
    env = gpu.environment(devices="4G")
    if expandable:
        env["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    return attaching.Target([gpu.python(), "-W", "ignore", PROGRAM, str(threads)], env=env)


def books_of(trace):
    """What the events say that the pool and the driver have in the end: blocks, and memory under them."""
    books = torchbooks.Books()
    for e in (r for r in torchbooks.records(trace) if r["record"].startswith("device-")):
        if e["record"] == "device-alloc":
            mt.check(e["addr"] not in books.of_class(e["class"]), "it was alive already: %s" % e)
            books.alloc(e)
        elif e["record"] == "device-free" and e["addr"] in books.of_class(e["class"]):
            books.free(e)
        elif e["record"] == "device-map":
            mt.check(e["addr"] not in books.mapped, "it was mapped already: %s" % e)
            books.mapped[e["addr"]] = e["size"]
        elif e["record"] == "device-unmap":
            books.mapped.pop(e["addr"], None)
    return books


@mt.variants(("segments", 0, False), ("expandable", 0, True), ("threads", 3, False), ("threads, expandable", 3, True))
def case_pool_is_known(_, threads, expandable):
    target = target_of(threads, expandable).start()
    mt.equal(target.ask(""), "more")
    own = json.loads(target.ask(""))
    mt.equal(target.end(), ("", "", 5))
    trace = target.trace().intact()
    books = books_of(trace)
    blocks = {b["address"]: (b["size"], s["stream"]) for s in own for b in s["blocks"] if b["state"] == "active_allocated"}
    mt.check(len(blocks) > 80 and any(s["is_expandable"] for s in own) == expandable, "the program does what it is for")
    mt.equal(books.pool, blocks, "blocks of the pool")
    mt.equal(books.reserved(), sum(s["total_size"] for s in own), "memory under it")
    told = {s["memory"]: s["bytes"] for s in trace.sites() if [f["function"] for f in s["stack"]] == [BEFORE]}
    mt.equal(set(told), {"device", "pool"}, "kinds of what is from before")
    mt.check(told["pool"] > 20 << 20, told)
    grows = [s for s in trace.sites() if [f["function"] for f in s["stack"]] == [BEFORE] and s["kind"] != "none"]
    mt.equal(grows, [], "what was there before doesn't grow")
    mt.check("blocks from before are not known, but those of PyTorch's pool" in " ".join(trace.summary().split()), trace.summary())


mt.main()
