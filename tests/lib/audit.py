"""Each number on the first screen is claimed by a comparison with what the program, its driver, its allocator or the kernel say of the
same thing; one that nobody claims is an error by name.

    done = audit.scenario("incident1")              # a run of which everything is known
    seen = audit.Audit(done)                        # claims what screens have in common
    seen.claim(r"(FIGURE) in all", unused, what="unused")    # a group is compared with a number, a (least, most) or a text
    seen.finish()
"""
import os
import time

import books
import gpu
import mt
import watch
from audit_devices import Devices, Driver
from audit_host import Host
from claims import CLOCK_NS
from screen import Figure


def scenario(name, *arguments, **options):
    """A run as gpu.scenario() makes it, for audits."""
    return known(lambda env, preload: gpu.scenario(name, *arguments, paused=True, env=env, preload=preload, **options),
                 " ".join(["python", name + ".py", *map(str, arguments)]))


def known(start, command_line, group=None):
    """What START(environment, preloaded) does, with its books, with what /proc said of it, and when it began and ended; GROUP: a cgroup it is in."""
    path = os.path.join(mt.scratch("books"), "books")
    env, preload = books.of_run(path)
    offset = time.clock_gettime_ns(time.CLOCK_REALTIME) - time.monotonic_ns()
    with watch.Watch(path, group) as seen:
        began = time.monotonic_ns()
        done = start(env, preload)
        done.trace.settle()  # a neighbour may outlive it
        done.ended = time.monotonic_ns()
    done.began, done.watch, done.books, done.real_offset = began, seen, books.Books(path), offset
    done.command_line = command_line
    return done


class Audit(Host, Devices):
    def __init__(self, done):
        super().__init__(done)
        self.driver = Driver(done)
        first = min(p.begin_ns for p in done.books.process.values())
        mt.between(done.began - CLOCK_NS, self.origin, first + CLOCK_NS, "when the first process began, by the report")
        mt.between(1, len(self.lines), 50, "lines of the screen")
        mt.between(1, max(map(len, self.lines)), 100, "columns of the screen")
        self.everywhere()

    def everywhere(self):
        self.title()
        self.names()
        for claims in (self.recorded, self.ranks, self.failed, self.where, self.devices_table, self.over_time, self.host_memory, self.process_table,
                       self.machine, self.no_pressure, self.owners, self.mappings, self.smaller, self.headline):
            claims()

    def title(self):
        done = self.done
        self.claim(r"memtrace [a-z]+(?: --at oom| --json)? (/\S+)", done.trace.path, what="the trace's directory")
        self.claim(r"^(\S.*?)   (\d+) process(?:es)? on (\S+)   (\S+ \S+) UTC   (TIME)$",
                   lambda text: text == done.command_line or text.endswith("..") and done.command_line.startswith(text[:-2]),
                   self.processes(), os.uname().nodename,
                   time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime((self.origin + done.real_offset) / 1e9)),
                   self.time(self.last_call_ns(), done.ended), what="title")
        self.duration = self.each(r" UTC   (TIME)$", "memtrace report")[0][1][1]

    def recorded(self):
        """Where programs begin it themselves: their books begin with the same call."""
        kept = self.done.books.process
        for line, row in self.each(r"^pid (\d+)(?: \(and (\d+) more\))? was recorded from (TIME) to its end$"):
            self.take(line, row, 1, lambda text: int(text) in kept, "a process that begins it")
            begun = kept[int(row[1])].begin_ns
            self.take(line, row, 3, self.time(begun, begun + 100000000), "when it begins it")
            if row[2]:
                self.take(line, row, 2, lambda text: 0 < int(text) < len(kept), "others")

    def headline(self):
        """Where no failure comes first: the peak, whose first owner is the one below; and what is alive at the end."""
        kept = self.done.books
        firsts = {section: row for section in ("LARGEST MAPPINGS", "LARGEST OWNERS of the", "LARGEST OWNERS of [a-z]+:")
                  for _, row in self.each(r"^ +(FIGURE) +([\d.]+) % ", section)[:1]}
        for line, row in self.each(r"^peak (FIGURE) of [GN]PU (\d+)(?:'s (FIGURE))? at (TIME)(?:, (\d+) % of it .*)?$"):
            event, held = self.driver.peak()
            most = self.driver.sum(held)
            for group, want in ((1, most), (2, "0"), (3, self.done.account["total_bytes"]), (4, self.time(event["ns"], self.driver.until(event)))):
                if row[group]:
                    self.take(line, row, group, want, "headline, part %d" % group)
            if row[5]:
                first = Figure(firsts["LARGEST OWNERS of [a-z]+:"][1])
                low, high = 100 * (first.value - first.half) / most, 100 * (first.value + first.half) / most
                self.take(line, row, 5, lambda text: low - 0.51 <= float(text) <= high + 0.51, "whose most of it is")
        for line, row in self.each(r"^peak (FIGURE) (of heap|mapped) at (TIME)(?:, (\d+) % of it .*|, .* address space .*)?$"):
            sums, near = (kept.host, books.NEAR[0]) if row[2] == "of heap" else (kept.maps, books.NEAR[1])
            self.take(line, row, 1, (sums.peak_bytes - near, sums.peak_bytes + near), "the peak")
            self.take(line, row, 3, self.peak_time(sums), "when it was")
            first = firsts.get("LARGEST OWNERS of the" if row[2] == "of heap" else "LARGEST MAPPINGS")
            if row[4]:
                self.take(line, row, 4, lambda text: not first or abs(float(text) - float(first[2])) < 0.56, "whose most of it is")
        self.claim(r"^(?:MEMORY|PERHAPS) TROUBLE: [a-z ]+, (FIGURE); nothing failed$", lambda text: text == self.why()[0][0][2].text,
                   what="the first cause's bytes", count=(0, 1))
        alive = sum(p.heap.live_bytes for p in kept.process.values()) - self.done.trace.asked("leaks", "-n", "1")["benign_bytes"]
        self.claim(r"(FIGURE) of the program's own alive(?: at exit)?$", alive, what="what is alive at exit", count=(0, 1))
        # a twin that is well may keep a list of its own, or its heap may rise
        for line, row in self.each(r"^nothing failed: .* keeps more and more, (FIGURE)(?: in \d+ processes together)?(?:, and (\d+) more sites?)?"):
            growing = [s for s in self.done.trace.asked("leaks", "-n", "100000", "--by", "site")["sites"] if s["outlook"] in ("leaks", "grows", "backlog")]
            self.take(line, row, 1, max(s["grown_bytes_all"] for s in growing), "what the largest grew by, as memtrace leaks has it")
            if row[2]:
                self.take(line, row, 2, lambda text: int(text) < len(growing), "how many grow")
        for line, row in self.each(r"^nothing failed: (the heap|mapped memory) of (\d+) rose to its end, by (FIGURE) in the second half"):
            self.take(line, row, 2, lambda text: int(text) in kept.process, "whose memory rose")
            kinds = {"the heap": (lambda p: p.heap, books.NEAR[0]), "mapped memory": (lambda p: p.map, books.NEAR[1])}
            of, near = kinds[row[1]]
            peak = of(kept.process[int(row[2])]).peak_bytes
            self.take(line, row, 3, (0.1 * peak - near, peak + near), "the memory that rose")
        self.claim(r"^nothing failed: (?:the heap|mapped memory) of (\d+) was seen too briefly to say whether it grows$", lambda text: int(text) in kept.process,
                   what="whose memory was seen too briefly", count=(0, 1))

    def processes(self):
        return len(self.done.books.process)

    def last_call_ns(self):
        """When the program did at least something still."""
        kept = self.done.books.process
        return max([e["ns"] for e in self.done.log if e["pid"] in kept] or [p.begin_ns for p in kept.values()])
