"""The files of a trace taken apart and put together again, with checksums mended: for everything in tests that writes one. Written from
docs/FORMAT.md; nothing here asks whether what is put together makes sense."""
import os
import struct
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts"))
import decode

U32, U64 = decode.U32, decode.U64
HAS_EXT = (decode.MAP, *range(10, 20))


# ---- numbers, frames, heads -----------------------------------------------------------------------------------------


def varint(value):
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def varints(values):
    return b"".join(varint(v & U64) for v in values)


def zigzag(difference):
    """Of a difference modulo 2^64."""
    difference &= U64
    return (U64 - difference << 1) + 1 if difference >> 63 else difference << 1


def zstd_blocks(data, size, last):
    """Blocks of a zstd frame that are not compressed."""
    parts = [data[i:i + size] for i in range(0, len(data), size)] or [b""]
    return b"".join((len(part) << 3 | (last and i == len(parts) - 1)).to_bytes(3, "little") + part for i, part in enumerate(parts))


def stored(data):
    """A zstd frame of blocks that are not compressed."""
    return struct.pack("<IBQ", 0xFD2FB528, 0xE0, len(data)) + zstd_blocks(data, 65536, True)


def fitting(code, value):
    """The value as a field of that code holds it: what is too large loses its upper bits."""
    bits = {"Q": 64, "I": 32, "H": 16, "i": 32}.get(code)
    if bits is None:
        return value
    value &= (1 << bits) - 1
    return value - (1 << bits) if code == "i" and value >> bits - 1 else value


def pack_fields(layout, values):
    codes = split_codes(layout.struct.format.lstrip("<"))
    return layout.struct.pack(*(fitting(code, values[name]) for code, name in zip(codes, layout.names)))


def sealed(layout, rest, **values):
    """A head with these fields (others are 0), and `rest`; `crc` is of both."""
    fields = dict(dict.fromkeys(layout.names, 0), **values)
    fields["crc"] = zlib.crc32(pack_fields(layout, fields) + rest)
    return pack_fields(layout, fields) + rest


class Head:
    """A structure's fields by name; the rest of it is kept as it is."""

    def __init__(self, layout, data, offset=0):
        self.layout, self.fields = layout, dict(zip(layout.names, layout.struct.unpack_from(data, offset)))

    def pack(self):
        return pack_fields(self.layout, self.fields)

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


def trace_block(kind, columns, count, first=0, last=0, covers=(), shift=0):
    """A block of columns (frame, decompressed bytes)."""
    cover = b"".join(pack_fields(decode.COVER, dict(zip(decode.COVER.names, c))) for c in covers)
    payload = b"".join(struct.pack("<II", size, len(frame)) + frame for frame, size in columns)
    return sealed(decode.BLOCK, cover + payload, magic=decode.BLOCK_MAGIC, type=kind, covers=len(covers), payload_bytes=len(payload), count=count,
                  first_ticks=first, last_ticks=last, shift=shift, columns=len(columns))


class Block:
    """Fields of the header, covers as lists [ring, thread, from, to], decompressed columns."""

    def __init__(self, block, shift):
        self.type, self.count, self.first, self.last, self.shift = block.type, block.count, block.first_ticks, block.last_ticks, shift
        self.covers = [[c.ring, c.thread, c.start, c.end] for c in block.cover]
        self.columns = decode.columns(block)
        self.source = block

    def pack(self):
        columns = [(stored(c), len(c)) if c else (b"", 0) for c in self.columns]
        return trace_block(self.type, columns, self.count, self.first, self.last, self.covers, self.shift)


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
        column.append(zigzag(value >> 4) << 1 | (1 if low else 0))
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
    return b"".join(varint(t & U64) if isinstance(t, int) else varint(len(t)) + t for t in tokens)


def pack_items(items):
    return b"".join(pack_tokens(i) for i in items)


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


def samples_head():
    return pack_fields(decode.SAMPLES_HEAD, dict(magic=b"MTSAMP1\n", version=1, bytes=decode.SAMPLES_HEAD.size, reserved=0, reserved2=0))


def samples_block(first, last, plain, part=0, frame=None):
    """`frame` is `plain` as one of the parts of a stream."""
    frame = frame or stored(plain)
    return sealed(decode.SAMPLES_BLOCK, frame, magic=decode.SAMPLES_MAGIC, stored_bytes=len(frame), plain_bytes=len(plain), first_ns=first,
                  last_ns=last, part=part)


def samples_open(offset, first, last, plain, part=0):
    values = dict(magic=b"MTSOPEN1", crc=0, plain_bytes=len(plain), offset=offset, first_ns=first, last_ns=last, part=part, reserved=0)
    values["crc"] = zlib.crc32(pack_fields(decode.SAMPLES_OPEN, values), zlib.crc32(plain))  # in that order
    return pack_fields(decode.SAMPLES_OPEN, values) + plain


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


def symbols_file(frame, size):
    return sealed(decode.SYMBOLS_HEAD, frame, magic=b"MTSYMB1\n", version=1, stored_bytes=len(frame), plain_bytes=size)


def pack_symbols(tokens):
    plain = pack_tokens(tokens)
    return symbols_file(stored(plain), len(plain))
