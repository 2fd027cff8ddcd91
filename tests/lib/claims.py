"""A screen whose numbers are claimed, each by a comparison; one that nobody claims is an error by name.

    seen = Claims(done)                                      # done.trace, .books, .real_offset
    seen.claim(r"(FIGURE) in all", unused, what="unused")    # a group is compared with a number, a (least, most) or a text
    seen.finish()
"""
import datetime
import os
import re

import mt
import screen
from places import calls, files_of, is_function, is_in, source
from screen import FIGURE, Figure

NUMBER = re.compile(r"\d(?:[\d,]*\d)?(?:\.\d+)?")
TIME = r"\d+:\d\d:\d\d|\d+(?:\.\d+)? s"
PLACE = r"[\w.+-]+\.(?:py|c|h|cc|cpp|pyx):\d+"
CLOCK_NS = 5000000        # the trace's clock, the wall clock's milliseconds and the program's are compared


class Line:
    def __init__(self, text, section):
        self.text, self.section, self.claimed = text, section, []


def join(text):
    """The screen's lines; what was wrapped is one line again, with the figures of a verdict before its evidence."""
    lines, section = [], ""
    indents = {"WHY": 21, "GROWS": 21, "FOR WHAT": 12, "SIZES": 12, "WHAT TO DO": 4, "NOT KNOWN": 11}
    for raw in text.splitlines():
        head = re.match(r"(?:LARGEST OWNERS of \S+|[A-Z][A-Z ]*[A-Z]\b|[GN]PU \d+ [A-Z ]+[A-Z]|memtrace report|more:)", raw)
        section = head[0] if head else section
        indent = indents.get(section, 0)
        alive = (section == "ALIVE THEN" and raw.startswith("  ") and not re.match(r"  (?:5 largest|largest|by line) ", raw)
                 and not lines[-1].text.startswith(section))
        if not head and raw.strip() and (alive or indent and raw.startswith(" " * indent)):
            lines[-1].text += " " + raw.strip()
            continue
        held = re.match(r"(  [\d ] .{17})(.*?) +(%s)   (high|medium|low)$" % FIGURE, raw) if section in ("WHY", "GROWS") else None
        lines.append(Line("%s%s   %s   %s" % (held[1], held[3], held[4], held[2]) if held else raw, section))
    count = sum(len(NUMBER.findall(line.text)) for line in lines)
    mt.equal(count, len(NUMBER.findall(text)), "numbers on the screen, wrapped or not")
    return lines


def within(text, low, high, what):
    """The figure is one of those when rounded."""
    figure = Figure(text)
    mt.check(low - figure.half * 1.001 <= figure.value <= high + figure.half * 1.001,
             "%s: the screen says %s, the truth is %r to %r" % (what, text, low, high))


class Claims(screen.Screen):
    def __init__(self, done):
        super().__init__(done.trace.text)
        self.done, self.rows, self.report = done, join(self.text), done.trace.report
        start = datetime.datetime.strptime(self.report["start"], "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=datetime.timezone.utc)
        self.origin = int(start.timestamp() * 1e3) * 1000000 - done.real_offset  # as time.monotonic_ns()

    def each(self, pattern, section=None):
        """(line, match) wherever the pattern is found. FIGURE, TIME and PLACE in it are what they say."""
        pattern = re.compile(re.sub(r"\b(FIGURE|TIME|PLACE)\b", lambda w: {"FIGURE": FIGURE, "TIME": TIME, "PLACE": PLACE}[w[0]], pattern))
        return [(line, found) for line in self.rows if section is None or re.match(section, line.section) for found in pattern.finditer(line.text)]

    def take(self, line, found, group, want, what):
        """One group of a match is compared, and claimed."""
        text = found[group]
        if isinstance(want, tuple):
            within(text, *want, what=what)
        elif isinstance(want, str):
            mt.equal(text, want, what)
        elif callable(want):
            mt.check(want(text), "%s: %r in %r is not so" % (what, text, line.text))
        else:
            Figure(text).shows(want, what)
        line.claimed.append(found.span(group))

    def claim(self, pattern, *wants, what, section=None, count=None):
        """Each group, wherever the pattern is found; at least once, or as often as COUNT says (which may have 0)."""
        hits = self.each(pattern, section)
        mt.check(len(hits) in count if count is not None else hits, "%s is %d times on the screen: %s" % (what, len(hits), self.text))
        for line, found in hits:
            for group, want in enumerate(wants, 1):
                if found[group] is not None:
                    self.take(line, found, group, want, what)
        return bool(hits)

    def time(self, low_ns, high_ns):
        """For take(): a time on the screen is one of those between, in the run's seconds."""
        def is_then(text):
            value, half = self.seconds(text)
            return low_ns - self.origin - CLOCK_NS <= (value + half) * 1e9 and (value - half) * 1e9 <= high_ns - self.origin + CLOCK_NS
        return is_then

    @staticmethod
    def seconds(text):
        if ":" in text:
            hours, minutes, seconds = map(int, text.split(":"))
            return hours * 3600 + minutes * 60 + seconds + 0.5, 0.5
        number = text.split()[0]
        return float(number), 0.5 / 10 ** len(number.partition(".")[2])

    def finish(self):
        left = ["%r in %r" % (found[0], line.text) for line in self.rows for found in NUMBER.finditer(line.text)
                if not any(a <= found.start() and found.end() <= b for a, b in line.claimed)]
        mt.check(not left, "numbers that nobody compares: %s" % "; ".join(left))

    def names(self):
        """Numbers that are part of a name, or of a place in the code."""
        self.claim(r"\b[GN]PU (\d+)\b", "0", what="the device's number", count=range(99))
        self.claim(r"\b((?:cuda|npu):\d+)\b", lambda name: name in {d["name"] for d in self.report["devices"]}, what="a device's name",
                   count=range(99))
        self.claim(r"\b(GPU-[0-9a-f]{6}|NPU-\d+)\b", lambda text: any(d["uuid"].startswith(text) for d in self.report["devices"]), what="a UUID",
                   count=range(99))
        self.claim(r"\b(?!x\d)([A-Za-z_]\w*\d\w*)", lambda text: True, what="an identifier", count=range(99))
        self.claim(r"((?:\.\.)?[\w.+-]*\.so(?:\.\d+)*)(?=\s|$)", lambda text: files_of("*" + text.lstrip(".") if text.startswith("..") else text),
                   what="a library", count=range(99))
        self.claim(r"([\w.+-]*\.so[.\d]*\+0x[0-9a-f]+)", self.is_in_library, what="a place in a library without symbols", count=range(99))
        self.claim(r"<frozen (?:\w+\.)*(\w+>:\d+)", lambda text: source(text.replace(">", ".py")), what="a line of the interpreter's own",
                   count=range(99))
        for line, found in self.each(r"(PLACE)(?: ([\w.<>]+))?"):
            before = re.search(r"([\w.<>]+)  +$", line.text[:found.start()])  # a table has the function in front
            named = [name for name in (found[2], before and before[1]) if name and not name.endswith("..") and is_function(name)]
            if found[1].partition(":")[0].endswith(".py"):
                self.take(line, found, 1, lambda place: source(place) and (not named or any(is_in(place, name) or calls(place, name) for name in named)),
                          "a line of a function")
            else:
                self.take(line, found, 1, lambda place: True, "a place that debug information says: symbolize.py compares those with addr2line")

    @staticmethod
    def is_in_library(text):
        name, _, offset = text.rpartition("+")
        return any(int(offset, 16) < os.path.getsize(path) for path in files_of(name))

    def ranks(self):
        """Causes and advice are counted from 1."""
        for section in ("WHY", "WHAT TO DO"):
            for i, (line, found) in enumerate(self.each(r"^  (\d) [a-z]", section), 1):
                self.take(line, found, 1, i, "its rank")
