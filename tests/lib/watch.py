"""What /proc says of a scenario's processes and of the machine while it runs, looked at from outside.

    with watch.Watch(path of its books) as seen:
        done = ...
    low, high = seen.machine("MemFree", from_ns, to_ns)
    low, high = seen.process(pid, "VmRSS", from_ns, to_ns)    # or sum_of("VmRSS", ...) of all; of_cgroup("anon", ...)
"""
import threading
import time

import books

PAUSE = 0.05


def table(path):
    """{name: bytes} of one of the kernel's tables in kB."""
    facts = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            words = line.replace(":", " ").split()
            if len(words) == 3 and words[2] == "kB":
                facts[words[0]] = int(words[1]) * 1024
    return facts


class Watch:
    def __init__(self, books, group=None):
        self.books, self.group, self.ending = books, group, threading.Event()
        self.of_machine, self.of_process, self.of_group = [], {}, []
        self.threads = [threading.Thread(target=work) for work in [self.work] + [self.work_group] * bool(group)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        for thread in self.threads:
            thread.join()

    def work_group(self):
        while not self.ending.wait(PAUSE / 5):
            try:
                self.of_group.append((time.monotonic_ns(), self.group.facts()))
            except OSError:
                return  # it is gone

    def work(self):
        while not self.ending.wait(PAUSE):
            begun = time.monotonic_ns()
            self.of_machine.append((begun, table("/proc/meminfo")))
            for pid in books.pids(self.books):
                try:
                    facts = dict(table("/proc/%d/status" % pid), **table("/proc/%d/smaps_rollup" % pid))
                except OSError:
                    continue
                if "VmRSS" in facts and "Pss" in facts:
                    self.of_process.setdefault(pid, []).append((begun, facts))

    @staticmethod
    def around(rows, name, from_ns, to_ns):
        """Least and most within, the looks just before and just after included; and as far beyond as it went between two looks."""
        first = max([i for i, (ns, _) in enumerate(rows) if ns <= from_ns], default=0)
        last = min([i for i, (ns, _) in enumerate(rows) if ns >= to_ns], default=len(rows) - 1)
        values = [facts.get(name, 0) for _, facts in rows[first:last + 1]]
        jump = max((abs(a - b) for a, b in zip(values, values[1:])), default=0)
        return min(values) - jump, max(values) + jump

    def process(self, pid, name, from_ns, to_ns):
        """Before its first look it may not have been there, nor after its last one."""
        rows = self.of_process[pid]
        low, high = self.around(rows, name, from_ns, to_ns)
        return (low if rows[0][0] <= from_ns and to_ns <= rows[-1][0] else min(low, 0)), high

    def sum_of(self, name, from_ns, to_ns):
        return [sum(n) for n in zip((0, 0), *(self.process(pid, name, from_ns, to_ns) for pid in self.of_process))]

    def of_cgroup(self, name, from_ns, to_ns):
        return self.around(self.of_group, name, from_ns, to_ns)

    def machine(self, names):
        """Least and most of a sum over the whole run: what other programs do between two looks nobody knows."""
        values = [sum(facts.get(name, 0) for name in names) for _, facts in self.of_machine]
        return min(values), max(values)
