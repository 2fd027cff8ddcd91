#!/usr/bin/env python3
"""The trace equals PyTorch's own accounting: the real CUDA build's caching allocator on the stand-in devices."""
# timeout: 600
import os
import re
import subprocess
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import gpu
import mt
import torchbooks


@mt.variants(("segments", 1, False), ("expandable", 1, True), ("two processes", 2, False), ("two processes, expandable", 2, True))
def case_equals_pytorch(name, processes, expandable):
    torchbooks.check(name, processes, expandable)


def case_beside_a_larger_neighbour():
    """What the recorded program has is shown in its parts, also where a program that is not recorded has more."""
    folder = mt.scratch("standin")
    other = [gpu.python(), os.path.join(gpu.SCENARIOS, "neighbour.py"), "0", str(900 << 20)]
    with subprocess.Popen(other, env=mt.clean_env(**gpu.environment(folder, devices="2G")), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as held:
        held.stdout.readline()
        text = "import ctypes, torch, time; ctypes.PyDLL(None).memtrace_start()\n" \
               "x = torch.empty(200 << 20, dtype=torch.uint8, device='cuda'); time.sleep(3)"
        done = gpu.run([gpu.python(), "-c", text], env={"MEMTRACE_PAUSED": "1"}, folder=folder, devices="2G")
        held.stdin.close()
    mt.equal(done.status, 0, done.err)
    screen = done.trace.tool("report", "--all").out
    pid, = [p["pid"] for p in done.trace.report["processes"]]
    mt.check(re.search(r"^%d +\S+ +neighbour " % held.pid, screen, re.M), "the neighbour: " + screen)
    mt.check(re.search(r"^%d +\S+ +blocks in use +200\.0 .* its trace$" % pid, screen, re.M), "its own: " + screen)


mt.main()
