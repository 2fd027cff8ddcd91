"""Each number on the first screen is claimed by a comparison with what the program, its driver, its allocator or the kernel say of the
same thing; one that nobody claims is an error by name.

    done = audit.scenario("incident1")              # a run of which everything is known
    seen = audit.Audit(done)                        # claims what screens have in common
    seen.claim(r"(FIGURE) in all", unused, what="unused")    # a group is compared with a number, a (least, most) or a text
    seen.finish()
"""
import datetime
import os
import re
import time

import books
import gpu
import mt
import screen
import watch
from places import calls, files_of, is_function, is_in, source
from screen import FIGURE, Figure

NUMBER = re.compile(r"\d(?:[\d,]*\d)?(?:\.\d+)?")
TIME = r"\d+:\d\d:\d\d|\d+(?:\.\d+)? s"
PLACE = r"[\w.+-]+\.(?:py|c|h|cc|cpp|pyx):\d+"
TEMPORARY_SLACK = 8       # of a run: whether a block is freed by another thread before its own allocates again is as fast as they are
PEAK_SLACK = 4096         # of a peak: calls of two threads may be in another order in the trace than in the books
CLOCK_NS = 5000000        # the trace's clock, the wall clock's milliseconds and the program's are compared
SLACK = 6 << 20           # of resident memory: between the sampler's look and ours a library's pages come in
NO_LINE = "", 0           # in the books: of a thread that runs no Python
KERNEL_SHARE = 0.01       # of a machine: what other programs may do between two of our looks, 20 a second
MACHINE = {"free": ("MemFree",), "kernel": ("Slab", "KernelStack", "PageTables", "Percpu"), "page cache": ("Cached", "Buffers", "SwapCached")}


def scenario(name, *arguments, **options):
    """A run as gpu.scenario() makes it, with its books, with what /proc said of it, and when it began and ended."""
    path = os.path.join(mt.scratch("books"), "books")
    env, preload = books.of_run(path)
    offset = time.clock_gettime_ns(time.CLOCK_REALTIME) - time.monotonic_ns()
    with watch.Watch(path) as seen:
        began = time.monotonic_ns()
        done = gpu.scenario(name, *arguments, paused=True, env=env, preload=preload, **options)
        done.trace.settle()  # a neighbour may outlive it
        done.ended = time.monotonic_ns()
    done.began, done.watch, done.books, done.real_offset = began, seen, books.Books(path), offset
    done.command_line = " ".join(["python", name + ".py", *map(str, arguments)])
    return done


class Driver:
    """The stand-in's log of one device."""

    def __init__(self, done, device=0):
        self.log, self.ended = done.log, done.ended
        self.rows = [e for e in done.log if e["device"] == device and e["op"] in ("alloc", "free")]
        self.context = {e["pid"]: e["bytes"] for e in self.rows if e["kind"] == "context" and e["op"] == "alloc"}
        self.traced = set(done.books.process)
        self.course = []  # (event, {pid: bytes without its context}) after each change
        held = {}
        for e in self.rows:
            held = {**held, e["pid"]: e["charged"] - self.context.get(e["pid"], 0)}
            self.course.append((e, held))

    def until(self, event):
        """When its thread called the driver next: between these moments the call returned."""
        return next((e["ns"] for e in self.log if e["ns"] > event["ns"] and e["tid"] == event["tid"]), self.ended)

    def most(self, pid):
        return max(held.get(pid, 0) for _, held in self.course)

    def last(self, pid):
        return self.course[-1][1].get(pid, 0)

    def calls(self):
        return sum(e["op"] == "alloc" and e["kind"] == "linear" and e["pid"] in self.traced for e in self.rows)

    def sum(self, held):
        return sum(n for pid, n in held.items() if pid in self.traced)

    def peak(self):
        """(the event of the traced processes' greatest sum, who had what)."""
        return max(self.course, key=lambda row: self.sum(row[1]))

    def since(self, pid):
        first = next(e for e in self.rows if e["pid"] == pid)
        return first["ns"], self.until(first)


class Line:
    def __init__(self, text, section):
        self.text, self.section, self.claimed = text, section, []


def join(text):
    """The screen's lines; what was wrapped is one line again, with the figures of a verdict before its evidence."""
    lines, section = [], ""
    indents = {"WHY": 21, "FOR WHAT": 12, "DO": 4, "NOT KNOWN": 11}
    for raw in text.splitlines():
        head = re.match(r"(?:LARGEST OWNERS of \S+|[A-Z][A-Z ]*[A-Z]\b|[GN]PU \d+ [A-Z ]+[A-Z]|memtrace report|more:)", raw)
        section = head[0] if head else section
        indent = indents.get(section, 0)
        alive = (section == "ALIVE THEN" and raw.startswith("  ") and not re.match(r"  (?:5 largest|largest|by line) ", raw)
                 and not lines[-1].text.startswith(section))
        if not head and raw.strip() and (alive or indent and raw.startswith(" " * indent)):
            lines[-1].text += " " + raw.strip()
            continue
        held = re.match(r"(  \d .{17})(.*?) +(%s)   (high|medium|low)$" % FIGURE, raw) if section == "WHY" else None
        lines.append(Line("%s%s   %s   %s" % (held[1], held[3], held[4], held[2]) if held else raw, section))
    count = sum(len(NUMBER.findall(line.text)) for line in lines)
    mt.equal(count, len(NUMBER.findall(text)), "numbers on the screen, wrapped or not")
    return lines


def within(text, low, high, what):
    """The figure is one of those when rounded."""
    figure = Figure(text)
    mt.check(low - figure.half * 1.001 <= figure.value <= high + figure.half * 1.001,
             "%s: the screen says %s, the truth is %r to %r" % (what, text, low, high))


class Audit(screen.Screen):
    def __init__(self, done):
        super().__init__(done.trace.tool("report").out)
        self.done, self.rows, self.report = done, join(self.text), done.trace.report
        start = datetime.datetime.strptime(self.report["start"], "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=datetime.timezone.utc)
        self.origin = int(start.timestamp() * 1e3) * 1000000 - done.real_offset  # as time.monotonic_ns()
        self.driver = Driver(done)
        first = min(p.begin_ns for p in done.books.process.values())
        mt.between(done.began - CLOCK_NS, self.origin, first + CLOCK_NS, "when the first process began, by the report")
        mt.between(1, len(self.lines), 45, "lines of the screen")
        mt.between(1, max(map(len, self.lines)), 100, "columns of the screen")
        self.everywhere()

    # ---- claims

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

    # ---- what screens have in common

    def everywhere(self):
        self.title()
        self.names()
        for claims in (self.ranks, self.failed, self.where, self.devices_table, self.over_time, self.host_memory, self.process_table, self.machine, self.owners,
                       self.mappings, self.smaller):
            claims()

    def title(self):
        done = self.done
        command = re.escape(done.command_line)
        self.claim(r"^memtrace report   (\S.*?)   (\d+) process(?:es)? on (\S+)   (\S+ \S+) UTC   (TIME)$",
                   lambda text: re.match(re.escape(text.rstrip(".")), done.command_line) and (not text.endswith("..") or command),
                   len(done.books.process), os.uname().nodename,
                   time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime((self.origin + done.real_offset) / 1e9)),
                   self.time(self.last_call_ns(), done.ended), what="title")
        self.duration = self.each(r"^memtrace report .*   (TIME)$")[0][1][1]

    def last_call_ns(self):
        """When the program did at least something still."""
        return max(e["ns"] for e in self.done.log if e["pid"] in self.done.books.process)

    def names(self):
        """Numbers that are part of a name, or of a place in the code."""
        self.claim(r"\b[GN]PU (\d+)\b", "0", what="the device's number", count=range(99))
        self.claim(r"\b(?:cuda|npu):(\d+)\b(?!.*\bDEVICES)", lambda n: "cuda:%s" % n in {d["name"] for d in self.report["devices"]}, what="a device's name",
                   count=range(99))
        self.claim(r"\b(GPU-[0-9a-f]{6})\b", lambda text: any(d["uuid"].startswith(text) for d in self.report["devices"]), what="a UUID",
                   count=range(99))
        self.claim(r"\b(?!x\d)([A-Za-z_]\w*\d\w*)", lambda text: True, what="an identifier", count=range(99))
        self.claim(r"((?:\.\.)?[\w.+-]*\.so(?:\.\d+)*)(?=\s|$)", lambda text: files_of("*" + text.lstrip(".") if text.startswith("..") else text),
                   what="a library", count=range(99))
        for line, found in self.each(r"(PLACE)(?: ([\w.<>]+))?"):
            before = re.search(r"([\w.<>]+)  +$", line.text[:found.start()])  # a table has the function in front
            named = [name for name in (found[2], before and before[1]) if name and is_function(name)]
            if found[1].partition(":")[0].endswith(".py"):
                self.take(line, found, 1, lambda place: source(place) and (not named or any(is_in(place, name) or calls(place, name) for name in named)),
                          "a line of a function")
            else:
                self.take(line, found, 1, lambda place: True, "a place that debug information says: symbolize.py compares those with addr2line")

    def ranks(self):
        """Causes and advice are counted from 1."""
        for section in ("WHY", "DO"):
            for i, (line, found) in enumerate(self.each(r"^  (\d) [a-z]", section), 1):
                self.take(line, found, 1, i, "its rank")

    def failed(self):
        if not self.has("OUT OF MEMORY"):
            return
        done, said = self.done, self.done.account["ooms"][-1]
        refused = [e for e in done.log if e["op"] == "fail"][-1]
        self.claim(r"^OUT OF MEMORY .*\(\S+, (FIGURE)\)  pid (\d+) python  (TIME)  uncaught, exit (\d+)$", said["total_bytes"], refused["pid"],
                   self.time(refused["ns"], said["at_ns"]), done.status, what="the failure")
        asked, tried = said["requested_bytes"], said["tried_bytes"]
        rounding = 0.005 * (1 << 20)  # of what the exception says
        self.claim(r"^  asked ([\d,]+) bytes = (FIGURE)(?: \(a segment of (FIGURE)\))?   free (FIGURE)   short by (FIGURE)", asked, asked,
                   (tried - rounding, tried + rounding), said["free_bytes"],
                   (tried - rounding - said["free_bytes"], tried + rounding - said["free_bytes"]), what="what was asked for")
        self.claim(r"^  no limit +(FIGURE) was free, (FIGURE) asked for", said["free_bytes"], (tried - rounding, tried + rounding), what="no limit",
                   count=(0, 1))
        self.claim(r"^  no fragmentation +(FIGURE) are unused in the pool", said["reserved_bytes"] - said["allocated_bytes"], what="no fragmentation",
                   count=(0, 1))
        outside = self.driver.context[refused["pid"]] + self.libraries(refused["pid"])
        self.claim(r"^  no outside pool +(FIGURE) of ours are outside the pool$", outside, what="no outside pool", count=(0, 1))
        lines = self.each(r"^  (PLACE) ([\w.<>]+): (.*)$", "OUT OF MEMORY")
        mt.check(lines, "no line of the program that asked")
        for line, found in lines:
            self.take(line, found, 3, lambda text: source(found[1]) == text.strip(), "the line's text")

    # ---- devices

    def pool_at_peak(self):
        """{pid: (least, most) of blocks in use} when the traced processes had most of the driver and, while that was so, most in blocks, by the
        pools' own histories of [ns, bytes asked for]: a block is larger than what was asked for, but never more than the pool's peak."""
        driver, most = self.driver, self.driver.sum(self.driver.peak()[1])
        ends = [e["ns"] for e, _ in driver.course[1:]] + [driver.ended]
        spans = [(e["ns"], end) for (e, held), end in zip(driver.course, ends) if driver.sum(held) == most]
        events = sorted((ns, int(pid), blocks) for pid, history in self.done.account["histories"].items() for ns, blocks in history)
        now, best = {}, {}
        for ns, pid, blocks in events:
            now = {**now, pid: blocks}
            if any(begin <= ns <= end for begin, end in spans) and sum(now.values()) >= sum(best.values()):
                best = now
        held = driver.peak()[1]
        return {pid: (size, min(held[pid] - self.libraries(pid), self.done.account["peaks"][str(pid)])) for pid, size in best.items()}

    def libraries(self, pid):
        """What a program took of the driver beside its pool."""
        return self.done.account.get("libraries", {}).get(str(pid), 0)

    def where(self):
        """The ledger: PyTorch's own figures of each pool, the driver's of the rest."""
        failed, done, driver = self.has("OUT OF MEMORY"), self.done, self.driver
        if failed:
            said = done.account["ooms"][-1]
            event = [e for e in done.log if e["op"] == "fail"][-1]
            held, when = [h for e, h in driver.course if e["ns"] < event["ns"]][-1], (event["ns"], said["at_ns"])
            blocks, free = {event["pid"]: (said["allocated_bytes"],) * 2}, said["free_bytes"]
        else:
            event, held = driver.peak()
            blocks, free = self.pool_at_peak(), event["free"]
            when = event["ns"], driver.ended
        self.claim(r"^[GN]PU \d+ (?:WHEN IT FAILED|AT ITS PEAK) +(TIME) ", self.time(*when), what="the ledger's moment")
        owner, total = None, done.account["total_bytes"]
        unit = self.each(r"^[GN]PU \d+ (?:WHEN IT FAILED|AT ITS PEAK) .* (GiB|MiB) +% ")[0][1][1]
        # where the sampler did not come by while memory stood still, the ledger says less: nothing of what is free, and contexts are unexplained
        listed = self.each("outside pool|neighbour", "[GN]PU")
        unexplained = 0 if failed or listed else sum(driver.context[pid] for pid in driver.traced & set(held))
        sums = {}
        for line, row in self.each(r"^(\d+)?.*?(%s) +(-?[\d.]+) +(-?[\d.]+)(?: +(TIME|before))?(?:  .*)?$" % screen.ROWS, "[GN]PU"):
            owner = int(row[1]) if row[1] else None if row[2] in ("free", "not known", "unexplained", "total") else owner
            outside = driver.context.get(owner, 0) + self.libraries(owner)
            reserved = held.get(owner, 0) - self.libraries(owner)
            least, most = blocks.get(owner, (0, 0))
            exact = {"blocks in use": (least, most), "unused in pool": (reserved - most, reserved - least), "outside pool": (outside,) * 2,
                     "not known": (total - sum(high for _, high in sums.values()), total - sum(low for low, _ in sums.values())),
                     "neighbour": (reserved + outside,) * 2, "free": (free,) * 2, "unexplained": (unexplained,) * 2, "total": (total,) * 2}[row[2]]
            sums[owner, row[2]] = exact
            self.take(line, row, 3, lambda text: within(text + " " + unit, *exact, what=row[2]) is None, row[2])
            self.take(line, row, 4, tuple(100 * n / total for n in exact), "its part of the device")
            if row[1]:
                self.take(line, row, 1, lambda text: int(text) in driver.context or int(text) in held, "a process of the device")
            if row[5] and row[5] != "before":
                self.take(line, row, 5, self.time(*driver.since(owner)), "since when")
            for part in re.finditer(r"(context|program) ([\d.]+)", line.text):
                size = {"context": driver.context[owner], "program": self.libraries(owner)}[part[1]]
                self.take(line, part, 2, lambda text: Figure(text, unit).shows(size, part[1]) is None, "what lies outside the pool")
        parts = [n for (_, name), n in sums.items() if name != "total"]
        if (None, "free") in sums:
            mt.between(sum(low for low, _ in parts), total, sum(high for _, high in parts), "the ledger's rows by the program's and the driver's account")

    def devices_table(self):
        done = self.done
        for line, row in self.each(r"^cuda:(\d+) +\S+ +(FIGURE) +(FIGURE) +(TIME) +(FIGURE) +(FIGURE) +([\d,]+) +([\d,]+) +(\d+) +-$", "DEVICES"):
            number = int(row[1])
            driver, pools = Driver(done, number), [pool for pool in done.account["pools"] if pool["device"] == number]
            event, held = driver.peak()
            memory, libraries = driver.sum(held), sum(self.libraries(pid) for pid in held)
            exact = [number, pools[0]["total_bytes"], memory, self.time(event["ns"], driver.until(event)), self.most_in_pools(pools),
                     memory - libraries, driver.calls(), sum(pool["allocations"] for pool in pools), len(driver.traced & set(driver.context))]
            for group, want in enumerate(exact, 1):
                self.take(line, row, group, want, "DEVICES, column %d" % group)

    def most_in_pools(self, pools):
        """The greatest sum at one moment: of several pools by their histories of what was asked for, of which a block is up to 1 MiB more."""
        if len(pools) == 1:
            return pools[0]["peak_allocated_bytes"]
        events = sorted((ns, pid, blocks) for pid, history in self.done.account["histories"].items() for ns, blocks in history)
        now, most = {}, 0
        for _, pid, blocks in events:
            now[pid] = blocks
            most = max(most, sum(now.values()))
        return most, most + sum(pool["peak_rounding"] for pool in pools)

    def over_time(self):
        driver = self.driver
        self.claim(r"^OVER \w+  .*? (TIME) to (TIME) ", self.time(self.origin, self.origin), self.duration, what="the time line's span", count=(0, 1))
        for line, row in self.each(r"^(\d+) \S+( \(NVML\))? .* (FIGURE) +(FIGURE)$", "OVER TIME"):
            pid = int(row[1])
            sampled = driver.context[pid] if row[2] else 0  # the driver says what it charges, with the context
            self.take(line, row, 1, lambda text: pid in driver.context, "a process of the device")
            self.take(line, row, 3, driver.last(pid) + sampled, "last")
            self.take(line, row, 4, driver.most(pid) + sampled, "most")

    # ---- the host

    def peak_time(self, sums):
        return self.time(sums.peak_ns, sums.peak_until_ns)

    def host_memory(self):
        """What the shim saw is, call by call, what came through to the allocator below it."""
        kept = self.done.books
        for name, sums, live in (("heap", kept.host, [p.heap for p in kept.process.values()]),
                                 ("mapped", kept.maps, [p.map for p in kept.process.values()])):
            self.claim(r"^  %s \(\w+\) +(FIGURE) +(TIME) +(FIGURE) +([\d,]+) +([\d,]+) +([\d,]+) +([\d,]+) +(-|[\d,]+)$" % name,
                       sums.peak_bytes, self.peak_time(sums) if sums.allocations else "0.000 s",
                       sum(s.live_bytes for s in live), sum(s.live_blocks for s in live),
                       sums.allocations, sums.frees, (sums.temporary - TEMPORARY_SLACK, sums.temporary + TEMPORARY_SLACK), str(sums.failed or "-"), what=name, section="HOST MEMORY", count=(0, 1))

    def process_table(self):
        done = self.done
        for line, row in self.each(r"^ +(\d+)  (\S.*?) +(FIGURE) +(FIGURE) +(FIGURE) +([\d,]+)  exit (\d+) ", "PROCESS"):
            mt.check(int(row[1]) in done.books.process, "a process %s" % row[1])
            one, first = done.books.process[int(row[1])], int(row[1]) == list(done.books.process)[-1]
            names = [done.command_line] + ["fork of %d" % pid for pid in done.books.process if pid != int(row[1])]
            exact = [row[1], lambda text: any(name.startswith(text.rstrip(".")) for name in names), one.heap.peak_bytes, one.heap.live_bytes, one.map.peak_bytes,
                     one.heap.allocations, lambda text: int(text) in (done.status, 0)]
            for group, want in enumerate(exact, 1):
                self.take(line, row, group, want, "PROCESS, column %d" % group)

    def machine(self):
        """The rows of the host are within what the kernel said while it ran, and add up."""
        done = self.done
        if not self.has("HOST at"):
            return
        at_s = self.report["system"]["ledger"]["at_s"]
        at_ns = self.origin + int(at_s * 1e9)
        total = screen.memory_of_machine()
        self.host_adds_up(total)
        self.claim(r"^HOST at (TIME), ([\d.]+) % of (FIGURE) ", self.time(at_ns, at_ns), self.part_used(total), total, what="the machine")
        pids = [pid for pid in done.watch.of_process if done.watch.of_process[pid][0][0] < at_ns]
        own = [sum(n) for n in zip((0, 0), *(done.watch.process(pid, "RssAnon", at_ns, at_ns) for pid in pids))]
        moved = sum(high - low for low, high in (done.books.live(pid, at_ns - 10 ** 9, at_ns + 10 ** 9) for pid in pids))
        others = KERNEL_SHARE * total
        bounds = {name: [n + s for n, s in zip(done.watch.machine(fields), (-others, others))] for name, fields in MACHINE.items()}
        bounds.update({name: (0, own[1] + moved + SLACK) for name in ("live in this run", "kept by allocators", "copied after fork")})
        bounds["mapped files"] = 0, max(done.watch.machine(("Mapped",))) + others
        bounds["other processes"] = 0, max(done.watch.machine(("AnonPages",))) + others
        bounds["smaller rows"] = 0, 11 * 0.002 * total
        for line, cell in self.each(r"(?:^|  )(live in this run|[a-z][a-z ]+[a-z]) +(-?FIGURE) +([\d.]+) %", "HOST"):
            name, low, high = cell[1], *bounds.get(cell[1], (-total, total))  # what is unexplained is the rest: they add up
            value = Figure(cell[2].lstrip("-"))
            self.take(line, cell, 2, lambda text: low <= (-1 if text[0] == "-" else 1) * value.value + value.half, "%s above %s" % (name, low))
            self.take(line, cell, 2, lambda text: (-1 if text[0] == "-" else 1) * value.value - value.half <= high, "%s below %s" % (name, high))
            self.take(line, cell, 3, ((value.value - value.half) * 100 / total - 0.001, (value.value + value.half) * 100 / total + 0.001), "part of the machine")
        self.in_memory(at_ns)

    def part_used(self, total):
        free = Figure(self.each(r"  free +(FIGURE) ", "HOST")[0][1][1])
        return 100 * (1 - (free.value + free.half) / total), 100 * (1 - (free.value - free.half) / total)

    def in_memory(self, at_ns):
        done = self.done
        for line, row in self.each(r"^  (\d+) python +(FIGURE|-) +(FIGURE|-) +(FIGURE) +(FIGURE|-) +(FIGURE|-) +(FIGURE)$", "HOST"):
            pid = int(row[1])
            self.take(line, row, 1, lambda text: pid in done.books.process, "a process")
            names = {2: "VmRSS", 3: "Pss", 5: "Private_Dirty", 6: "VmSwap", 7: "VmHWM"}
            for group, name in names.items():
                begin = at_ns - (10 ** 10 if name in ("Pss", "Private_Dirty") else 0)  # looked at closely every now and then
                end = done.ended if name == "VmHWM" else at_ns
                low, high = done.watch.process(pid, name, begin, end)
                least, most = done.books.live(pid, begin - 10 ** 9, end + 10 ** 9)
                if row[group] != "-":
                    self.take(line, row, group, (low - (most - least) - SLACK, high + most - least + SLACK), name)
            self.take(line, row, 4, done.books.live(pid, at_ns - CLOCK_NS, at_ns + CLOCK_NS), "live then")

    # ---- owners

    def owners(self):
        kept = self.done.books
        self.claim(r"^LARGEST OWNERS of the heap at its peak \((FIGURE) at (TIME)\)", kept.host.peak_bytes,
                   self.peak_time(kept.host), what="the heap's peak", count=(0, 1))
        self.device_owners()
        self.owners_of("LARGEST OWNERS of the", kept.host.peak_bytes, {k: (l.peak_bytes, l.peak_blocks) for k, l in kept.line.items()})

    def device_owners(self):
        """Of a device at its peak: the rows are what its pools had in blocks, all together."""
        rows = self.each(r"^ +(FIGURE) +([\d.]+) %  +(?:([\d,]+) blocks?  )?(?:(\d+) others?$)?", "LARGEST OWNERS of cuda")
        if not rows:
            return
        least, most = (sum(n) + sum(map(self.libraries, self.done.books.process)) for n in zip(*self.pool_at_peak().values()))
        count = sum(pool["allocations"] for pool in self.done.account["pools"])
        self.claim(r"^LARGEST OWNERS of cuda:(\d+) at its peak \((FIGURE) at (TIME)\)", "0", (least, most), self.ledger_time(), what="the device's peak")
        half = sum(Figure(row[1]).half for _, row in rows)
        mt.between(0.99 * least - half, sum(Figure(row[1]).value for _, row in rows), most + half, "owners of the device")
        for line, row in rows:
            part = Figure(row[1])
            self.take(line, row, 1, (0, most), "an owner")
            self.take(line, row, 2, (100 * (part.value - part.half) / most - 0.001, 100 * (part.value + part.half) / least + 0.001), "its part")
            for group in (3, 4):
                if row[group]:
                    self.take(line, row, group, (1, count), "its blocks, or other owners")

    def mappings(self):
        kept = self.done.books
        self.owners_of("LARGEST MAPPINGS", kept.maps.peak_bytes, {k: (l.map_peak_bytes, l.map_peak_blocks) for k, l in kept.line.items()})

    def owners_of(self, section, total, lines):
        """A row is what a line has: at most with what threads without a line did for it, as the backward pass does, and at least without what
        is in rows of its own, as libraries' caches are."""
        sums, rows = {}, self.each(r"^ +(FIGURE) +([\d.]+) %  +(?:([\d,]+) blocks?  )?(.*?)(?:  (PLACE))?$", section)
        for line, row in rows:
            figure = Figure(row[1])
            self.take(line, row, 2, (100 * (figure.value - figure.half) / total - 0.001, 100 * (figure.value + figure.half) / total + 0.001), "its part")
            if row[5]:
                key = self.key(row[5])
                mt.check(lines.get(key, (0, 0))[1] or lines.get(NO_LINE, (0, 0))[1], "nothing was alive of %s" % row[5])
                sums.setdefault(key, []).append((line, row, figure))
        others = [(line, row) for line, row in rows if not row[5]]
        elsewhere = sum(Figure(row[1]).value + Figure(row[1]).half for _, row in others)
        for key, its in sums.items():
            size, blocks = lines.get(key, (0, 0))
            if len(its) == 1:
                (line, row, _), = its
                self.take(line, row, 1, (size - elsewhere, size + lines.get(NO_LINE, (0, 0))[0]), "%s:%d" % key)
                self.take(line, row, 3, (blocks - elsewhere / 16, blocks + lines.get(NO_LINE, (0, 0))[1]), "blocks of %s:%d" % key)
        rest = total - sum(figure.value for its in sums.values() for _, _, figure in its)
        half = sum(Figure(row[1]).half for _, row in rows)
        for line, row in others:
            self.take(line, row, 1, (0, rest + half) if len(others) > 1 else (rest - half, rest + half), "what others have")
            if row[3]:
                self.take(line, row, 3, (1, sum(blocks for _, blocks in lines.values())), "blocks of others")
            for count in re.finditer(r"(\d+) others?$", line.text):
                self.take(line, count, 1, (1, max(1, sum(blocks for key, (_, blocks) in lines.items() if key not in sums))), "other owners")

    def smaller(self):
        self.claim(r"^replaced since, so without symbols: .* and (\d+) more$", lambda count: int(count) < 100, what="libraries built anew since", count=(0, 1))
        kept = self.done.books
        groups = {"<64 B": (0, 6), "256 B": (7, 8), "1 KiB": (9, 10), "4 KiB": (11, 12), "64 KiB": (13, 16), "1 MiB": (17, 20), "16 MiB": (21, 24),
                  "larger": (25, books.BINS - 1)}
        for line, part in self.each(r"(<64 B|256 B|1 KiB|4 KiB|64 KiB|1 MiB|16 MiB|larger) ([\d.]+)(?=,|$)", "SIZES"):
            low, high = groups[part[1]]
            self.take(line, part, 1, part[1], "a group of sizes")
            self.take(line, part, 2, 100 * sum(kept.bins[low:high + 1]) / sum(kept.bins), part[1])
        most, others = max(l.temporary for key, l in kept.line.items() if key[0]), kept.line[NO_LINE]
        for line, found in self.each(r"^TEMPORARY +([\d.]+) % of allocations were freed at once, most \(([\d,]+)\) in  .*  (PLACE)$"):
            own = kept.line[self.key(found[3])].temporary
            self.take(line, found, 1, 100 * kept.host.temporary / kept.host.allocations, "blocks that were freed at once")
            self.take(line, found, 2, (max(own, most), own + others.temporary), "... by the line that has most")
        leaks = self.done.trace.json("leaks", "-n", "100000")
        alive = sum(p.heap.live_bytes for p in kept.process.values()) - leaks["benign_bytes"]
        blocks = sum(p.heap.live_blocks for p in kept.process.values()) - leaks["benign_blocks"]
        for line, found in self.each(r"^LEFT ALIVE +(FIGURE) in ([\d,]+) blocks \(not libraries'\), most \((FIGURE)\) of  .*  (PLACE)$"):
            self.take(line, found, 1, alive, "what is left alive")
            self.take(line, found, 2, blocks, "blocks left alive")
            name, number = self.key(found[4])
            kept_there = sum(s["bytes"] for s in leaks["sites"] if s["benign"] and any(f["line"] == number and os.path.basename(f["file"] or "") == name
                                                                                       for f in s["stack"]))
            size = kept.line[name, number].bytes
            self.take(line, found, 3, (size - kept_there, size + others.bytes), "what that line left alive, without what libraries keep")

    @staticmethod
    def key(place):
        """Of the books' lines."""
        name, _, number = place.rpartition(":")
        return name, int(number)

    # ---- what a scenario says of itself

    def alive(self, kinds, unknown=0, outside=0, either=0):
        """The categories: KINDS are those of all processes' pools together, OUTSIDE is what they have of no category beside them. `rest` is what the
        forward pass made but for UNKNOWN bytes; EITHER bytes may be so, too: whether the input is an activation depends on when its step
        began. What is less than a thousandth the screen leaves out; in all that much may be of no category."""
        all_of_it = sum(kinds.values()) + outside
        small = all_of_it / 1000
        want = {name.replace("_", " "): (size, size) for name, size in kinds.items() if name != "rest"}
        made = kinds["rest"] - unknown
        want["activations"] = made - small - either, made
        want["unknown"] = unknown + outside, unknown + outside + small + either
        self.claim(r"^ALIVE THEN \(\S+: (FIGURE) at (TIME)\)$", all_of_it, self.ledger_time(), what="what was alive", count=(0, 1))
        seen = [self.categories_are(want, small).get(name) for name in ("activations", "unknown")]
        mt.between(kinds["rest"] + outside - small - sum(f.half for f in seen if f), sum(f.value for f in seen if f),
                   kinds["rest"] + outside + small + sum(f.half for f in seen if f), "activations and what is unknown")

    def categories_are(self, want, small):
        seen = {}
        for line, found in self.each(r"(?:^|(?<=, )|(?<=  ))([a-z][a-z ]*) (FIGURE)(?=,|$)", "ALIVE THEN|FOR WHAT"):
            if "largest" not in line.text:
                self.take(line, found, 2, want[found[1]], found[1])
                seen[found[1]] = Figure(found[2])
        missing = {name for name, (least, _) in want.items() if least > 2 * small} - set(seen)
        mt.check(not missing, "no %s among %s" % (missing, seen))
        return seen

    def alive_well(self, kinds, outside=0, optimizer_later=0):
        """At the peak of a run that ends well, with OUTSIDE bytes beside the pool; OPTIMIZER_LATER bytes may not have been there yet. What a
        backward pass makes for a moment is a gradient, too, so of gradients and activations the program knows the sum."""
        blocks = [sum(n) + outside for n in zip(*self.pool_at_peak().values())]
        known = {name.replace("_", " "): (size, size) for name, size in kinds.items() if name not in ("rest", "gradients")}
        known["optimizer"] = known.get("optimizer", (0, 0))[0] - optimizer_later, known.get("optimizer", (0, 0))[1]
        small = blocks[1] / 1000
        rest = blocks[0] - sum(high for _, high in known.values()), blocks[1] - sum(low for low, _ in known.values())
        seen = self.categories_are(dict(known, gradients=(0, rest[1]), activations=(0, rest[1]), unknown=(0, rest[1])), small)
        mt.between(blocks[0] - small - sum(f.half for f in seen.values()), sum(f.value for f in seen.values()),
                   blocks[1] + small + sum(f.half for f in seen.values()), "what is alive in all")

    def ledger_time(self):
        shown = self.each(r"^[GN]PU \d+ (?:WHEN IT FAILED|AT ITS PEAK) +(TIME) ")[0][1][1]
        return lambda text: text == shown

    def by_line(self, lines):
        """{place: (bytes, blocks)} of what a line made that is still alive."""
        for line, found in self.each(r"(FIGURE) (PLACE)(?: [\w.<>]+ \(([\d,]+) blocks\))?", "ALIVE THEN"):
            if line.text.startswith("  by line "):
                size, blocks = lines[found[2]]
                self.take(line, found, 1, size, "what %s made" % found[2])
                if found[3]:
                    self.take(line, found, 3, blocks, "blocks that %s made" % found[2])

    def largest(self, sizes):
        """The five largest blocks, however they are put together."""
        found = []
        for line, one in self.each(r"(?<=[ ,])(FIGURE) \S+ [\w.<>]+(?: \(x(\d+)\))?", "ALIVE THEN"):
            if not re.match("  (5 )?largest", line.text):
                continue
            index = len(found)
            self.take(line, one, 1, sizes[index], "the %d. largest block" % (index + 1))
            count = int(one[2] or 1)
            if one[2]:
                self.take(line, one, 2, lambda text: sizes[index:index + count] == [sizes[index]] * count, "blocks of one size")
            found += [one[1]] * count
        if found:
            mt.equal(len(found), 5, "largest blocks")
            self.claim(r"^  (5) largest ", "5", what="how many")
