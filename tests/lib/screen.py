"""The text of `memtrace report`, read as a person would: figures with what their rounding leaves open, tables by their rows.

    screen = Screen(done.trace.tool("report").out)
    screen.failure()["free"].shows(account["free_bytes"], "free")
"""
import re

import mt

UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
FIGURE = r"[\d,]+(?:\.\d+)? (?:[KMGT]i)?B"
ROWS = "blocks in use|unused in pool|outside pool|neighbours?|allocated|free|not known|unexplained|total"


class Figure:
    """A number as printed: its value, and half of its last digit's worth."""

    def __init__(self, text, unit=None):
        number, _, own = text.partition(" ")
        scale = UNITS[own or unit] if own or unit else 1
        digits = len(number.partition(".")[2])
        self.text, self.value = text, float(number.replace(",", "")) * scale
        self.half = 0 if scale == 1 and not digits else 0.5 * scale / 10 ** digits

    def shows(self, exact, what, less=0, more=0):
        """It is the exact number, rounded; what it may have LESS or MORE is for what the program can't know."""
        low, high = exact - less - self.half * 1.001, exact + more + self.half * 1.001
        mt.check(low <= self.value <= high, "%s: the screen says %s, the program %r" % (what, self.text, exact))

    def __repr__(self):
        return self.text


class Screen:
    def __init__(self, text):
        self.text, self.lines = text, text.splitlines()

    def find(self, pattern, what):
        found = re.search(pattern, self.text, re.M)
        mt.check(found, "no %s on the screen: %s" % (what, self.text))
        return found

    def section(self, pattern):
        """The lines after the one that matches, until an empty one."""
        for i, line in enumerate(self.lines):
            if re.search(pattern, line):
                end = next((k for k in range(i + 1, len(self.lines)) if not self.lines[k].strip()), len(self.lines))
                return line, self.lines[i + 1:end]
        mt.fail("no line %s on the screen: %s" % (pattern, self.text))

    def has(self, heading):
        return re.search("^" + heading, self.text, re.M) is not None

    # ---- the failure

    def failure(self):
        """Figures asked, exact (bytes), block (None where it is what was asked), free, short, total; pid, device."""
        head = self.find(r"^OUT OF MEMORY  (?P<device>[GN]PU \S+) \(\S+, (?P<total>%s)\)  pid (?P<pid>\d+) \S+  .*$" % FIGURE, "failure")
        line = self.find(r"^  asked (?P<exact>[\d,]+) bytes = (?P<asked>{0})(?: \(a (?:segment|page) of (?P<block>{0})\))?"
                         r"   free (?P<free>{0})   short by (?P<short>{0})".format(FIGURE), "line of figures")
        found = {k: v and Figure(v) for k, v in line.groupdict().items()}
        return dict(found, total=Figure(head["total"]), pid=int(head["pid"]), device=head["device"], line=head[0])

    # ---- why

    def why(self):
        """[(kind, evidence, Figure, certainty)] of those that hold; {kind: evidence} of those ruled out, or open."""
        held, out, last, kind = [], {}, None, None
        if not self.has("WHY"):
            return held, out
        for line in self.section(r"^WHY ")[1]:
            one = re.match(r"  \d (.{17})(.*?) +(%s)   (high|medium|low)$" % FIGURE, line)
            no = re.match(r"  (?=no |[a-z ]+\?)(.{19})(.*)$", line)
            if one:
                kind = None
                last = [one[1].strip(), one[2], Figure(one[3]), one[4]]
                held.append(last)
            elif no:
                last, kind = None, no[1].removeprefix("no ").rstrip("? ")
                out[kind] = no[2]
            elif re.match(r"  (and|ruled out:?|can't tell:) ", line):  # of a summary, which only names them
                last = kind = None
            elif last:
                last[1] += " " + line.strip()
            elif kind:
                out[kind] += " " + line.strip()
        return [tuple(row) for row in held], out

    def verdict(self, kind):
        """The first row of WHY, which must be of that kind."""
        held, _ = self.why()
        mt.check(held, "nothing is said to be the cause: %s" % self.text)
        mt.equal((held[0][0], held[0][3]), (kind, "high"), "the first cause and its certainty")
        return held[0]

    def numbers(self, evidence, pattern):
        """The figures of a text by the pattern's groups."""
        found = re.search(pattern, evidence)
        mt.check(found, "%r does not say %s" % (evidence, pattern))
        return [Figure(g) for g in found.groups()]

    # ---- where the memory was

    def ledger(self):
        """[(pid or None, row's name, Figure, the line's rest)]; percents and sums are checked here."""
        head, lines = self.section(r"^[GN]PU \S+ (WHEN IT FAILED|AT ITS PEAK) ")
        unit, rows, pid = re.search(r" (GiB|MiB) +% ", head)[1], [], None
        for line in lines:
            found = re.search(r"(?:^| )(%s) +(-?[\d.]+) +(-?[\d.]+)(.*)$" % ROWS, line)
            mt.check(found, "a row of the ledger can't be read: %r" % line)
            number = re.match(r"\d+", line)
            pid = int(number[0]) if number else None if found[1] in ("free", "unexplained", "total") else pid
            rows.append((pid, found[1], Figure(found[2], unit), found[4].strip(), Figure(found[3])))
        mt.equal(rows[-1][1], "total", "the ledger's last row")
        total = rows[-1][2]
        for _, name, figure, _, percent in rows:
            exact = 100 * figure.value / total.value
            percent.shows(exact, "per cent of %s" % name, 100 * figure.half / total.value + 0.01, 100 * figure.half / total.value + 0.01)
        return [row[:4] for row in rows]

    def adds_up(self):
        rows = self.ledger()
        parts, total = rows[:-1], rows[-1][2]
        mt.check(any(r[1] == "free" for r in parts), "the ledger has no row of what is free: %s" % self.text)
        off = sum(r[2].value for r in parts) - total.value
        mt.check(abs(off) <= sum(r[2].half for r in rows) * 1.001, "the rows of the ledger differ from its total by %d bytes" % off)
        return rows

    def compare_ledger(self, wanted):
        """WANTED: {(pid or None, name): bytes}; every row of the screen must be in it, and the other way round."""
        rows = {(pid, name): figure for pid, name, figure, _ in self.adds_up()}
        mt.equal(set(rows), set(wanted), "rows of the ledger")
        for key, figure in rows.items():
            figure.shows(wanted[key], "%s of %s" % (key[1], key[0]))

    def parts(self, pid):
        """{who: Figure} of the row outside the pool."""
        head, _ = self.section(r"^[GN]PU \S+ (WHEN IT FAILED|AT ITS PEAK) ")
        unit = re.search(r" (GiB|MiB) +% ", head)[1]
        rest = next((r[3] for r in self.ledger() if r[:2] == (pid, "outside pool")), None)
        mt.check(rest, "no row of what lies outside the pool: %s" % self.text)
        return {name: Figure(number, unit) for name, number in re.findall(r"(\w+) ([\d.]+)", rest)}

    def peaks(self):
        """{pid: (last, most)} of the time line of the device."""
        rows = [re.match(r"(\d+) .* (%s) +(%s)$" % (FIGURE, FIGURE), line) for line in self.section(r"^OVER TIME ")[1]]
        mt.check(rows and all(rows), "OVER TIME can't be read: %s" % self.text)
        return {int(r[1]): (Figure(r[2]), Figure(r[3])) for r in rows}

    def devices(self):
        """The rows of DEVICES: {name: {total, peak, pool, reserved, calls, blocks}}."""
        row = r"^(\S+) +\S+ +({0}) +({0}) +\S+ s +({0}|-) +({0}|-) +([\d,]+) +([\d,]+|-) ".format(FIGURE)
        found = {}
        for line in self.section(r"^DEVICES ")[1]:
            words = re.match(row, line)
            mt.check(words, "a row of DEVICES can't be read: %r" % line)
            found[words[1]] = dict(zip(("total", "peak", "pool", "reserved", "calls", "blocks"),
                                       (None if w == "-" else Figure(w) for w in words.groups()[1:])))
        return found

    # ---- for what

    def categories(self):
        """(all, {category: Figure}); all is None where the screen names no sum."""
        head = re.search(r"^ALIVE THEN \(\S+: (%s) at" % FIGURE, self.text, re.M)
        lines = self.section("^ALIVE THEN " if head else "^FOR WHAT ")
        text = " ".join(lines[1] if head else [lines[0][12:], *lines[1]])
        text = re.split(r" (?:5 largest|largest|by line) ", " ".join(text.split()))[0]
        found = {name: Figure(figure) for name, figure in re.findall(r"([a-z][a-z ]*) (%s)" % FIGURE, text)}
        mt.check(found, "no categories in %r" % text)
        return head and Figure(head[1]), found

    def largest(self):
        return Figure(self.find(r"^  (?:5 )?largest +(%s) " % FIGURE, "largest block")[1])

    # ---- growth

    def growth(self):
        """Steps: {number: (high, low)}, count; rate, its error, acceleration (each a Figure or None)."""
        head = self.find(r"^GROWTH  (.+) of (\d+) \S+; ([\d,]+) steps \(([\d.e-]+) m?s each\)", "growth")
        unit = self.find(r"^  ([KMG]iB) high", "high points")[1]
        rows = [self.find(r"^ +%s((?: +[\d.]+)+)$" % name, name)[1].split() for name in ("step", unit + " high", "low")]
        shape = self.find(r"^  shape +(\w+): ({0})/step now \(95 %: \+/- ({0})\)(?:, \+({0})/step each 100 steps)?".format(FIGURE), "shape")
        points = {int(n): (Figure(h, unit), Figure(l, unit)) for n, h, l in zip(*rows)}
        mt.equal(len(points), len(rows[1]), "columns of the growth table")
        return {"track": head[1], "pid": int(head[2]), "count": int(head[3].replace(",", "")), "points": points, "kind": shape[1],
                "rate": Figure(shape[2]), "error": Figure(shape[3]), "acceleration": shape[4] and Figure(shape[4])}

    def growing(self):
        """(the step since when, [(per cent, site, Figure, blocks a step, bytes of a block)])."""
        head, lines = self.section("^WHAT GROWS ")
        rows = []
        for line in lines:
            row = re.match(r" +(\d+) %  (.*?) +({0})(?:  ([\d.]+) blocks? more a step, ({0}) each)?$".format(FIGURE), line)
            if row:
                rows.append((int(row[1]), row[2], Figure(row[3]), row[4] and Figure(row[4]), row[5] and Figure(row[5])))
        mt.check(rows, "WHAT GROWS can't be read: %s" % self.text)
        return int(re.search(r"since step (\d+)", head)[1]), rows

    def processes(self):
        """{pid: (heap's peak, exit)} of the table of processes."""
        row = r"^ +(\d+)  .*? +({0}) +({0}) +({0}) +[\d,.]+(?: [MG])? +(exit \d+|signal \d+|\S+)".format(FIGURE)
        found = [re.match(row, line) for line in self.section("^PROCESS ")[1]]
        mt.check(found and all(found), "PROCESS can't be read: %s" % self.text)
        return {int(r[1]): (Figure(r[2]), r[5]) for r in found}

    # ---- the machine

    def host(self):
        """{row: Figure} of HOST."""
        cells = re.findall(r"([a-z][a-z ]*[a-z]) +(-?%s) +-?[\d.]+ %%" % FIGURE, "\n".join(self.section("^HOST at ")[1]))
        mt.check(len(cells) >= 4, "HOST can't be read: %s" % self.text)
        return {name: Figure(text) for name, text in cells}

    def host_adds_up(self, machine):
        """The rows of HOST are the machine's memory."""
        head, lines = self.section("^HOST at ")
        total = Figure(re.search(r"of (%s)" % FIGURE, head)[1])
        total.shows(machine, "the machine's memory")
        found = [f for line in lines for f in re.findall(r"(-?)(%s) +[\d.]+ %%" % FIGURE, line)]
        rows = [Figure(text) for _, text in found]
        mt.check(len(rows) >= 4, "HOST can't be read: %s" % lines)
        off = sum(-r.value if sign else r.value for (sign, _), r in zip(found, rows)) - total.value
        mt.check(abs(off) <= sum(r.half for r in rows) + total.half, "the rows of HOST differ from its total by %d bytes" % off)


def line_of(path, text):
    """The number of the only line that has that text."""
    with open(path, encoding="utf-8") as file:
        found = [number for number, line in enumerate(file, 1) if text in line]
    mt.equal(len(found), 1, "lines with %r in %s" % (text, path))
    return found[0]


def memory_of_machine():
    with open("/proc/meminfo") as file:
        return int(re.search(r"^MemTotal: +(\d+) kB", file.read(), re.M)[1]) << 10
