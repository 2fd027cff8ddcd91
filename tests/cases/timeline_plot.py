#!/usr/bin/env python3
"""memtrace timeline on a terminal: a plot whose heights are those of --json, with failures and phases where they were, and which fits."""
import fcntl
import functools
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../battery"))
import cases
import mt

STEPS = " ▁▂▃▄▅▆▇█"
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def shown(*words, rows=24, columns=80, **env):
    """Lines on a terminal of that size, without progress."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    child = subprocess.Popen([mt.MEMTRACE, "timeline", "-q", *words], env=mt.clean_env(**{"TERM": "xterm", "LC_ALL": "C.UTF-8", "NO_COLOR": "1", **env}),
                             stdin=subprocess.DEVNULL, stdout=slave, stderr=slave, start_new_session=True)
    os.close(slave)
    out = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:
            break
        if not piece:
            break
        out += piece
    os.close(master)
    mt.equal(child.wait(mt.WAIT), 0, out)
    return out.decode().replace("\r\n", "\n").splitlines()


@functools.lru_cache(None)
def busy():
    return mt.shimmed([mt.program("busy"), "20000", "1000", "300"]).trace.settle().path


@functools.lru_cache(None)
def device():
    path = os.path.join(mt.scratch("battery"), "t")
    cases.make(path, "capacity", 301, True)
    return path


class Plot:
    def __init__(self, lines):
        self.bars = [line.partition("┤" if "┤" in line else "│")[2] for line in lines if re.match(r".{10}[┤│]", line)]
        self.top = next(line for line in lines if re.match(r".{10}┤", line))[:9].strip()
        self.axis = next(line for line in lines if re.match(r".{10}└", line))[11:]

    def heights(self):
        """In eighths of a line, by column."""
        return [sum(STEPS.find(line[i]) for line in self.bars if i < len(line) and line[i] in STEPS) for i in range(max(map(len, self.bars)))]


def page(*words):
    return json.loads(mt.execute([mt.MEMTRACE, *words]).out)


def values(trace, columns, **wanted):
    """The highest value of each column, of the series."""
    timeline = page("timeline", "--json", trace)
    points = next(s["points"] for s in timeline["series"] if all(s[k] == v for k, v in wanted.items()))
    end = page("report", "--json", trace)["duration_s"]
    most = [0] * columns
    for p in points:
        first, last = p["time_s"] / end * columns, (p["time_s"] + timeline["width_s"]) / end * columns
        for i in range(int(first), columns):
            if i < last:
                most[i] = max(most[i], p["high_bytes"])
    return most


def reads(text):
    number, unit = text.split()
    return float(number) * UNITS[unit]


@mt.variants("heap", "pool")
def case_heights_are_the_figures(kind):
    trace = busy() if kind == "heap" else device()
    plot = Plot(shown(trace))
    columns, eighths = len(plot.axis), 8 * len(plot.bars)
    name = None if kind == "heap" else page("report", "--json", trace)["devices"][0]["name"]
    wanted, got = values(trace, columns, kind=kind, pid=None, device=name), plot.heights()
    scale = max(wanted) if kind == "heap" else max(max(wanted), max(values(trace, columns, kind="reserved", pid=None, device=name)))
    mt.check(abs(reads(plot.top) - scale) <= 0.006 * scale, "%s is the top of %d" % (plot.top, scale))
    mt.check(len([v for v in wanted if v]) > 10, "too little to plot")
    far = [(i, h, w * eighths / scale) for i, (h, w) in enumerate(zip(got + [0] * columns, wanted)) if abs(h - w * eighths / scale) > 1.01]
    mt.check(len(far) <= 2, "columns that are not as high: %s" % far)  # a moment of rounding at either end


def case_failures_are_marked():
    lines = shown(device())
    plot = Plot(lines)
    report = page("report", "--json", device())
    oom = report["devices"][0]["ooms"][0]
    column = int(oom["time_s"] / report["duration_s"] * len(plot.axis))
    mt.check(any(abs(m.start() - column) <= 1 for m in re.finditer(r"\^", plot.axis)), "no mark at %d: %s" % (column, plot.axis))
    mt.equal(plot.axis.count("^"), len({int(o["time_s"] / report["duration_s"] * len(plot.axis)) for o in report["devices"][0]["ooms"]}), plot.axis)
    mt.check(any("^ out of memory at" in line and "asked for" in line for line in lines), lines)


PROGRAM = """
import time
def work(n):
    kept.append(bytearray(n << 20))
    time.sleep(0.5)
kept = []
work(1)
work(2)
work(3)
"""


def case_phases_are_marked():
    """Each begins where it began."""
    path = os.path.join(mt.scratch("program"), "train.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    trace = mt.shimmed([mt.python(), path]).trace.settle().path
    report, lines = page("report", "--json", trace), shown(trace)
    line, columns = next(line for line in lines if line.startswith("    phases ")), len(Plot(lines).axis)
    long = [p for p in report["phases"] if p["visits"] == 1 and p["end_s"] - p["start_s"] > 0.3]
    mt.check(len(long) == 3, report["phases"])
    for phase in long:
        column = 11 + int(phase["start_s"] / report["duration_s"] * columns)
        mt.check("|" + phase["name"][:8] in line[column - 1:column + 10], "%s at %d in %s" % (phase["name"], column, line))


@mt.variants(*[(rows, columns, locale) for rows, columns in ((24, 80), (12, 60), (50, 132)) for locale in ("C.UTF-8", "C")])
def case_fits(rows, columns, locale):
    for trace in (busy(), device()):
        lines = shown(trace, rows=rows, columns=columns, LC_ALL=locale)
        plot = lines[:next(i for i, line in enumerate(lines) if line.startswith("PROCESS"))]  # the table has a least width
        mt.check(max(map(len, lines if columns >= 80 else plot)) <= columns, "columns: %s" % lines)
        mt.check(rows < 24 or len(lines) < rows, "%d lines" % len(lines))
        mt.check(locale != "C" or all(line.isascii() and "?" not in line for line in lines), lines)


def case_colours_where_the_terminal_has_them():
    mt.check(any("\x1b[" in line for line in shown(device(), NO_COLOR=None)), "none")
    mt.check(not any("\x1b" in line for line in shown(device())), "NO_COLOR")


def case_nothing_to_plot():
    """Of a trace without any memory there is the chart's head alone."""
    trace = mt.shimmed(["/bin/true"]).trace.settle().path
    mt.check(any(line.startswith(("PROCESS", "heap, live")) for line in shown("--device", "pinned", trace)), "no chart")


mt.main()
