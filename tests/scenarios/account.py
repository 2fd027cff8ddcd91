"""A scenario's own accounting, in PyTorch's and the driver's words: what a report of it must say. Printed as lines `ACCOUNT {json}`,
of which tests/lib/gpu.py makes one dictionary.
"""
import contextlib
import json
import os
import time

import torch

import recording

recording.begin()

MIB, GIB = 1 << 20, 1 << 30
FLOAT = 4


def tell(**facts):
    print("ACCOUNT " + json.dumps(facts), flush=True)


def bytes_of(count, device=0):
    """A tensor of so many bytes that nobody writes to."""
    return torch.empty(int(count), dtype=torch.uint8, device="cuda:%d" % device)


def unused(stats, kind):
    """In the segments for blocks of up to 1 MiB, or of more."""
    return stats["reserved_bytes.%s.current" % kind] - stats["allocated_bytes.%s.current" % kind]


def pool(device=0):
    """The caching allocator's figures now."""
    torch.cuda.init()
    stats = torch.cuda.memory_stats(device)
    blocks = [b for s in torch.cuda.memory_snapshot() if s["device"] == device for b in s["blocks"]]
    free, total = torch.cuda.mem_get_info(device)
    sizes = sorted((b["size"] for b in blocks if b["state"] == "active_allocated"), reverse=True)
    return {"device": device, "allocated_bytes": stats["allocated_bytes.all.current"], "reserved_bytes": stats["reserved_bytes.all.current"],
            "unused_small_bytes": unused(stats, "small_pool"), "unused_large_bytes": unused(stats, "large_pool"),
            "largest_block_bytes": max(sizes, default=0), "largest_blocks": sizes[:5],
            "largest_hole_bytes": max([b["size"] for b in blocks if b["state"] == "inactive"], default=0),
            "large_hole_bytes": max([b["size"] for s in torch.cuda.memory_snapshot() if s["device"] == device and s["segment_type"] == "large"
                                     for b in s["blocks"] if b["state"] == "inactive"], default=0),
            "free_bytes": free, "total_bytes": total, "retries": stats["num_alloc_retries"], "ooms": stats["num_ooms"],
            "peak_rounding": stats["allocated_bytes.all.peak"] - stats["requested_bytes.all.peak"],
            "peak_allocated_bytes": stats["allocated_bytes.all.peak"], "peak_reserved_bytes": stats["reserved_bytes.all.peak"],
            "allocations": stats["allocation.all.allocated"], "frees": stats["allocation.all.freed"]}


def watch_pool():
    """For history()."""
    torch.cuda.memory._record_memory_history("all", context=None)


def history(device=0):
    """[ns, bytes asked for] after each change since watch_pool(), by the pool's own record."""
    offset, now, rows = time.clock_gettime_ns(time.CLOCK_REALTIME) - time.monotonic_ns(), 0, []
    for event in torch.cuda.memory._snapshot()["device_traces"][device]:
        change = {"alloc": event["size"], "free_completed": -event["size"]}.get(event["action"])
        if change:
            now += change
            rows.append([event["time_us"] * 1000 - offset, now])
    return rows


def ended(**tensors):
    """A run that ends well says what its pool had, and TENSORS of it as for kinds()."""
    end = pool()
    tell(end=end, kinds=kinds(**tensors), pools=[end], total_bytes=end["total_bytes"], histories={os.getpid(): history()},
         peaks={os.getpid(): end["peak_allocated_bytes"]})


def kinds(device=0, **tensors):
    """Bytes of the pool's blocks by what they are for: the tensors of each list, what PyTorch itself took before anything else, and
    `rest`: what nobody but a graph, or the caller's variables, refers to."""
    blocks = {b["address"]: b["size"] for s in torch.cuda.memory_snapshot() if s["device"] == device for b in s["blocks"]
              if b["state"] == "active_allocated"}
    found = {"workspace": WORKSPACE.get(device, 0)}
    for name, some in tensors.items():
        addresses = {t.untyped_storage().data_ptr() for t in some if t.is_cuda}
        found[name] = sum(blocks.pop(address) for address in addresses)
    return dict(found, rest=sum(blocks.values()) - found["workspace"])


def trained(model, optimizer=None):
    """For kinds(): what PyTorch says that a model and its optimizer have."""
    state = [] if optimizer is None else [t for of in optimizer.state.values() for t in of.values() if torch.is_tensor(t)]
    return {"parameters": list(model.parameters()), "gradients": [p.grad for p in model.parameters() if p.grad is not None],
            "optimizer": state}


WORKSPACE = {}


def take_workspace(device=0):
    """Has cuBLAS's workspaces made now, this thread's and that of the backward pass, so that their bytes are known."""
    torch.cuda.init()
    before = torch.cuda.memory_allocated(device)
    small = torch.empty(32, 32, device="cuda:%d" % device, requires_grad=True)
    (small @ small).sum().backward()
    del small
    WORKSPACE[device] = torch.cuda.memory_allocated(device) - before


def asked_of_pool(requested):
    """What a request takes of a block."""
    return max(512, (requested + 511) // 512 * 512)


@contextlib.contextmanager
def failing(requested, outcome="fatal", device=0, **more):
    """The allocation within fails; its circumstances are told while everything is still alive. REQUESTED and what is in MORE may be
    functions."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        size = requested(error) if callable(requested) else requested
        more = {name: fact() if callable(fact) else fact for name, fact in more.items()}
        now = pool(device)
        tell(total_bytes=now["total_bytes"], oom=dict(now, at_ns=time.monotonic_ns(), requested_bytes=size, tried_bytes=asked(error),
                                                      outcome=outcome, **more))
        time.sleep(0.4)  # whoever samples devices at a failure sees them as they are
        if outcome == "fatal":
            raise
    else:
        raise SystemExit("it did not run out of memory")


def asked(error):
    """Bytes of the request as the message rounds them; for requests that only the framework knows."""
    words = str(error).split("Tried to allocate ")[1].split()
    return float(words[0]) * {"bytes": 1, "KiB": 1 << 10, "MiB": MIB, "GiB": GIB}[words[1].rstrip(".")]


def fill(reserved, device=0):
    """One block, such that the pool has so many bytes reserved."""
    return bytes_of((reserved - torch.cuda.memory_reserved(device)) // (2 * MIB) * 2 * MIB, device)


def hole(kept, lost, device=0):
    """A block of KEPT bytes whose segment has a hole of LOST more."""
    whole = bytes_of(kept + lost, device)
    del whole
    return bytes_of(kept, device)
