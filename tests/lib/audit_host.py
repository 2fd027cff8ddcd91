"""The host's figures on the first screen: beside the books of tests/programs/libbooks.c, and what /proc said."""
import json
import os
import re

import books
import mt
import screen
from claims import CLOCK_NS, Claims
from screen import Figure

TEMPORARY_SLACK = 8       # of a run: whether a block is freed by another thread before its own allocates again is as fast as they are
PEAK_SLACK = 4096         # of a peak: calls of two threads may be in another order in the trace than in the books
SLACK = 6 << 20           # of resident memory: between the sampler's look and ours a library's pages come in
NO_LINE = "", 0           # in the books: of a thread that runs no Python
LEAST_SHARE = 200         # of the total: what all others have is no row if it is less
SAMPLED_NS = 1200000000   # the recorder's looks, and ours
KERNEL_SHARE = 0.01       # of a machine: what other programs may do between two of our looks, 20 a second
FREE, KERNEL, CACHED = ("MemFree",), ("Slab", "KernelStack", "PageTables", "Percpu"), ("Cached", "Buffers", "SwapCached")


def minus(a, b):
    """Of two spans."""
    return a[0] - b[1], a[1] - b[0]


def exact(done):
    """The sums of the host in the JSON, to the byte."""
    report, kept = done.trace.report, done.books
    for got, live, want in ((report["host"], [p.heap for p in kept.process.values()], kept.host),
                            (report["map"], [p.map for p in kept.process.values()], kept.maps)):
        mt.equal([got[k] for k in ("allocations", "frees", "failed")], [want.allocations, want.frees, want.failed], "sums of the host")
        mt.between(want.temporary - TEMPORARY_SLACK, got["temporary"], want.temporary + TEMPORARY_SLACK, "temporary blocks")
        mt.between(want.peak_bytes - PEAK_SLACK, got["peak_bytes"], want.peak_bytes + PEAK_SLACK, "the host's peak")
        mt.equal((got["live_bytes"], got["live_blocks"]), (sum(s.live_bytes for s in live), sum(s.live_blocks for s in live)), "live at the end")
    mt.equal({p["pid"]: p["host"]["allocations"] for p in report["processes"] if p["host"]["allocations"]},
             {pid: p.heap.allocations for pid, p in kept.process.items() if p.heap.allocations}, "allocations of each process")


class Host(Claims):
    def peak_time(self, sums):
        return self.time(sums.peak_ns, sums.peak_until_ns or self.done.ended)

    def host_memory(self):
        """What the shim saw is, call by call, what came through to the allocator below it. Where a time is long a column is left out."""
        kept = self.done.books
        nears = books.NEAR if len(kept.process) > 1 else (0, 0)  # what processes do at once is in either order
        for name, sums, near, live in (("heap", kept.host, nears[0], [p.heap for p in kept.process.values()]),
                                       ("mapped", kept.maps, nears[1], [p.map for p in kept.process.values()])):
            self.claim(r"^  %s \(\w+\) +(FIGURE) +(TIME) +(FIGURE) +([\d,]+) +([\d,]+) +([\d,]+)(?: +([\d,]+))? +(-|[\d,]+)$" % name,
                       (sums.peak_bytes - near, sums.peak_bytes + near), self.peak_time(sums) if sums.allocations else "0.000 s",
                       sum(s.live_bytes for s in live), sum(s.live_blocks for s in live),
                       sums.allocations, sums.frees, (sums.temporary - TEMPORARY_SLACK, sums.temporary + TEMPORARY_SLACK), str(sums.failed or "-"),
                       what=name, section="HOST MEMORY", count=(0, 1))
        self.resident()
        self.own_allocators()

    def resident(self):
        """Pages that are shared count once, so the sum of all is the most."""
        done, looks = self.done, self.done.watch
        most = (looks.sum_of("VmRSS", done.began, done.ended)[1] if looks.of_process else screen.memory_of_machine()) + SLACK
        self.claim(r"^HOST at .* used .*?(FIGURE) at the end", (0, most), what="resident at the end", count=(0, 1))

    def own_allocators(self):
        """What a library's or program's own maps is no more than the books have of that."""
        own = {str(p["pid"]): p["own_allocator"] for p in self.report["processes"] if p["own_allocator"]}
        named = {os.path.basename(one["library"]) for one in own.values()}
        most = max([p.map.peak_bytes for p in self.done.books.process.values()] + [0])
        self.claim(r"^(\d+): (\S+=\S+) shows (FIGURE) of (\S+)$", lambda pid: pid in own, lambda setting: any(setting == one["setting"] for one in own.values()),
                           (0, most), lambda library: library in named, what="allocators of their own that a setting shows", count=range(len(own) + 1))
        self.claim(r"^(\d+)(?: \S+)?: (\S+) has its own allocator(?: \((.+)\))?: what is in its (FIGURE) is not seen(?:; with (\S+) it is)?$", lambda pid: pid in own,
                   lambda library: library in named, lambda function: True, (0, most), lambda setting: any(setting == one["setting"] for one in own.values()),
                   what="allocators of their own", count=range(len(own) + 1))
        self.claim(r", (FIGURE) of it address space of (\S+)'s allocator,", (most // 2, most), lambda library: library in named, what="address space of an allocator", count=(0, 1))
        self.claim(r"(FIGURE) of that resident \(sampled\)$", (0, most), what="what an allocator uses", count=(0, 1))

    def process_table(self):
        done = self.done
        for line, row in self.each(r"^ +(\d+)  (\S.*?) +(FIGURE) +(FIGURE) +(FIGURE) +([\d,]+)  (?:exit (\d+)|OOM kill) ", "PROCESS"):
            mt.check(int(row[1]) in done.books.process, "a process %s" % row[1])
            one = done.books.process[int(row[1])]
            names = [done.command_line] + ["fork of %d" % pid for pid in done.books.process if pid != int(row[1])]
            exact = [row[1], lambda text: any(name.startswith(text.rstrip(".")) for name in names), one.heap.peak_bytes, one.heap.live_bytes, one.map.peak_bytes,
                     one.heap.allocations, lambda text: int(text) in (done.status, 0)]
            for group, want in enumerate(exact, 1):
                if row[group]:
                    self.take(line, row, group, want, "PROCESS, column %d" % group)
        silent = self.processes() - len(done.books.process)  # they recorded nothing
        self.claim(r"^ +(\d+) more, none above +(0) B +(0) B +(0) B +(0)$", silent, *"0000", what="other processes", count=(0, 1))

    def killed(self):
        done = self.done
        self.claim(r"^OUT OF MEMORY  host \(cgroup, (FIGURE)\)  pid (\d+) python  (TIME)  killed by the kernel$", getattr(done, "limit", None) or 0,
                   lambda text: int(text) in done.books.process, self.time(done.began, done.ended), what="who was killed", count=(done.status in (-9, 137),))

    def machine(self):
        """The rows of the host are within what the kernel said while it ran, and add up."""
        done = self.done
        self.killed()
        if not self.has("HOST at"):
            return
        at_s = self.report["system"]["ledger"]["at_s"]
        at_ns = self.origin + int(at_s * 1e9)
        limit = getattr(done, "limit", None)  # of a cgroup
        total = limit or screen.memory_of_machine()
        self.host_adds_up(total)
        self.claim(r"^HOST at (TIME), ([\d.]+) % of (FIGURE) used ", self.time(at_ns, at_ns), self.part_used(at_ns, total, limit), total, what="the machine")
        peak = done.books.host.peak_bytes
        self.claim(r"^  no sample near the heap's peak: (FIGURE) at (TIME), (FIGURE) in this table$", peak, self.time(done.began, done.ended), (0, peak),
                   what="samples that are not near", count=(0, 1))
        self.claim(r"^  peak not sampled: (\d+) had (FIGURE), (FIGURE) was seen$", lambda pid: int(pid) in done.books.process,
                   (0, total), (0, total), what="peaks that nobody saw", count=(0, 1))
        pids = [pid for pid in done.watch.of_process if done.watch.of_process[pid][0][0] < at_ns]
        own = [sum(n) for n in zip((0, 0), *(done.watch.process(pid, "RssAnon", at_ns, at_ns) for pid in pids))]
        moved = sum(high - low for low, high in (done.books.live(pid, at_ns - 10 ** 9, at_ns + 10 ** 9) for pid in pids))
        most = min(own[1] + moved, done.account.get("rss_peak_bytes", total)) + SLACK
        others = KERNEL_SHARE * total
        bounds = {name: (0, most) for name in ("live in this run", "kept by allocators", "copied after fork")}
        if limit:
            bounds.update(self.of_cgroup(at_ns, limit))
        else:
            looks = done.watch.machine
            spans = {"free": looks(FREE), "kernel": looks(KERNEL), "page cache": minus(looks(CACHED), looks(("Shmem",)))}  # which is cached, too
            bounds.update({name: (low - others, high + others) for name, (low, high) in spans.items()})
            bounds["mapped files"] = 0, max(done.watch.machine(("Mapped",))) + others
            bounds["other processes"] = 0, max(done.watch.machine(("AnonPages",))) + others
        bounds["smaller parts"] = 0, 11 * 0.002 * total
        for line, cell in self.each(r"(?:^|  )(live in this run|[a-z][a-z ]+[a-z]) +(-?FIGURE) +([\d.]+) %", "HOST"):
            name, low, high = cell[1], *bounds.get(cell[1], (-total, total))  # what is unexplained is the rest: they add up
            value = Figure(cell[2].lstrip("-"))
            self.take(line, cell, 2, lambda text: low <= (-1 if text[0] == "-" else 1) * value.value + value.half, "%s above %s" % (name, low))
            self.take(line, cell, 2, lambda text: (-1 if text[0] == "-" else 1) * value.value - value.half <= high, "%s below %s" % (name, high))
            self.take(line, cell, 3, ((value.value - value.half) * 100 / total - 0.001, (value.value + value.half) * 100 / total + 0.001), "part of the machine")
        self.in_memory(at_ns)
        self.freed()

    def of_cgroup(self, at_ns, limit):
        """{row: (least, most)} by what the kernel said of the cgroup at about that moment; three rows are its private memory."""
        looks, span = self.done.watch, (self.looked_closely(at_ns), at_ns + SAMPLED_NS)
        group = {name: looks.of_cgroup(name, *span) for name in ("anon", "file", "shmem", "kernel", "used")}
        files, shared, private = (looks.sum_of(name, *span) for name in ("Pss_File", "Pss_Shmem", "Pss_Anon"))
        cache = minus(group["file"], group["shmem"])
        files = [min(n) for n in zip(files, cache)]  # others may have read them first, and are charged
        own, rows = ("live in this run", "copied after fork", "kept by allocators"), self.host()
        small = sum(0.002 * limit for name in own if name not in rows)  # such a row is among the smaller parts
        half = sum(rows[name].half for name in own if name in rows)
        mt.between(private[0] - SLACK - small - half, sum(rows[name].value for name in own if name in rows), private[1] + SLACK + half,
                   "private memory in three rows")
        bounds = {"shared memory": shared, "other files in shm": minus(group["shmem"], shared), "mapped files": files, "kernel": group["kernel"],
                  "page cache": minus(cache, files), "free": minus((limit, limit), group["used"]), "other processes": minus(group["anon"], private),
                  "unexplained": (-limit // 100, limit // 100), **dict.fromkeys(own, (0, private[1]))}
        return {name: (low - SLACK, high + SLACK) for name, (low, high) in bounds.items()}

    def looked_closely(self, at_ns):
        """When the recorder saw the processes' shares as of that moment; on a busy machine that is longer ago than it means to."""
        lines = map(json.loads, self.done.trace.tool("dump", "--samples", "--json").out.splitlines())
        latest = {one["pid"]: one["mono_ns"] for one in lines
                  if one["record"] == "sample" and one["kind"] == "process" and "pss_anon" in one["fields"] and one["mono_ns"] <= at_ns}
        return min([at_ns - SAMPLED_NS, *(latest[pid] for pid in self.done.watch.of_process if pid in latest)])

    def part_used(self, at_ns, total, limit):
        """What can't give way: of a cgroup all but pages of files, of the machine all but what the kernel calls available."""
        looks, span = self.done.watch, (at_ns - SAMPLED_NS, at_ns + SAMPLED_NS)
        if limit:
            group = {name: looks.of_cgroup(name, *span) for name in ("file", "shmem", "used")}
            used, slack = minus(group["used"], minus(group["file"], group["shmem"])), SLACK
        else:
            used, slack = minus((total, total), looks.machine(("MemAvailable",))), KERNEL_SHARE * total
        return 100 * (used[0] - slack) / total, 100 * (used[1] + slack) / total

    def no_pressure(self):
        """What the machine had left at least, of several looks at it; what other programs swap out between them nobody knows."""
        done, total, others = self.done, screen.memory_of_machine(), KERNEL_SHARE * screen.memory_of_machine()
        least, most = done.watch.machine(("MemAvailable",))
        swap = [-n for n in done.watch.machine(("SwapFree",))]
        self.claim(r"^  no host pressure +at least (FIGURE) of (FIGURE) available, swap grew by (FIGURE)", (least - others, most + others), total,
                   (0, swap[0] - swap[1] + others if any(swap) else 0), what="no host pressure", count=(0, 1))
        # said where it is more than a quarter of the machine
        files = minus(done.watch.machine(("Cached", "Buffers")), done.watch.machine(("Shmem",)))
        self.claim(r"^  no host pressure .*; (FIGURE) are page cache, which is reclaimable$", (files[0] - others, files[1] + others),
                   what="page cache", count=(0, int(files[1] + others > total / 4)))

    def in_memory(self, at_ns):
        done = self.done
        self.claim(r"^  live and kept: \+/- (FIGURE),", self.report["system"]["ledger"]["live_error"], what="how exact they are", count=(0, 1))
        for line, row in self.each(r"^  (\d+) python(?:  OOM killer)? +(FIGURE|-) +(FIGURE|-) +(FIGURE) +(FIGURE|-) +(FIGURE|-) +(FIGURE)$", "HOST"):
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

    def freed(self):
        """Since the heap's peak, and where it went: by the books, and by what the kernel said of the process."""
        for line, row in self.each(r"^  freed by (\d+) \(\+/- (FIGURE)\): (FIGURE) to the kernel, (FIGURE) kept(?:, (FIGURE) untouched)?$", "HOST"):
            pid = int(row[1])
            peak = self.done.books.process[pid].heap.peak_bytes
            said = next(p["host"]["freed_since_peak"] for p in self.report["processes"] if p["pid"] == pid and p["host"]["freed_since_peak"])
            peak_ns, end_ns = (self.origin + int(seconds * 1e9) for seconds in said["sampled_s"])
            left = self.done.books.live(pid, end_ns - CLOCK_NS, end_ns + CLOCK_NS, maps=False)
            before, after = (self.done.watch.process(pid, "RssAnon", ns, ns) for ns in (peak_ns, end_ns))
            parts = [Figure(row[group]) for group in (3, 4, 5) if row[group]]
            half = sum(f.half for f in parts)
            mt.between(peak - left[1] - half, sum(f.value for f in parts), max(peak - left[0], before[1] - after[0]) + SLACK, "what was freed in all")
            self.take(line, row, 1, str(pid), "who freed")
            self.take(line, row, 2, (0, peak // 4), "how exact it is")
            self.take(line, row, 3, (before[0] - after[1] - SLACK, before[1] - after[0] + SLACK), "what the kernel got")
            for group in (4, 5):
                if row[group]:
                    self.take(line, row, group, (0, max(0, peak - left[0] - (before[0] - after[1] - SLACK))), "what stayed")

    # ---- owners

    def owners(self):
        kept = self.done.books
        self.claim(r"^LARGEST OWNERS of the heap at its peak \((FIGURE) at (TIME)\)", kept.host.peak_bytes,
                   self.peak_time(kept.host), what="the heap's peak", count=(0, 1))
        self.device_owners()
        self.owners_of("LARGEST OWNERS of the", kept.host.peak_bytes, {k: l.heap for k, l in kept.line.items()}, books.NEAR[0])

    def mappings(self):
        kept = self.done.books
        self.claim(r"^ +(FIGURE) of it after imports; MEMTRACE_PYTHON_ALLOCATORS=(1) ", (0, kept.maps.peak_bytes), "1", what="Python's arenas", count=(0, 1))
        self.claim(r"^ +nothing of it after imports; MEMTRACE_PYTHON_ALLOCATORS=(1) ", "1", what="Python's arenas", count=(0, 1))
        self.owners_of("LARGEST MAPPINGS", kept.maps.peak_bytes, {k: l.map for k, l in kept.line.items()}, books.NEAR[1])

    def owners_of(self, section, total, lines, near):
        """A row is what a line has: at most with what threads without a line did for it, as the backward pass does, and at least without what
        is in rows of its own, as libraries' caches are; at any moment at which there was nearly as much as ever."""
        nothing = books.Had(*(0,) * 6)
        alone, sums, rows = lines.get(NO_LINE, nothing), {}, self.each(r"^ +(FIGURE) +([\d.]+) %  +(?:([\d,]+) blocks?  )?(.*?)(?:  (PLACE))?$", section)
        for line, row in rows:
            figure = Figure(row[1])
            self.take(line, row, 2, (100 * (figure.value - figure.half) / total - 0.001, 100 * (figure.value + figure.half) / max(total - near, 1) + 0.001), "its part")
            if row[5]:
                key = self.key(row[5])
                mt.check(lines.get(key, nothing).high_blocks or alone.high_blocks, "nothing was alive of %s" % row[5])
                sums.setdefault(key, []).append((line, row, figure))
        others = [(line, row) for line, row in rows if not row[5]]
        elsewhere = sum(Figure(row[1]).value + Figure(row[1]).half for _, row in others)
        for key, its in sums.items():
            had = lines.get(key, nothing)
            if len(its) == 1:
                (line, row, _), = its
                self.take(line, row, 1, (had.low_bytes - elsewhere, had.high_bytes + alone.high_bytes), "%s:%d" % key)
                self.take(line, row, 3, (had.low_blocks - elsewhere / 16, had.high_blocks + alone.high_blocks), "blocks of %s:%d" % key)
        rest = total - sum(figure.value for its in sums.values() for _, _, figure in its)
        half = sum(Figure(row[1]).half for _, row in rows)
        small = 0 if any(re.search(r"others?$", line.text) for line, _ in rows) else total / LEAST_SHARE  # no row says what they have
        for line, row in others:
            self.take(line, row, 1, (0, rest + half + near) if len(others) > 1 else (rest - half - small - near, rest + half + near), "what others have")
            if row[3]:
                self.take(line, row, 3, (1, sum(had.high_blocks for had in lines.values())), "blocks of others")
            for count in re.finditer(r"(\d+) others?$", line.text):
                self.take(line, count, 1, (1, max(1, sum(had.high_blocks for key, had in lines.items() if key not in sums))), "other owners")

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
            self.take(line, found, 1, tuple(100 * (kept.host.temporary + n) / kept.host.allocations for n in (-TEMPORARY_SLACK, TEMPORARY_SLACK)),
                      "blocks that were freed at once")
            of_library = self.key(found[3]) not in kept.line  # lines of the program call it
            own = 0 if of_library else kept.line[self.key(found[3])].temporary
            self.take(line, found, 2, (0, most) if of_library else (max(own, most) - TEMPORARY_SLACK, own + others.temporary + TEMPORARY_SLACK), "... by the line that has most")
        leaks = self.done.trace.asked("leaks", "-n", "1")
        alive = sum(p.heap.live_bytes for p in kept.process.values()) - leaks["benign_bytes"]
        blocks = sum(p.heap.live_blocks for p in kept.process.values()) - leaks["benign_blocks"]
        for line, found in self.each(r"^LEFT ALIVE +(FIGURE) in ([\d,]+) blocks \(not libraries'\), most \((FIGURE)\) of  .*  (PLACE)$"):
            self.take(line, found, 1, alive, "what is left alive")
            self.take(line, found, 2, blocks, "blocks left alive")
            name, number = self.key(found[4])
            sites = self.done.trace.asked("leaks", "-n", "100000")["sites"]
            kept_there = sum(s["bytes"] for s in sites if s["benign"] and any(f["line"] == number and os.path.basename(f["file"] or "") == name
                                                                                       for f in s["stack"]))
            of_library = (name, number) not in kept.line
            size = 0 if of_library else kept.line[name, number].heap.bytes
            self.take(line, found, 3, (0, alive) if of_library else (size - kept_there, size + others.heap.bytes),
                      "what that line left alive, without what libraries keep")

    @staticmethod
    def key(place):
        """Of the books' lines."""
        name, _, number = place.rpartition(":")
        return name, int(number)
