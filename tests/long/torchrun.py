#!/usr/bin/env python3
"""torchrun, recorded with two ranks that talk over gloo: one directory holds all of them, or with %r one for each rank."""
# timeout: 600
# serial: two torch processes
import os
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import mt

PROGRAM = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
t = torch.ones(1000) * (dist.get_rank() + 1)
dist.all_reduce(t)
if dist.get_rank() == 0:
    print(t.sum().item())
dist.destroy_process_group()
"""


def command():
    if not mt.has_module("torch"):
        mt.skip("no torch")
    path = os.path.join(mt.scratch(), "ranks.py")
    with open(path, "w") as file:
        file.write(PROGRAM)
    return [mt.python(), "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "29613", path]


def ranks(trace):
    """(rank of each process that ran the program, those of others)"""
    trace.settle()
    ours, others = [], set()
    for process in trace.report["processes"]:
        if os.path.basename(process["command"][-1]) == "ranks.py" and "torch.distributed.run" not in process["command"]:
            ours.append(process["rank"])
        else:
            others.add(process["rank"])
    return sorted(ours), others


def case_two_ranks():
    words = command()
    want = mt.plain(words, timeout=200, env={"OMP_NUM_THREADS": "1"})
    got = mt.shimmed(words, timeout=400, env={"OMP_NUM_THREADS": "1"})
    mt.equal((got.status, got.out), (want.status, want.out))
    got.trace.intact()
    mt.equal(ranks(got.trace)[0], [0, 1])


def case_a_directory_for_each_rank():
    """The launcher, which has no rank, is in rank 0's."""
    folder = mt.scratch("traces")
    got = mt.shimmed(command(), timeout=400, env={"OMP_NUM_THREADS": "1"}, output=os.path.join(folder, "%r"))
    mt.equal((got.status, got.out), (0, "3000.0\n"), got)
    mt.equal(sorted(os.listdir(folder)), ["0", "1"])
    (zero, launcher), (one, nobody) = (ranks(mt.Trace(os.path.join(folder, rank))) for rank in "01")
    mt.equal((zero, launcher, one, nobody), ([0], {None}, [1], set()), "ranks in each directory")


mt.main()
