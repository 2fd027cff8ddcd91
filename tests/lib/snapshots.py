"""PyTorch's memory snapshots, read and compared: its own with those that memtrace writes."""
import pickle

import mt

# What a trace does not have: PyTorch's own words for compiled code and users.
UNKNOWN = {"compile_context", "user_metadata", "pool_id"}


def load(path):
    with open(path, "rb") as file:
        return pickle.load(file)


def segments_of(snapshot):
    """What a free block was once is in no trace. Who asked for a segment PyTorch leaves open, and of one from before its history nobody knows."""
    out = []
    for s in snapshot["segments"]:
        blocks = [{k: v for k, v in b.items() if b["state"] != "inactive" or k not in ("requested_size", "frames")} for b in s["blocks"]]
        out.append({**{k: v for k, v in s.items() if k != "frames"}, "blocks": blocks})
    return out


def same(ours, theirs, what):
    """Says the first difference alone."""
    for i, (mine, other) in enumerate(zip(ours, theirs)):
        if mine != other:
            mt.equal(mine, other, "%s %d of %d" % (what, i, len(theirs)))
    mt.equal(len(ours), len(theirs), what)
