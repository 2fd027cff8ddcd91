"""The log a program keeps of its own operations (tests/programs/oplog.h): what the trace must say, to the byte."""
import collections
import struct

ALLOC, FREE, REALLOC, FAIL, MAP, UNMAP, REMAP, BARRIER = range(1, 9)
RECORDS, LOGS = 131000, 64
HEAD, RECORD = struct.Struct("<2Q"), struct.Struct("<2I4Q")
LOG_BYTES = HEAD.size + RECORDS * RECORD.size

Op = collections.namedtuple("Op", "op tid addr size old old_size")


class Log:
    def __init__(self, index, head, data):
        self.index = index
        count, self.pid = head
        self.ops = [Op._make(r) for r in RECORD.iter_unpack(data[:min(count, RECORDS) * RECORD.size])]


def read(path):
    """All logs with a writer, by index."""
    logs = {}
    with open(path, "rb") as file:
        for index in range(LOGS):
            file.seek(index * LOG_BYTES)
            head = file.read(HEAD.size)
            if len(head) < HEAD.size:  # killed before it gave the file its size, so before the first operation
                break
            head = HEAD.unpack(head)
            if head[1]:
                logs[index] = Log(index, head, file.read(min(head[0], RECORDS) * RECORD.size))
    return logs


class Ranges:
    """Mapped bytes as disjoint (start, end)."""

    def __init__(self, items=()):
        self.items = list(items)

    def remove(self, start, end):
        rest = []
        for a, b in self.items:
            if b <= start or a >= end:
                rest.append((a, b))
            else:
                rest += [(a, start)] * (a < start) + [(end, b)] * (b > end)
        self.items = rest

    def add(self, start, end):
        self.remove(start, end)
        self.items.append((start, end))

    def bytes(self):
        return sum(b - a for a, b in self.items)

    def merged(self):
        """Neighbours joined, so that it doesn't matter how a range came about."""
        out = []
        for a, b in sorted(self.items):
            if out and out[-1][1] == a:
                out[-1] = (out[-1][0], b)
            else:
                out.append((a, b))
        return out


class Expected:
    """What one thread did: totals, and the blocks it added and took away (in a process of several threads these may be
    negative, a block that another thread allocated). Add threads up with +."""

    def __init__(self):
        self.allocations = self.frees = self.allocated_bytes = self.failed = self.temporary = 0
        self.live = collections.Counter()  # (address, size) of own blocks
        self.inherited = collections.Counter()
        self.live_bytes = self.peak = 0
        self.ranges, self.inherited_ranges = Ranges(), Ranges()
        self.map_peak = 0
        self.last = {}  # tid -> its latest block, as long as freeing it makes it a temporary one

    def __add__(self, other):
        total = Expected()
        for name in ("allocations", "frees", "allocated_bytes", "failed", "temporary", "live_bytes"):
            setattr(total, name, getattr(self, name) + getattr(other, name))
        for counter in (self, other):
            total.live.update(counter.live)
            total.inherited.update(counter.inherited)
        total.ranges = Ranges(self.ranges.items + other.ranges.items)
        total.inherited_ranges = Ranges(self.inherited_ranges.items + other.inherited_ranges.items)
        return total

    def child(self):
        """What a process begins with that is forked now."""
        child = Expected()
        child.inherited = +(self.live + self.inherited)
        child.inherited_ranges = Ranges(self.ranges.items + self.inherited_ranges.items)
        return child

    def drop(self, op, addr, size):
        self.frees += 1
        if self.live[(addr, size)] <= 0 < self.inherited[(addr, size)]:
            self.inherited[(addr, size)] -= 1
            return
        self.live[(addr, size)] -= 1
        self.live_bytes -= size
        if self.last.get(op.tid) == addr:
            self.temporary += 1
            self.last[op.tid] = None

    def take(self, op):
        self.allocations += 1
        self.allocated_bytes += op.size
        self.live[(op.addr, op.size)] += 1
        self.live_bytes += op.size
        self.last[op.tid] = op.addr
        self.peak = max(self.peak, self.live_bytes)

    def unmap(self, start, end):
        self.ranges.remove(start, end)
        self.inherited_ranges.remove(start, end)

    def map(self, op):
        self.ranges.add(op.addr, op.addr + op.size)
        self.map_peak = max(self.map_peak, self.ranges.bytes())

    def add(self, op):
        if op.op == ALLOC:
            self.take(op)
        elif op.op == FREE:
            self.drop(op, op.addr, op.size)
        elif op.op == REALLOC:
            self.drop(op, op.old, op.old_size)
            self.take(op)
        elif op.op == FAIL:
            self.failed += 1
        elif op.op == MAP:
            self.map(op)
        elif op.op == UNMAP:
            self.unmap(op.addr, op.addr + op.size)
        elif op.op == REMAP:
            self.unmap(op.old, op.old + op.old_size)
            self.map(op)

    def add_all(self, ops):
        for op in ops:
            self.add(op)
        return self

    def figures(self):
        """By the names of the report."""
        return {"allocations": self.allocations, "frees": self.frees, "allocated_bytes": self.allocated_bytes,
                "failed": self.failed, "temporary": self.temporary, "live_bytes": self.live_bytes,
                "live_blocks": sum(self.live.values()),
                "inherited_blocks": sum(self.inherited.values()),
                "inherited_bytes": sum(k[1] * n for k, n in self.inherited.items())}


def rounds(log):
    """The ops of a thread's log, cut at its barriers: [before barrier 0, between 0 and 1, ...]."""
    parts = [[]]
    for op in log.ops:
        if op.op == BARRIER:
            parts.append([])
        else:
            parts[-1].append(op)
    return parts


# ---- the trace, as `memtrace dump` says it ----------------------------------------------------------------------

Event = collections.namedtuple("Event", "kind tid addr size")


class Image:
    """One process of a dump."""

    def __init__(self, pid, fork):
        self.pid, self.fork = pid, fork
        self.tids, self.owner = {}, {}
        self.events = []

    def threads(self):
        by = collections.defaultdict(list)
        for event in self.events:
            by[event.tid].append(event)
        return by


def parse_dump(text):
    """The processes of a dump by id, their events in order."""
    images = {}
    for line in text.splitlines():
        words = line.split()
        kind = words[0]
        if kind == "process":
            images[words[1]] = Image(int(words[2]), words[5] == "fork")
            continue
        image = images.get(words[1])
        if kind == "thread":
            image.tids[words[2]] = int(words[3])
        elif kind == "owner":
            image.owner[words[3]] = int(words[5]) if len(words) > 5 else image.tids.get(words[4])
        elif kind in ("alloc", "free", "map", "unmap", "fail", "undo"):
            tid = image.owner.get(words[3])
            if kind == "fail":
                addr, size = 0, int(words[4])
            else:
                addr, size = int(words[4], 16), int(words[5]) if kind in ("alloc", "map", "unmap") else 0
            image.events.append(Event(kind, tid, addr, size))
    return images


def undone(events):
    """Without the frees that an undo record takes back, and without the undo records. One thread's events."""
    out = []
    for event in events:
        if event.kind == "undo":
            at = max((i for i, e in enumerate(out) if e.kind in ("free", "unmap") and e.addr == event.addr), default=None)
            if at is None:
                raise ValueError("undo of %#x without its free" % event.addr)
            del out[at]
        else:
            out.append(event)
    return out


def as_events(ops):
    """What a thread's ops must look like in the trace."""
    for op in ops:
        if op.op == ALLOC:
            yield Event("alloc", op.tid, op.addr, op.size)
        elif op.op == FREE:
            yield Event("free", op.tid, op.addr, 0)
        elif op.op == REALLOC:
            yield Event("free", op.tid, op.old, 0)
            yield Event("alloc", op.tid, op.addr, op.size)
        elif op.op == FAIL:
            yield Event("fail", op.tid, 0, op.size)
        elif op.op == MAP:
            yield Event("map", op.tid, op.addr, op.size)
        elif op.op == UNMAP:
            yield Event("unmap", op.tid, op.addr, op.size)
        elif op.op == REMAP:
            yield Event("map", op.tid, op.addr, op.size)


def find_in_order(wanted, events):
    """Looks for all wanted in events, in this order; returns (the first that isn't there or None, events not wanted)."""
    extra, events = [], iter(events)
    for want in wanted:
        for event in events:
            if event == want:
                break
            extra.append(event)
        else:
            return want, extra
    return None, extra + list(events)


def live_of(image):
    """(address, size) of the blocks an image's own events leave alive; the stream's order is causal."""
    live = {}
    for event in undone_everywhere(image):
        if event.kind == "alloc":
            live[event.addr] = event.size
        elif event.kind == "free":
            live.pop(event.addr, None)
    return live


def undone_everywhere(image):
    """The image's events in order without what was undone."""
    keep = [True] * len(image.events)
    pending = collections.defaultdict(list)
    for i, event in enumerate(image.events):
        if event.kind in ("free", "unmap"):
            pending[event.tid, event.addr].append(i)
        elif event.kind == "undo":
            keep[i] = False
            keep[pending[event.tid, event.addr].pop()] = False
    return [e for e, k in zip(image.events, keep) if k]
