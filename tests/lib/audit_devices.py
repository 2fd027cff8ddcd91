"""The devices' figures on the first screen: beside the stand-in driver's log, and what the program's pools say of themselves."""
import re

import mt
import screen
from claims import Claims, within
from places import source
from screen import Figure


class Driver:
    """The log of one device of the stand-in for CUDA or Ascend: what a process has without a context, which is charged when it takes the device."""

    def __init__(self, done, device=0):
        self.log, self.ended = done.log, done.ended
        self.rows = [e for e in done.log if e["device"] == device and e["op"] in ("alloc", "free", "device", "reset")]
        self.context = {e["pid"]: e["bytes"] for e in self.rows if e["kind"] == "context" and e["op"] == "alloc" or e["function"] == "aclrtSetDevice"}
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
        return sum(e["op"] == "alloc" and e["kind"] in ("linear", "device") and e["pid"] in self.traced for e in self.rows)

    def sum(self, held):
        return sum(n for pid, n in held.items() if pid in self.traced)

    def peak(self):
        """(the event of the traced processes' greatest sum, who had what)."""
        return max(self.course, key=lambda row: self.sum(row[1]))

    def since(self, pid):
        first = next(e for e in self.rows if e["pid"] == pid)
        return first["ns"], self.until(first)


class Devices(Claims):
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
        self.claim(r"^  no fragmentation +(FIGURE) are unused in the pool", said.get("unused_large_bytes", 0), what="no fragmentation",
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
        if "histories" not in self.done.account:
            return {}
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
        """The ledger: the program's own figures of each pool, the driver's of the rest."""
        failed, done, driver = self.has("OUT OF MEMORY"), self.done, self.driver
        if failed:
            said = done.account["ooms"][-1]
            event = [e for e in done.log if e["op"] == "fail"][-1]
            held, when = [h for e, h in driver.course if e["ns"] < event["ns"]][-1], (event["ns"], said["at_ns"])
            blocks, free = {event["pid"]: (said["allocated_bytes"],) * 2} if "reserved_bytes" in said else {}, said["free_bytes"]
        else:
            event, held = driver.peak()
            blocks, free = self.pool_at_peak(), event["free"]
            when = event["ns"], driver.ended
        self.claim(r"^[GN]PU \d+ (?:WHEN IT FAILED|AT ITS PEAK) +(TIME) ", self.time(*when), what="the ledger's moment")
        owner, total = None, done.account["total_bytes"]
        unit = self.each(r"^[GN]PU \d+ (?:WHEN IT FAILED|AT ITS PEAK) .* (GiB|MiB) +% ")[0][1][1]
        # where the sampler did not come by while memory stood still, the ledger says less: nothing of what is free, and contexts are unexplained
        listed = self.each("outside pool|neighbour", "[GN]PU")
        unexplained = 0 if listed else sum(driver.context[pid] for pid in driver.traced & set(held))
        sums = {}
        for line, row in self.each(r"^(\d+)?.*?(%s) +(-?[\d.]+) +(-?[\d.]+)(?: +(TIME|before))?(?:  .*)?$" % screen.ROWS, "[GN]PU"):
            owner = int(row[1]) if row[1] else None if row[2] in ("free", "not known", "unexplained", "total") else owner
            program = self.libraries(owner) if owner in blocks else held.get(owner, 0)
            outside, reserved = driver.context.get(owner, 0) + program, held.get(owner, 0) - program
            least, most = blocks.get(owner, (0, 0))
            exact = {"blocks in use": (least, most), "unused in pool": (reserved - most, reserved - least), "outside pool": (outside,) * 2, "allocated": (program,) * 2,
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
                size = {"context": driver.context[owner], "program": program}[part[1]]
                self.take(line, part, 2, lambda text: Figure(text, unit).shows(size, part[1]) is None, "what lies outside the pool")
        parts = [n for (_, name), n in sums.items() if name != "total"]
        if (None, "free") in sums:
            mt.between(sum(low for low, _ in parts), total, sum(high for _, high in parts), "the ledger's rows by the program's and the driver's account")

    def devices_table(self):
        done = self.done
        for line, row in self.each(r"^[a-z]+:(\d+) +\S+ +(FIGURE) +(FIGURE) +(TIME) +(FIGURE|-) +(FIGURE|-) +([\d,]+) +([\d,]+|-) +(\d+) +-$", "DEVICES"):
            number = int(row[1])
            driver, pools = Driver(done, number), [pool for pool in done.account.get("pools", []) if pool["device"] == number]
            event, held = driver.peak()
            memory, libraries = driver.sum(held), sum(self.libraries(pid) for pid in held)
            of_pools = [self.most_in_pools(pools), memory - libraries, sum(pool["allocations"] for pool in pools)] if pools else ["-"] * 3
            exact = [number, done.account["total_bytes"], memory, self.time(event["ns"], driver.until(event)), *of_pools[:2], driver.calls(), of_pools[2],
                     len(driver.traced & set(driver.context))]
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
        for line, row in self.each(r"^(\d+) \S+( \(driver\))? .* (FIGURE) +(FIGURE)$", "OVER TIME"):
            pid = int(row[1])
            sampled = driver.context[pid] if row[2] else 0  # the driver says what it charges, with the context
            self.take(line, row, 1, lambda text: pid in driver.context, "a process of the device")
            self.take(line, row, 3, driver.last(pid) + sampled, "last")
            self.take(line, row, 4, driver.most(pid) + sampled, "most")

    def device_owners(self):
        """Of a device at its peak: the rows are what its pools had in blocks, all together, or what the programs had of the driver."""
        rows = self.each(r"^ +(FIGURE) +([\d.]+) %  +(?:([\d,]+) blocks?  )?(?:(\d+) others?$)?", "LARGEST OWNERS of [a-z]+:")
        if not rows:
            return
        pools, libraries = self.pool_at_peak(), sum(map(self.libraries, self.done.books.process))
        least, most = (sum(n) + libraries for n in zip(*pools.values())) if pools else (self.driver.sum(self.driver.peak()[1]),) * 2
        count = sum(pool["allocations"] for pool in self.done.account["pools"]) if pools else self.driver.calls()
        self.claim(r"^LARGEST OWNERS of [a-z]+:(\d+) at its peak \((FIGURE) at (TIME)\)", "0", (least, most), self.ledger_time(), what="the device's peak")
        half = sum(Figure(row[1]).half for _, row in rows)
        mt.between(0.99 * least - half, sum(Figure(row[1]).value for _, row in rows), most + half, "owners of the device")
        for line, row in rows:
            part = Figure(row[1])
            self.take(line, row, 1, (0, most), "an owner")
            self.take(line, row, 2, (100 * (part.value - part.half) / most - 0.001, 100 * (part.value + part.half) / least + 0.001), "its part")
            for group in (3, 4):
                if row[group]:
                    self.take(line, row, group, (1, count), "its blocks, or other owners")

    # ---- what a scenario says of itself

    def by_phase(self, name, peaks, freed=None):
        """PEAK BY PHASE: {place: bytes} in order; of one the pool kept what was FREED."""
        failing = self.done.account["ooms"][-1]["requested_bytes"]
        seen = self.each(r"^  (PLACE) [\w.<>]+ +(FIGURE)(?:   failed here, asking for (FIGURE) more|   freed (FIGURE), pool kept (FIGURE))?$", "PEAK BY PHASE")
        for line, row in seen:
            self.take(line, row, 2, peaks[row[1]], "peak of %s" % row[1])
            for group, want in ((3, failing), (4, freed), (5, freed)):
                if row[group]:
                    self.take(line, row, group, want, "what a phase asked for, or gave back")
        mt.equal([row[1] for _, row in seen], list(peaks), "phases")
        self.claim(r"^PEAK BY PHASE on (%s)$" % name, name, what="whose peaks")

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
