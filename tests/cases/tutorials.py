#!/usr/bin/env python3
"""What docs/TUTORIALS.md tells a reader to run is run: each line of output that it shows is there, in that order, whatever the figures."""
# timeout: 400
import os
import re
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import gpu
import mt


def sections():
    """{title: [(language, more, text)] of its fenced blocks}"""
    with open(os.path.join(mt.TOP, "docs/TUTORIALS.md"), encoding="utf-8") as file:
        parts = re.split(r"^## (.*)$", file.read(), flags=re.M)
    return {title: re.findall(r"^```(\w+) ?(\S*)\n(.*?)^```$", text, re.M | re.S) for title, text in zip(parts[1::2], parts[2::2])}


def commands(text):
    """[(command, lines of output)]"""
    found = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def masked(line):
    """Without figures, their units and how far apart words stand. `found steadily` or `at the same pace` stays."""
    line = re.sub(r"[0-9][0-9.,]*", "N", re.sub(r"[\u2581-\u2588]+", "", line))
    return re.sub(r" +", " ", re.sub(r"N (B|[KMGT]iB)\b", "N B", line)).strip()


def shown(want, got):
    lines, at = [masked(line) for line in got.splitlines()], 0
    for line in want:
        if line == "...":
            continue
        mt.check(masked(line) in lines[at:], "%r is not in what is left of %s" % (masked(line), "\n".join(lines)))
        at += lines[at:].index(masked(line)) + 1


@mt.variants("A training runs out of host memory", "A training runs out of device memory", "A C++ server grows", long=["DataLoader workers that grow"])
def case_runs_as_it_says(title):
    blocks = sections()[title]
    folder, ran = mt.scratch("tutorial"), 0
    for language, name, text in blocks:
        if language != "console":
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
            continue
        if "python " in text and name not in ("device", "fails") and not mt.has_module("torch"):
            mt.skip("PyTorch is not installed")
        python = gpu.python() if name == "device" else mt.python()
        env = mt.clean_env(PATH=":".join([os.path.dirname(mt.MEMTRACE), os.path.dirname(python), os.environ["PATH"]]), COLUMNS="80", **(gpu.environment(devices="1G") if name == "device" else {}))
        for command, want in commands(text):
            done = mt.execute(["sh", "-c", command], env=env, cwd=folder)
            mt.check(done.status == (1 if name in ("device", "fails") else 0), "%s: %s" % (command, done))
            shown(want, done.out + done.err)
            ran += 1
    mt.check(ran, "nothing to run in %s" % title)


mt.main()
