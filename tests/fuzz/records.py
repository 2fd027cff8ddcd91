"""The files of a trace taken apart and put together again, with checksums mended: what a mutant changes. Written from docs/FORMAT.md; nothing
here asks whether what is put together makes sense."""
import os
import struct
import sys
import zlib

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(TOP, p) for p in ("scripts", "tests/battery", "tests/lib")]
import decode
import trace as battery

U32, U64 = decode.U32, decode.U64
HAS_EXT = (decode.MAP, *range(10, 20))


def varints(values):
    return b"".join(battery.varint(v & U64) for v in values)


def zigzag(difference):
    """Of a difference modulo 2^64."""
    difference &= U64
    return battery.zigzag(difference - (1 << 64) if difference >> 63 else difference)


class Head:
    """A structure's fields by name; the rest of it is kept as it is."""

    def __init__(self, layout, data, offset=0):
        self.layout, self.fields = layout, dict(zip(layout.names, layout.struct.unpack_from(data, offset)))

    def pack(self):
        sizes = {"Q": U64, "I": U32}
        values = []
        codes = self.layout.struct.format.lstrip("<")
        numbers = [c for c in split_codes(codes)]
        for code, name in zip(numbers, self.layout.names):
            value = self.fields[name]
            if code in sizes:
                value &= sizes[code]
            elif code == "i":
                value = (value + (1 << 31) & U32) - (1 << 31)
            values.append(value)
        return self.layout.struct.pack(*values)

    def numbers(self):
        return [n for n, v in self.fields.items() if isinstance(v, int)]


def split_codes(codes):
    number = ""
    for c in codes:
        if c.isdigit():
            number += c
        else:
            yield number + c
            number = ""


# ---- blocks of PID-N.trace ------------------------------------------------------------------------------------------


class Block:
    """Fields of the header, covers as lists [ring, thread, from, to], decompressed columns."""

    def __init__(self, block, shift):
        self.type, self.count, self.first, self.last, self.shift = block.type, block.count, block.first_ticks, block.last_ticks, shift
        self.covers = [[c.ring, c.thread, c.start, c.end] for c in block.cover]
        self.columns = decode.columns(block)
        self.source = block

    def pack(self):
        covers = b"".join(struct.pack("<IIQQ", c[0] & U32, c[1] & U32, c[2] & U64, c[3] & U64) for c in self.covers)
        payload = b""
        for column in self.columns:
            frame = battery.stored(column) if column else b""
            payload += struct.pack("<II", len(column), len(frame)) + frame
        head = [decode.BLOCK_MAGIC, self.type & U32, 0, len(self.covers), len(payload), self.count & U64, self.first & U64, self.last & U64,
                self.shift & U32, len(self.columns)]
        head[2] = zlib.crc32(struct.pack("<IIIIQQQQII", *head) + covers + payload)
        return struct.pack("<IIIIQQQQII", *head) + covers + payload


def read_blocks(data, path):
    """The header of a .trace, and its blocks; `path` is a file with these bytes."""
    return data[:32], [Block(b, struct.unpack_from("<I", data, b.offset + 48)[0]) for b in decode.trace_blocks(path)]


# ---- events ---------------------------------------------------------------------------------------------------------


def read_events(block):
    return decode.EventDecoder(block.source).events()


class EventEncoder:
    """The columns of a block of events: each address as a difference, each size and node as it is, where that can be said."""

    def __init__(self, events, shift):
        self.columns = [[] for _ in range(13)]
        self.table, self.lanes, self.followers, self.size_of, self.other = {}, {}, ({}, {}), {}, 0
        self.time = events[0].ticks >> shift if events else 0
        last_ring, run = None, 0
        for event in events:
            slots = 2 if event.ext else 1
            if event.ring == last_ring:
                run += slots
            else:
                if run:
                    self.columns[2] += [last_ring, run - 1]
                last_ring, run = event.ring, slots
            self.put(event, shift)
        if run:
            self.columns[2] += [last_ring, run - 1]
        self.columns[0] = list(self.table)

    def operation(self, kind, hook, fields):
        key = kind & 63 | (hook & 1023) << 6 | fields << 16
        self.columns[1].append(self.table.setdefault(key, len(self.table)))

    def put(self, event, shift):
        c, lane = self.columns, self.lanes.setdefault(event.ring % 1024, [0, 0, 0, 0])  # next, far, node, node2
        self.operation(event.kind, event.hook, (1 if event.size else 0) | (2 if event.node else 0) | (4 if event.node2 else 0))
        c[3].append((event.ticks >> shift) - self.time)
        self.time = event.ticks >> shift
        for which, node in ((0, event.node), (1, event.node2)):
            if node:
                key, last = decode.node_hash(lane[2 + which]), lane[2 + which]
                same = self.followers[which].get(key, 0) == node
                c[5 + which].append(0 if same else zigzag(node - last) + 1)
                self.followers[which][key] = lane[2 + which] = node
        if event.size:
            key = decode.node_hash(event.node)
            c[4].append(0 if self.size_of.get(key, 0) == event.size else event.size)
            self.size_of[key] = event.size
        self.put_address(event, lane)
        if event.ext:
            stream, other, low, a, b = struct.unpack("<QQQII", event.ext)
            self.operation(decode.EXT, low >> 48 & 1023, 0)
            c[12] += [stream, other, low & (1 << 48) - 1, a, b]

    def put_address(self, event, lane):
        c = self.columns
        if event.kind == decode.ALLOC:
            c[7].append(9)
            self.difference(c[8], event.addr - lane[0])
            lane[0] = event.addr + (32 if event.size <= 24 else event.size + 23 & ~15) & U64
        elif event.kind == decode.FREE:
            c[9].append(0)
            self.difference(c[10], event.addr - lane[1])
            lane[1] = event.addr
        else:
            c[11].append(zigzag(event.addr - self.other))
            self.other = event.addr

    @staticmethod
    def difference(column, value):
        value &= U64
        value -= 1 << 64 if value >> 63 else 0
        low = value & 15
        column.append(battery.zigzag(value >> 4) << 1 | (1 if low else 0))
        if low:
            column.append(low)

    def packed(self):
        return [bytes(v & 255 for v in c) if i == decode.PLACE else varints(c) for i, c in enumerate(self.columns)]


def write_events(block, events):
    """The block holds these instead, and says so: count, times, covers."""
    shift = block.shift & 255
    block.columns = EventEncoder(events, shift).packed()
    block.count = sum(2 if e.ext else 1 for e in events)
    block.first, block.last = (events[0].ticks, events[-1].ticks) if events else (0, 0)
    counts = {}
    for e in events:
        counts[e.ring] = counts.get(e.ring, 0) + (2 if e.ext else 1)
    begin = {}
    for ring, thread, start, _ in block.covers:
        begin.setdefault(ring, (thread, start))
    if block.type == decode.BLOCK_EVENTS:
        block.covers = [[r, begin.get(r, (0, 0))[0], begin.get(r, (0, 0))[1], begin.get(r, (0, 0))[1] + n] for r, n in counts.items()]


def read_ring(data):
    """[(offset, head of chunk, events)] of the chunks that are used."""
    found = []
    for at in range(0, len(data), decode.CHUNK_BYTES):
        if len(data) - at < 64:
            break
        head = Head(decode.CHUNK, data, at)
        used = min(head.fields["used"], decode.CHUNK_SLOTS)
        slots = [(head.fields["ring"], data[at + 64 + i * 32:at + 96 + i * 32]) for i in range(used)]
        if slots:
            found.append((at, head, decode.slots_to_events(slots)))
    return found


def write_chunk(data, at, head, events):
    body = b""
    for e in events:
        body += struct.pack("<QQQII", e.ticks & U64, e.addr & U64, e.size & (1 << 48) - 1 | (e.hook & 1023) << 48 | (e.kind & 63) << 58,
                            e.node & U32, e.node2 & U32) + (e.ext or b"")
    body = body[:decode.CHUNK_SLOTS * 32]
    head.fields["used"] = len(body) // 32
    return data[:at] + (head.pack() + body).ljust(decode.CHUNK_BYTES, b"\0") + data[at + decode.CHUNK_BYTES:]


# ---- nodes ----------------------------------------------------------------------------------------------------------


def read_nodes(data):
    return [list(struct.unpack_from("<QII", data, at)) for at in range(0, len(data) - 15, 16)]


def write_nodes(nodes):
    return b"".join(struct.pack("<QII", n[0] & U64, n[1] & U32, n[2] & U32) for n in nodes)


def nodes_columns(nodes, base):
    parents, indexes, pcs, flags, table, last = [], [], [], [], {}, 0
    for i, (pc, parent, flag) in enumerate(nodes):
        parents.append(base + i - parent & U32)
        key = (pc, flag)
        indexes.append(table.setdefault(key, len(table)))
        if indexes[-1] == len(pcs):
            pcs.append(zigzag(pc - last))
            flags.append(flag)
            last = pc
    return [varints(c) for c in (parents, indexes, pcs, flags)]


# ---- info and its log -----------------------------------------------------------------------------------------------


class Info:
    """The header's fields, the bytes between it and the log, and the log's records as [type, ticks, payload]."""

    def __init__(self, data, log_at):
        raw = data[:log_at].ljust(decode.INFO.size, b"\0")
        self.head, self.rest = Head(decode.INFO, raw), data[decode.INFO.size:log_at]
        self.cut = min(log_at, decode.INFO.size)
        self.records, at, self.tail = [], log_at, b""
        end = min(log_at + self.head.fields["log_bytes"], len(data))
        while at + 16 <= end:
            kind, _, size, ticks = struct.unpack_from("<HHIQ", data, at)
            if size < 16 or at + size > end:
                break
            self.records.append([kind, ticks, data[at + 16:at + size], size])
            at += size

    def pack(self):
        """A record whose payload did not change has the size it says."""
        log = b""
        for kind, ticks, payload, size in self.records:
            payload += bytes(-len(payload) % 8)
            log += struct.pack("<HHIQ", kind & 0xFFFF, 0, (size if size is not None else 16 + len(payload)) & U32, ticks & U64) + payload
        if "log_bytes" not in self.__dict__:
            self.head.fields["log_bytes"] = len(log)
        return self.head.pack()[:self.cut] + self.rest + log


# ---- samples and symbols --------------------------------------------------------------------------------------------


class Tokens:
    """Bytes as a list of varints and texts: [int | bytes]; a text's length is part of it."""

    def __init__(self, data):
        self.data, self.at, self.list = data, 0, []

    def number(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                self.list.append(value)
                return value

    def text(self):
        size = self.number()
        self.list[-1] = self.data[self.at:self.at + size]
        self.at += size


def pack_tokens(tokens):
    return b"".join(battery.varint(t & U64) if isinstance(t, int) else battery.varint(len(t)) + t for t in tokens)


def sample_items(plain):
    """Items, each a list of tokens."""
    tokens, items = Tokens(plain), []
    while tokens.at < len(plain):
        begin, kind = len(tokens.list), tokens.number()
        if kind == decode.SUBJECT:
            for _ in range(4):
                tokens.number()
            tokens.text()
            tokens.text()
        elif kind == decode.FIGURES:
            tokens.number()
            for _ in range(bin(tokens.number()).count("1")):
                tokens.number()
        else:
            tokens.number()
        items.append(tokens.list[begin:])
    return items


def sample_streams(data):
    """[first_ns, last_ns, items] of each stream."""
    at, streams = decode.SAMPLES_HEAD.size, []
    while at + decode.SAMPLES_BLOCK.size <= len(data):
        block = decode.SAMPLES_BLOCK.read(data, at)
        end = at + decode.SAMPLES_BLOCK.size + block.stored_bytes
        if not block.part:
            streams.append([block.first_ns, block.last_ns, b"", decode.Stream()])
        streams[-1][1] = block.last_ns
        streams[-1][2] += streams[-1][3].decompress(data[at + decode.SAMPLES_BLOCK.size:end], block.plain_bytes)
        at = end
    return [[first, last, sample_items(plain)] for first, last, plain, _ in streams]


def samples_block(first, last, items, part=0):
    plain = b"".join(pack_tokens(i) for i in items)
    frame = battery.stored(plain)
    head = [decode.SAMPLES_MAGIC, 0, len(frame), len(plain), first & U64, last & U64, part & U32, 0]
    head[1] = zlib.crc32(struct.pack("<IIIIQQII", *head) + frame)
    return struct.pack("<IIIIQQII", *head) + frame


def samples_open(offset, first, last, items, part=0):
    plain = b"".join(pack_tokens(i) for i in items)
    head = [b"MTSOPEN1", 0, len(plain), offset & U64, first & U64, last & U64, part & U32, 0]
    head[1] = zlib.crc32(struct.pack("<8sIIQQQII", *head), zlib.crc32(plain))
    return struct.pack("<8sIIQQQII", *head) + plain


def symbol_tokens(data):
    if decode.SYMBOLS_HEAD.read(data).plain_bytes > 64 << 20:
        raise ValueError("too large to be changed")
    t = Tokens(decode.decompress(data[decode.SYMBOLS_HEAD.size:], decode.SYMBOLS_HEAD.read(data).plain_bytes))
    for _ in range(t.number()):
        t.text()
    for _ in range(t.number()):
        t.number()
        t.text()
        for _ in range(t.number()):
            t.number()
            for _ in range(t.number()):
                for _ in range(4):
                    t.number()
    return t.list


def pack_symbols(tokens):
    plain = pack_tokens(tokens)
    frame = battery.stored(plain)
    head = [b"MTSYMB1\n", 1, 0, len(frame), len(plain)]
    head[2] = zlib.crc32(struct.pack("<8sIIQQ", *head) + frame)
    return struct.pack("<8sIIQQ", *head) + frame
