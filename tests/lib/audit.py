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
        mt.between(1, len(self.lines), 45, "lines of the screen")
        mt.between(1, max(map(len, self.lines)), 100, "columns of the screen")
        self.everywhere()

    def everywhere(self):
        self.title()
        self.names()
        for claims in (self.ranks, self.failed, self.where, self.devices_table, self.over_time, self.host_memory, self.process_table, self.machine, self.no_pressure,
                       self.owners, self.mappings, self.smaller):
            claims()

    def title(self):
        done = self.done
        self.claim(r"^memtrace report   (\S.*?)   (\d+) process(?:es)? on (\S+)   (\S+ \S+) UTC   (TIME)$",
                   lambda text: text == done.command_line or text.endswith("..") and done.command_line.startswith(text[:-2]),
                   len(done.books.process), os.uname().nodename,
                   time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime((self.origin + done.real_offset) / 1e9)),
                   self.time(self.last_call_ns(), done.ended), what="title")
        self.duration = self.each(r"^memtrace report .*   (TIME)$")[0][1][1]

    def last_call_ns(self):
        """When the program did at least something still."""
        return max(e["ns"] for e in self.done.log if e["pid"] in self.done.books.process)
