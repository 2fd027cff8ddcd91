#!/usr/bin/env python3
"""torchrun with two ranks that talk over gloo: one directory holds all of them."""
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


def case_two_ranks():
    if not mt.has_module("torch"):
        mt.skip("no torch")
    path = os.path.join(mt.scratch(), "ranks.py")
    with open(path, "w") as file:
        file.write(PROGRAM)
    command = [mt.python(), "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "29613", path]
    want = mt.plain(command, timeout=200, env={"OMP_NUM_THREADS": "1"})
    got = mt.shimmed(command, timeout=400, env={"OMP_NUM_THREADS": "1"})
    mt.equal((got.status, got.out), (want.status, want.out))
    got.trace.intact()
    ranks = [p for p in got.trace.processes if any(a.endswith("ranks.py") for a in p["command"])]
    mt.check(len(ranks) >= 2, "processes: %s" % [p["command"] for p in got.trace.processes])


mt.main()
