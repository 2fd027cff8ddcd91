"""What tests/programs/libbooks.c counted of a scenario's processes behind the shim's back: its totals of the heap and of mappings, by
process, by size and by line of the scenario.

    environment, preload = books.of_run(path)
    read = books.Books(path)
    read.host.peak_bytes; read.process[pid].heap.frees; read.line["incident1.py", 31].heap.blocks
"""
import collections
import os
import struct

import mt

BINS, LINES, PROCESSES, BUCKETS, BUCKET_NS = 49, 4096, 16, 3000, 20000000
SUMS, LINE = struct.Struct("<9Q"), struct.Struct("<2I32s14Q")
HEAD = struct.Struct("<4I")
Sums = collections.namedtuple("Sums", "allocations frees temporary failed live_bytes live_blocks peak_bytes peak_ns peak_until_ns")
Line = collections.namedtuple("Line", "temporary allocations heap map")
Had = collections.namedtuple("Had", "bytes blocks low_bytes low_blocks high_bytes high_blocks")  # low, high: whenever there was about most
NEAR = 4096, 4 << 20  # of the heap, of mappings: a sum so near the highest is about most
Process = collections.namedtuple("Process", "begin_ns heap map bins live")


def of_run(path):
    """The environment and the preloaded library of a program whose books are to lie there."""
    return {"MEMTRACE_BOOKS": path, "MEMTRACE_BOOKS_FILES": os.path.join(mt.TOP, "tests/scenarios")}, [mt.program("libbooks.so")]


PROCESS_BYTES = 16 + 2 * SUMS.size + 8 * BINS + 32 * BUCKETS + 32


def pids(path):
    """Of the processes whose books have begun."""
    try:
        with open(path, "rb") as file:
            head = file.read(HEAD.size)
            count = HEAD.unpack(head)[1] if head else 0
            places = [HEAD.size + 2 * SUMS.size + 16 + i * PROCESS_BYTES for i in range(count)]
            return [struct.unpack("<Q", file.read(8))[0] for at in places if file.seek(at)]
    except OSError:
        return []


class Books:
    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read()
        at = HEAD.size
        _, processes, lines, _ = HEAD.unpack_from(data)
        self.host, self.maps = (Sums(*SUMS.unpack_from(data, at + i * SUMS.size)) for i in range(2))
        at += 2 * SUMS.size + 16
        size = PROCESS_BYTES
        self.process = {}
        for i in range(processes):
            pid, begin_ns = struct.unpack_from("<2Q", data, at + i * size)
            heap, maps = (Sums(*SUMS.unpack_from(data, at + i * size + 16 + k * SUMS.size)) for k in range(2))
            bins = struct.unpack_from("<%dQ" % BINS, data, at + i * size + 16 + 2 * SUMS.size)
            live = struct.unpack_from("<%dQ" % (4 * BUCKETS), data, at + i * size + 16 + 2 * SUMS.size + 8 * BINS)
            last, = struct.unpack_from("<Q", data, at + (i + 1) * size - 8)
            self.process[pid] = Process(begin_ns, heap, maps, bins, list(zip(*(live[k::4] for k in range(4))))[:last + 1])
        at += PROCESSES * size
        self.line = collections.defaultdict(lambda: Line(0, 0, Had(*(0,) * 6), Had(*(0,) * 6)))  # by (file, number), over all processes; ("", 0): of none
        for i in range(lines):
            pid, number, name, temporary, allocations, *had = LINE.unpack_from(data, at + i * LINE.size)
            key = name.rstrip(b"\0").decode(), number
            before = self.line[key]
            self.line[key] = Line(before.temporary + temporary, before.allocations + allocations, *(
                Had(*(a + b for a, b in zip(*pair))) for pair in ((before.heap, had[:6]), (before.map, had[6:]))))
        self.bins = [sum(p.bins[i] for p in self.process.values()) for i in range(BINS)]

    def free_late(self, pid, size):
        """A block's free that the shim recorded, and that the end of its thread kept out of the books."""
        one = self.process[pid]
        heap = one.heap._replace(frees=one.heap.frees + 1, live_bytes=one.heap.live_bytes - size, live_blocks=one.heap.live_blocks - 1)
        self.process[pid], self.host = one._replace(heap=heap), self.host._replace(frees=self.host.frees + 1)

    def live(self, pid, from_ns, to_ns, maps=True):
        """Least and most that the process had on the heap, and in private anonymous mappings, between two moments."""
        p = self.process[pid]
        first, last = (min(max(0, (ns - p.begin_ns) // BUCKET_NS), len(p.live) - 1) for ns in (from_ns, to_ns))
        return min(row[2 * maps] for row in p.live[first:last + 1]), max(row[2 * maps + 1] for row in p.live[first:last + 1])
