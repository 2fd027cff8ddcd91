"""Files of memray's, written here record by record, of random traffic; and what it comes to, counted here."""
import random
import struct

from pprofs import varint

FUNCTIONS = {"pymalloc_free": 1, "pymalloc_malloc": 2, "free": 5, "malloc": 6, "realloc": 7, "calloc": 8, "mmap": 14, "munmap": 15}


def signed(n):
    return varint(n << 1 if n >= 0 else (-n << 1) - 1)


def text(word):
    return word.encode() + b"\0"


def head(native=False, sums=False, version=13, skipped=0, python=0x030b07f0, start=1700000000000, end=1700000002500, command="python -m memray run app.py"):
    out = b"memray\0" + struct.pack("<iI??", version, python, native, sums) + struct.pack("<4Q", 9, 9, start, end) + text(command)
    out += struct.pack("<iQQB??", 4711, 1, skipped, 1, False, False)
    return out + (text("/lib/python") + text("/a") + text("/b") + text("") + text("/c") + text("") if version > 12 else b"")


# A line table of CPython 3.11 and its twin of 3.9: the first ten code units are of the first line, the next ten of the one after
TABLES = {0x030b07f0: bytes([0x80 | 13 << 3 | 7, 0, 0x80 | 13 << 3 | 1, 0, 0x80 | 13 << 3 | 7, 2, 0x80 | 13 << 3 | 1, 0]), 0x03090000: bytes([20, 1]),
          0x030a0000: bytes([20, 0, 20, 1])}


class Writer:
    """Numbers are less the ones before, as memray has them; addresses of late are numbers."""

    def __init__(self, **options):
        self.native, self.python = options.get("native", False), options.get("python", 0x030b07f0)
        self.out = bytearray(head(**options))
        self.recent, self.pointer, self.line, self.native_id, self.ip = [0] * 15, 0, 0, 0, 0

    def switch(self, thread):
        self.out += bytes([12]) + struct.pack("<Q", thread)

    def code(self, number, name, file, line):
        table = TABLES[self.python]
        self.out += bytes([14]) + varint(number) + text(name) + text(file) + signed(line - self.line) + varint(len(table)) + table
        self.line = line

    def push(self, code, offset, entry=True):
        self.out += bytes([64 | entry]) + varint(code) + signed(offset)

    def pop(self, count=1):
        self.out += bytes([16 | count - 1])

    def time(self, ms):
        self.out += bytes([2]) + varint(1 << 20) + varint(ms)

    def native_frame(self, ip, parent):
        self.out += bytes([5]) + signed(ip - self.ip) + signed(parent - self.native_id)
        self.ip, self.native_id = ip, parent

    def libraries(self, *rows):
        self.out += bytes([6])
        for path, at, segments in rows:
            self.out += bytes([7]) + text(path) + varint(len(segments)) + struct.pack("<Q", at)
            for start, size in segments:
                self.out += bytes([8]) + struct.pack("<Q", start) + varint(size)

    def address(self, addr, shift, token):
        if addr in self.recent:
            return bytes([token | self.recent.index(addr) << shift]), b""
        self.recent = [addr] + self.recent[:14]
        further, self.pointer = (addr >> 3) - self.pointer, addr >> 3
        return bytes([token | 15 << shift]), signed(further)

    def event(self, name, addr, size=0, stack=0):
        number = FUNCTIONS[name]
        first, rest = self.address(addr, 3, 128 | (number if number < 8 else 0))
        self.out += first + rest + (b"" if number < 8 else bytes([number]))
        if name not in ("free", "pymalloc_free"):
            if self.native:
                self.out += signed(stack - self.native_id)
                self.native_id = stack
            self.out += varint(size)

    def object(self, addr, made):
        first, rest = self.address(addr, 1, 32 | made)
        self.out += first + rest
        if self.native and made:
            self.out += signed(0)

    def end(self):
        self.out += bytes([1])
        return bytes(self.out)


class Traffic:
    """Two threads, whose stacks come and go; blocks, mappings, frees of what nobody has seen, objects between them."""

    def __init__(self, seed, **options):
        rng, w = random.Random(seed), Writer(**options)
        self.counts = dict.fromkeys(("allocations", "allocated_bytes", "peak_bytes", "live_bytes", "live_blocks"), 0)
        self.mapped, self.mapped_peak, self.sites = 0, 0, {}
        blocks, maps, stacks, thread, codes = {}, {}, {1: [], 2: []}, 1, []
        for i in range(6):
            w.code(i, "f%d" % i, "/src/m%d.py" % (i % 2), 10 * i + 1)
        w.switch(1)
        for step in range(4000):
            if step % 40 == 0:
                w.time(step // 2)
            if rng.random() < 0.05:
                thread = 3 - thread
                w.switch(thread)
            stack, dice = stacks[thread], rng.random()
            if dice < 0.2 and len(stack) < 12:
                number, offset = rng.randrange(6), rng.choice([4, 24])
                w.push(number, offset // 2 if w.python >> 16 == 0x030a else offset, rng.random() < 0.5)
                stack.append("f%d (m%d.py:%d)" % (number, number % 2, 10 * number + 1 + (offset >= 20)))
            elif dice < 0.38 and stack:
                count = rng.randrange(1, len(stack) + 1)
                w.pop(count)
                del stack[-count:]
            elif dice < 0.4:
                w.object(rng.randrange(1, 1000) * 8, rng.random() < 0.5)
            elif dice < 0.43:
                addr, pages = (1 << 40) + step * (1 << 20), rng.randrange(1, 100)
                w.event("mmap", addr, pages * 4096)
                maps[addr] = pages * 4096
                self.mapped += pages * 4096
                self.mapped_peak = max(self.mapped_peak, self.mapped)
            elif dice < 0.45 and maps:
                addr = rng.choice(list(maps))
                w.event("munmap", addr, maps[addr])
                self.mapped -= maps.pop(addr)
            elif dice < 0.47:
                w.event("free", (1 << 30) + step * 16)
            elif dice < 0.78 or not blocks:
                addr = next(a for a in iter(lambda: rng.randrange(1, 5000) * 16, 0) if a not in blocks)
                size, key = rng.randrange(1, 100000), ";".join(stack[max(0, options.get("skipped", 0) if thread == 1 else 0):])
                w.event(rng.choice(["malloc", "calloc", "realloc", "pymalloc_malloc"]), addr, size)
                blocks[addr] = (size, key)
                self.add(1, size, key)
                self.counts["allocations"] += 1
                self.counts["allocated_bytes"] += size
            else:
                addr = rng.choice(list(blocks))
                size, key = blocks.pop(addr)
                w.event(rng.choice(["free", "pymalloc_free"]), addr)
                self.add(-1, -size, key)
        self.bytes = w.end()

    def add(self, blocks, size, key):
        c = self.counts
        c["live_blocks"] += blocks
        c["live_bytes"] += size
        c["peak_bytes"] = max(c["peak_bytes"], c["live_bytes"])
        self.sites[key] = self.sites.get(key, 0) + size


def summed(rows, native=False, start=1700000000000, **options):
    """A file that was added up: rows of (thread, function, stack, blocks and bytes at the peak, at the end); a stack is of numbers of five frames."""
    out = bytearray(head(sums=True, native=native, start=start, **options))
    table = TABLES[options.get("python", 0x030b07f0)]
    for ms, heap in ((100, 5), (700, 9), (1500, 2)):
        out += bytes([1]) + struct.pack("<3Q", start + ms, 1 << 20, heap)
    out += bytes([12]) + struct.pack("<Q", 1) + bytes([10]) + text("MainThread")
    for i in range(5):
        out += bytes([14]) + varint(i) + text("f%d" % i) + text("/src/m.py") + signed(10) + varint(len(table)) + table
    for i in range(5):
        out += bytes([4]) + varint(i) + varint(i) + signed(24) + b"\1"
    stacks = {(): 0}
    for _, _, stack, *_ in rows:
        for n in range(1, len(stack) + 1):
            if stack[:n] not in stacks:
                out += bytes([3]) + varint(stack[n - 1]) + varint(stacks[stack[:n - 1]])
                stacks[stack[:n]] = len(stacks)
    out += bytes([13]) + varint(99) + (varint(0) if native else b"")
    for thread, function, stack, peak_count, peak_bytes, end_count, end_bytes in rows:
        out += bytes([2]) + struct.pack("<9Q", thread, FUNCTIONS[function] | 0xabcd00, 0, stacks[stack], 0, peak_count, end_count, peak_bytes, end_bytes)
    return bytes(out + bytes([15]))
