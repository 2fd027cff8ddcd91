#!/usr/bin/env python3
"""A second reader of memtrace's format, version 1, written from docs/FORMAT.md alone: prints what `memtrace dump` prints.

usage: decode.py [--nodes | --samples | --symbols | --holders] DIR

It exists so that the format's document is known to be complete, and so that a trace can be read without any of our
programs: Python 3.8's standard library and libzstd.so.1 are all it needs. It keeps everything in memory.
"""
import bisect
import ctypes
import ctypes.util
import heapq
import os
import re
import struct
import sys
import zlib


class Bad(Exception):
    """file, offset, what is wrong"""

    def __init__(self, path, offset, what):
        super().__init__("%s: offset %d: %s" % (path, offset, what))


# ---- structures -------------------------------------------------------------------------------------------------


class Layout:
    """A C struct of little-endian fields in natural alignment: `fields` is "code name, code name, ...", code as in struct."""

    def __init__(self, fields):
        codes, self.names = zip(*(f.split() for f in fields.split(",")))
        self.struct = struct.Struct("<" + "".join(codes))
        self.size = self.struct.size

    def read(self, data, offset=0):
        return Record(self.names, self.struct.unpack_from(data, offset))


class Record:
    def __init__(self, names, values):
        self.__dict__.update(zip(names, values))


SESSION = Layout(
    "8s magic, I version, I bytes, Q start_ticks, Q start_mono_ns, Q start_real_ns, I clock, I page_bytes, Q limit_bytes, "
    "Q keep_free_bytes, 40s boot_id, 64s host, 1024s ring_dir, I flags, I recorder_pid, Q recorder_beat_ns, Q used_bytes, "
    "Q unrecorded, I root_pid, I root_exit_kind, i root_exit_code, I trace_mib, I failures, I unrecorded_why, Q trace_bytes, "
    "Q job_pid_ns, Q job_leader_start, I job_group, I job_session, Q memory_bytes, I asked, I oom_commands")
INFO = Layout(
    "8s magic, I version, I bytes, I pid, I image, I parent_pid, I parent_image, I origin, I clock, Q start_ticks, "
    "Q start_mono_ns, Q start_real_ns, Q boot_start, Q pid_ns, Q fork_ticks, I fork_exact, I node_base, I stacks, I depth, "
    "Q sample_bytes, I exit_kind, i exit_code, Q end_ticks, Q pair_ticks, Q pair_mono_ns, Q log_bytes, I node_end, I chunks, "
    "I rings, I threads, Q lost_events, Q truncated_stacks, Q unwritten_bytes, Q faults, I off, I seccomp, Q disk_bytes, "
    "I lost_why, I fixed, Q unplaced_stacks, Q address_limit, Q data_limit, Q address_used, Q data_used, Q shm_used, "
    "I fork_node, I fork_node2, I asked, I stops, Q recorded_ticks, Q stopped_ticks, Q gap_ticks, "
    "I device_failures, I refusals, I attached, I record, Q young_bytes, "
    "Q heap_calls, Q heap_bytes, Q heap_frees")
RECORD = Layout("H type, H reserved, I bytes, Q ticks")
NODE = Layout("Q pc, I parent, I flags")
CHUNK = Layout("I magic, I ring, Q seq, I used, I thread, 40s reserved")
EVENT = Layout("Q ticks, Q addr, Q packed, I node, I node2")
EXT_MAP = Layout("Q old, Q offset, I prot_flags, I kind_ext, I file, I reserved")
EXT_DEVICE = Layout("Q stream, Q other, I what, I kind_ext, I status, I capture")
TRACE = Layout("8s magic, I version, I bytes, I pid, I image, Q reserved")
BLOCK = Layout(
    "I magic, I type, I crc, I covers, Q payload_bytes, Q count, Q first_ticks, Q last_ticks, I shift, I columns")
COVER = Layout("I ring, I thread, Q start, Q end")
YOUNG = Layout("8s magic, I version, I blocks, I areas, I reserved")
YOUNG_BLOCK = Layout("Q addr, Q ticks, I node, I node2, H size, H hook, H area, H reserved")
YOUNG_AREA = Layout("I ring, I thread, I leaves, I told, Q position, Q since, Q latest, I frees, I sum, I count, I temporary, Q bytes")
YOUNG_SUM = Layout("I node, I node2, I thread, H hook, H size, I count, I temporary, Q bytes")
YOUNG_TABLE, YOUNG_AREA_BYTES, YOUNG_SUMS = 4096, 147456, 4094
YOUNG_TAKEN, YOUNG_LEAVES, YOUNG_FREED = 1, 2, 4

INFO_STATES, INFO_LOG = 4096, 0x20000
CHUNK_BYTES, CHUNK_SLOTS = 262144, 8190
CHUNK_MAGIC, BLOCK_MAGIC = 0x4B43544D, 0x4B42544D
CHUNK_FREE, CHUNK_FILLING, CHUNK_FULL = range(3)
BLOCK_EVENTS, BLOCK_NODES, BLOCK_INFO, BLOCK_END, BLOCK_FOLDED = range(1, 6)
NONE, ALLOC, FREE, FAIL, UNDO, MAP, UNMAP, EXT, THREAD, LOST = range(10)
DEVICE_FREE, DEVICE_UNMAP = 11, 15
FOLD, FOLD_SUM = 19, 2
TRIAL = 256  # in the size of FAIL
GIVES_BACK = (FREE, UNMAP, DEVICE_FREE, DEVICE_UNMAP)
WORDS = ("none", "alloc", "free", "fail", "undo", "map", "unmap", "ext", "owner", "lost", "device-alloc", "device-free", "device-fail",
         "device-undo", "device-map", "device-unmap", "device-reset", "device-info", "mark", "fold")
PLACE = 7  # the column of events that holds no varints
U32, U64 = (1 << 32) - 1, (1 << 64) - 1

# ---- compression ------------------------------------------------------------------------------------------------


class StreamBuffer(ctypes.Structure):
    _fields_ = [("at", ctypes.c_void_p), ("size", ctypes.c_size_t), ("position", ctypes.c_size_t)]


def load_zstd():
    lib = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
    lib.ZSTD_decompress.restype = ctypes.c_size_t
    lib.ZSTD_decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    lib.ZSTD_isError.argtypes = [ctypes.c_size_t]
    lib.ZSTD_createDStream.restype = ctypes.c_void_p
    lib.ZSTD_freeDStream.argtypes = [ctypes.c_void_p]
    lib.ZSTD_decompressStream.restype = ctypes.c_size_t
    lib.ZSTD_decompressStream.argtypes = [ctypes.c_void_p, ctypes.POINTER(StreamBuffer), ctypes.POINTER(StreamBuffer)]
    return lib


ZSTD = load_zstd()


def decompress(data, size):
    """Exactly `size` bytes, or None."""
    out = ctypes.create_string_buffer(size or 1)
    got = ZSTD.ZSTD_decompress(out, size, data, len(data))
    return None if ZSTD.ZSTD_isError(got) or got != size else out.raw[:size]


class Stream:
    """A zstd stream that comes in parts."""

    def __init__(self):
        self.stream = ZSTD.ZSTD_createDStream()

    def __del__(self):
        ZSTD.ZSTD_freeDStream(self.stream)

    def decompress(self, data, size):
        """All of `data`, which are exactly `size` bytes, or None."""
        plain, given = ctypes.create_string_buffer(size or 1), ctypes.create_string_buffer(data, len(data))
        out = StreamBuffer(ctypes.addressof(plain), size, 0)
        source = StreamBuffer(ctypes.addressof(given), len(data), 0)
        while source.position < source.size or out.position < out.size:
            before = source.position + out.position
            got = ZSTD.ZSTD_decompressStream(self.stream, ctypes.byref(out), ctypes.byref(source))
            if ZSTD.ZSTD_isError(got) or source.position + out.position == before:
                return None
        return plain.raw[:size]


# ---- files ------------------------------------------------------------------------------------------------------


def load(path):
    with open(path, "rb") as file:
        return file.read()


class Block:
    def __init__(self, path, data, offset):
        self.path, self.offset = path, offset
        if offset + BLOCK.size > len(data):
            raise Bad(path, offset, "a block is cut off")
        self.__dict__.update(BLOCK.read(data, offset).__dict__)
        self.total_bytes = BLOCK.size + self.covers * COVER.size + self.payload_bytes
        if self.type == BLOCK_FOLDED:
            self.shift &= 255
        if self.magic != BLOCK_MAGIC:
            raise Bad(path, offset, "no block begins here")
        if offset + self.total_bytes > len(data):
            raise Bad(path, offset, "a block is cut off")
        whole = bytearray(data[offset:offset + self.total_bytes])
        whole[8:12] = bytes(4)
        if zlib.crc32(whole) != self.crc:
            raise Bad(path, offset, "a block's checksum is wrong")
        at = BLOCK.size
        self.cover = [COVER.read(whole, at + i * COVER.size) for i in range(self.covers)]
        self.payload = bytes(whole[at + self.covers * COVER.size:])


def trace_blocks(path):
    """The blocks of a PID-N.trace."""
    data = load(path)
    if len(data) < TRACE.size or data[:8] != b"MTTRAC1\n":
        raise Bad(path, 0, "not a trace file")
    at, blocks = TRACE.read(data).bytes, []
    while at < len(data):
        blocks.append(Block(path, data, at))
        at += blocks[-1].total_bytes
    return blocks
# ---- what blocks hold -------------------------------------------------------------------------------------------


def columns(block):
    """The decompressed columns of a block."""
    at, found = 0, []
    for _ in range(block.columns):
        size, stored = struct.unpack_from("<II", block.payload, at)
        data = decompress(block.payload[at + 8:at + 8 + stored], size) if size else b""
        if data is None:
            raise Bad(block.path, block.offset, "column %d does not decompress" % len(found))
        found.append(data)
        at += 8 + stored
    if at != len(block.payload):
        raise Bad(block.path, block.offset, "bytes are left over")
    return found


def varints(data):
    value = shift = 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            yield value
            value = shift = 0


def signed(zigzag):
    return -(zigzag + 1 >> 1) if zigzag & 1 else zigzag >> 1


def decode_info(block):
    return columns(block)[0]


def decode_nodes(block):
    """The bytes that PID-N.nodes had."""
    parents, indexes, pcs, flags = map(varints, columns(block))
    out, table, pc = bytearray(), [], 0
    for i in range(block.count):
        parent, index = next(parents), next(indexes)
        if index == len(table):
            pc = pc + signed(next(pcs)) & U64
            table.append((pc, next(flags)))
        out += struct.pack("<QII", table[index][0], block.first_ticks + i - parent & U32, table[index][1])
    return bytes(out)


class Event:
    """One event: a slot, and for a mapping the slot behind it."""

    __slots__ = ("ring", "ticks", "addr", "size", "hook", "kind", "node", "node2", "ext")

    def __init__(self, ring, ticks, addr, size, hook, kind, node, node2):
        self.ring, self.ticks, self.addr, self.size = ring, ticks, addr, size
        self.hook, self.kind, self.node, self.node2, self.ext = hook, kind, node, node2, None


class Lane:
    """What a ring's slots predict of the next one."""

    def __init__(self):
        self.next = self.far = self.node = self.node2 = 0
        self.freed = None
        self.stacks = {}  # class -> freed blocks, the latest last


def node_hash(node):
    return (node * 0x9E3779B1 & U32) >> 16


def size_class(size):
    if size <= 24:
        return 1
    if size <= 1032:
        return size + 7 >> 4
    return 66 + (((size >> 4) * 0x9E3779B97F4A7C15 & U64) >> 32) % 62


class EventDecoder:
    def __init__(self, block):
        raw = columns(block)
        self.block = block
        (self.table, self.ops, self.runs, self.times, self.sizes, self.nodes, self.nodes2, self.places, self.addresses,
         self.frees, self.fars, self.others, self.exts) = [iter(c) if i == PLACE else varints(c) for i, c in enumerate(raw)]
        self.operations = list(self.table)
        self.lanes, self.follower, self.follower2, self.size_of = {}, {}, {}, {}
        self.allocations = []  # (address, class)
        self.other = 0

    def events(self):
        time, events, run = self.block.first_ticks >> self.block.shift, [], 0
        for _ in range(self.block.count):
            if not run:
                ring, run = next(self.runs), next(self.runs) + 1
            run -= 1
            operation = self.operations[next(self.ops)]
            kind, hook, fields = operation & 0x3F, operation >> 6 & 0x3FF, operation >> 16
            if kind == EXT:
                events[-1].ext = self.extension(hook)
                continue
            time += next(self.times)
            event = Event(ring, time << self.block.shift, 0, 0, hook, kind, 0, 0)
            self.decode(event, self.lanes.setdefault(ring % 1024, Lane()), fields)
            events.append(event)
        self.check_end(time)
        return events

    def check_end(self, time):
        rest = (self.ops, self.runs, self.times, self.sizes, self.nodes, self.nodes2, self.places, self.addresses, self.frees,
                self.fars, self.others, self.exts)
        if any(next(column, None) is not None for column in rest) or time != self.block.last_ticks >> self.block.shift:
            raise Bad(self.block.path, self.block.offset, "the block does not end where it says")

    def extension(self, hook):
        old, offset, size, low, high = (next(self.exts) for _ in range(5))
        return struct.pack("<QQQII", old, offset, size | hook << 48 | EXT << 58, low, high)

    def decode(self, event, lane, fields):
        if fields & 2:
            event.node = lane.node = self.node(self.nodes, self.follower, lane.node)
        if fields & 4:
            event.node2 = lane.node2 = self.node(self.nodes2, self.follower2, lane.node2)
        if fields & 1:
            key, size = node_hash(event.node), next(self.sizes)
            event.size = self.size_of[key] = size or self.size_of.get(key, 0)
        if event.kind == ALLOC:
            event.addr = self.allocate(lane, event.size)
        elif event.kind == FREE:
            event.addr = self.free(lane)
        else:
            event.addr = self.other = self.other + signed(next(self.others)) & U64

    @staticmethod
    def node(column, follower, last):
        key, value = node_hash(last), next(column)
        follower[key] = last + signed(value - 1) if value else follower.get(key, 0)
        return follower[key]

    def allocate(self, lane, size):
        place, key = next(self.places), size_class(size)
        if place < 8:
            address = lane.stacks[key].pop(-1 - place)
        elif place == 8:
            address, old = lane.freed
            if lane.stacks[old] and lane.stacks[old][-1] == address:
                lane.stacks[old].pop()
        else:
            address = self.difference(self.addresses, lane.next)
        lane.next = address + (32 if size <= 24 else size + 23 & ~15) & U64
        self.allocations.append((address, key))
        return address

    def free(self, lane):
        distance = next(self.frees)
        if not distance:
            lane.far = self.difference(self.fars, lane.far)
            return lane.far
        address, key = self.allocations[-distance]
        lane.stacks.setdefault(key, []).append(address)
        lane.freed = address, key
        return address

    @staticmethod
    def difference(column, last):
        value = next(column)
        low = next(column) if value & 1 else 0
        return last + (signed(value >> 1) << 4) + low & U64


# ---- a process --------------------------------------------------------------------------------------------------


def slots_to_events(slots):
    """slots: (ring, 32 bytes) in order."""
    events = []
    for ring, raw in slots:
        slot = EVENT.read(raw)
        kind = slot.packed >> 58
        if kind == EXT:
            events[-1].ext = raw
            continue
        events.append(Event(ring, slot.ticks, slot.addr, slot.packed & (1 << 48) - 1, slot.packed >> 48 & 0x3FF, kind, slot.node, slot.node2))
    return events


def sort_late(events):
    """ALLOC and FREE of earlier times go back to behind all that are not later, but not before their ring's THREAD."""
    kept, late, floors, highest = [], [], {}, (0, False)
    reached = []
    for index, event in enumerate(events):
        order = event.ticks, event.kind not in GIVES_BACK
        if order < highest and event.kind in (ALLOC, FREE):
            place = max(bisect.bisect_right(reached, order), floors.get(event.ring, 0))
            late.append((place, order, index, event))
            continue
        highest = max(highest, order)
        reached.append(highest)
        kept.append(event)
        if event.kind == THREAD:
            floors[event.ring] = len(kept)
    late.sort(key=lambda l: l[:3])
    out, at = [], 0
    for place, _, _, event in late:
        out += kept[at:place]
        at = max(at, place)
        out.append(event)
    return out + kept[at:]


class Process:
    """One image: PID-N.info, .nodes and .ring as long as they are there, and PID-N.trace."""

    def __init__(self, session, folder, name):
        self.path = os.path.join(folder, name)
        self.raw_path = self.path
        if text(session.ring_dir, 0) and not self.has("info"):
            self.raw_path = os.path.join(text(session.ring_dir, 0), "memtrace-%016x.%s" % (session.start_real_ns, name))
        self.blocks = trace_blocks(self.path + ".trace") if self.has("trace") else []
        self.info = None  # of a process that ended before it recorded anything
        self.read_info()
        if self.info:
            self.read_log()

    def file(self, extension):
        return (self.path if extension == "trace" else self.raw_path) + "." + extension

    def has(self, extension):
        return os.path.exists(self.file(extension))

    def block(self, kind):
        found = [b for b in self.blocks if b.type == kind]
        return found[-1] if found else None

    def read_info(self):
        if self.has("info"):
            data = load(self.file("info"))
            if not any(data[:8]) and not self.blocks:
                return
            self.info = self.head(data)
            self.states = data[INFO_STATES:INFO_STATES + self.info.chunks]
            self.log = data[INFO_LOG:INFO_LOG + self.info.log_bytes]
        else:
            block = self.block(BLOCK_INFO)
            if not block:
                raise Bad(self.path + ".trace", 0, "the process has no info")
            data = decode_info(block)
            self.info = self.head(data)
            self.states, self.log = b"", data[self.info.bytes:]
        if self.info.magic != b"MTINFO1\n" or self.info.version != 1:
            raise Bad(self.file("info"), 0, "not an info of version 1")

    @staticmethod
    def head(data):
        """Of an older writer it is shorter, and what it lacks is 0."""
        bytes_ = struct.unpack_from("<I", data, 12)[0]
        return INFO.read(data[:bytes_].ljust(INFO.size, b"\0"))

    # the log

    def read_log(self):
        self.exe, self.argv, self.env, self.late = "", [], [], []
        self.modules, self.hooks, self.files, self.threads, self.children, self.codes = [], {}, {}, {}, [], {}
        self.devices, self.names = [], {}
        at = 0
        while at < len(self.log):
            record = RECORD.read(self.log, at)
            handler = self.HANDLERS.get(record.type)
            if handler:
                handler(self, self.log[at + RECORD.size:at + record.bytes])
            at += record.bytes

    def take_program(self, data):
        self.exe, *self.argv = strings(data)

    def take_env(self, data):
        self.env = strings(data)

    def take_hook(self, data):
        self.hooks[struct.unpack_from("<I", data)[0]] = text(data, 8)

    def take_module(self, data):
        bias, start, end, node_from, id_bytes = struct.unpack_from("<QQQII", data)
        self.modules.append([start, end, bias, node_from, None, data[32:32 + id_bytes].hex(), text(data, 32 + id_bytes)])

    def take_unmodule(self, data):
        start, node_until = struct.unpack_from("<QI", data)
        for module in reversed(self.modules):
            if module[0] == start and module[4] is None:
                module[4] = node_until
                return

    def take_thread(self, data):
        index, tid = struct.unpack_from("<II", data)
        known = self.threads.get(index, (0, ""))[0]
        self.threads[index] = (tid or known, text(data, 8))

    def take_file(self, data):
        self.files[struct.unpack_from("<I", data)[0]] = text(data, 8)

    def take_child(self, data):
        self.children.append(struct.unpack_from("<IIi", data))

    def take_code(self, data):
        number, version, first_line, table_bytes = struct.unpack_from("<IIII", data)
        file = text(data, 16 + table_bytes)
        name = text(data, 16 + table_bytes + len(file.encode(errors="surrogateescape")) + 1)
        self.codes[number] = (version, first_line, file, name, data[16:16 + table_bytes])

    def take_device(self, data):
        number, backend, ordinal, _, total = struct.unpack_from("<IIIIQ", data)
        self.devices.append((number, backend, ordinal, total, text(data, 24), text(data, data.index(0, 24) + 1)))

    def take_name(self, data):
        self.names[struct.unpack_from("<I", data)[0]] = text(data, 8)

    def take_import(self, data):
        self.imported = data[8:].decode(errors="surrogateescape").split("\0")[:3]

    def take_late(self, data):
        self.late = strings(data)

    HANDLERS = {1: take_program, 2: take_env, 3: take_hook, 4: take_module, 5: take_unmodule, 6: take_thread,
                7: take_file, 8: take_child, 9: take_code, 10: take_device, 11: take_name, 13: take_import, 15: take_late}

    # the call tree

    def nodes(self):
        """(id, node) of its own ones; 0 means no stack."""
        base, end = self.info.node_base, self.info.node_end
        if self.has("nodes"):
            data = load(self.file("nodes"))
        else:
            block = self.block(BLOCK_NODES)
            data = decode_nodes(block) if block else b""
        return [(i, NODE.read(data, (i - base) * NODE.size)) for i in range(max(base, 1), end)]

    # the events

    def events(self):
        """In causal order; times never run backwards."""
        covered, events = {}, []
        for block in self.blocks:
            if block.type in (BLOCK_EVENTS, BLOCK_FOLDED):
                events += EventDecoder(block).events()
                for cover in block.cover:
                    covered[cover.ring] = max(covered.get(cover.ring, 0), cover.end)
        events += self.raw_events(covered)
        last = self.info.fork_ticks
        for event in events:
            last = event.ticks = max(event.ticks, last)
        return events

    def raw_events(self, covered):
        """What no block covers: rings merged by time, at equal times what gives memory back first."""
        slots = self.raw_slots(covered)
        slots.update(self.young_slots(covered))
        rings = {ring: slots_to_events(slots) for ring, slots in slots.items()}
        merged = heapq.merge(*rings.values(), key=lambda e: (e.ticks, e.kind not in GIVES_BACK, e.ring))
        return sort_late(list(merged)) if self.info.record else merged

    def young_slots(self, covered):
        """What waits in the table and in sums, as a ring for each area."""
        data = load(self.file("young")) if self.info.record and self.has("young") else b""
        head = YOUNG.read(data) if len(data) >= YOUNG_TABLE else None
        if not head or head.magic != b"MTYOUN1\n":
            return {}
        start = YOUNG_TABLE + head.blocks * YOUNG_BLOCK.size
        count = min(head.areas, max(0, len(data) - start) // YOUNG_AREA_BYTES)
        areas = [YOUNG_AREA.read(data, start + i * YOUNG_AREA_BYTES) for i in range(count)]
        published = [self.ends.get(a.ring, 0) > a.position or covered.get(a.ring, 0) > a.position for a in areas]
        left = {a.leaves - 1 for a, p in zip(areas, published) if a.leaves and p}
        slots = [[] for _ in areas]

        def put_sum(i, s, thread, ticks):
            packed = s.size | s.hook << 48 | FOLD << 58
            slots[i].append((ticks, EVENT.struct.pack(ticks, s.count, packed, s.node, s.node2),
                             EXT_DEVICE.struct.pack(s.bytes, s.temporary, FOLD_SUM, EXT << 26, thread, 0)))

        table = [YOUNG_BLOCK.read(data, YOUNG_TABLE + i * YOUNG_BLOCK.size) for i in range(head.blocks)]
        for i, area in enumerate(areas):
            freed = area.frees and table[area.frees - 1].addr & 7 == YOUNG_FREED
            for k in range(YOUNG_SUMS):
                s = YOUNG_SUM.read(data, start + i * YOUNG_AREA_BYTES + YOUNG_AREA.size + k * YOUNG_SUM.size)
                if freed and area.sum == k:
                    s.count, s.temporary, s.bytes = area.count, area.temporary, area.bytes
                if s.count and not (published[i] and area.told == k + 1):
                    put_sum(i, s, s.thread, area.since)
        named = {a.frees - 1 for a in areas if a.frees}
        for place, b in enumerate(table):
            if not b.addr & ~7 or b.addr & YOUNG_TAKEN or b.area >= count:
                continue
            if b.addr & 7 == YOUNG_FREED:
                if place not in named:
                    b.count, b.temporary, b.bytes = 1, 0, b.size
                    put_sum(b.area, b, areas[b.area].thread, b.ticks)
                continue
            if not (b.addr & 7 and place in left):
                packed = b.size | b.hook << 48 | ALLOC << 58
                slots[b.area].append((b.ticks, EVENT.struct.pack(b.ticks, b.addr & ~7, packed, b.node, b.node2)))
            if b.addr & YOUNG_FREED:
                slots[b.area].append((b.ticks + 1, EVENT.struct.pack(b.ticks + 1, b.addr & ~7, 1 | FREE << 58, 0, 0)))
        rings = {}
        for i, items in enumerate(slots):
            if items:
                items.sort(key=lambda item: item[0])
                owner = EVENT.struct.pack(items[0][0], areas[i].thread, THREAD << 58, 0, 0)
                ring = self.info.rings + i
                flat = [owner] + [raw for item in items for raw in item[1:]]
                rings[ring] = [(ring, raw) for raw in flat[covered.get(ring, 0):]]
        return rings

    def raw_slots(self, covered):
        data = load(self.file("ring")) if self.has("ring") else b""
        chunks = []
        for i, state in enumerate(self.states):
            chunk = CHUNK.read(data, i * CHUNK_BYTES) if state != CHUNK_FREE else None
            if chunk and chunk.used:
                if chunk.magic != CHUNK_MAGIC:
                    raise Bad(self.file("ring"), i * CHUNK_BYTES, "no chunk begins here")
                chunks.append((chunk.ring, chunk.seq, chunk.used, i * CHUNK_BYTES + CHUNK.size))
        rings, self.ends = {}, {}
        for ring, seq, used, at in sorted(chunks):
            self.ends[ring] = seq * CHUNK_SLOTS + used
            for slot in range(used):
                if seq * CHUNK_SLOTS + slot >= covered.get(ring, 0):
                    start = at + slot * EVENT.size
                    rings.setdefault(ring, []).append((ring, data[start:start + EVENT.size]))
        return rings


def text(data, offset):
    return data[offset:data.index(0, offset)].decode(errors="surrogateescape")


def strings(data):
    """Strings one behind the other; the padding after the last is not a string."""
    found, at = [], 0
    while at < len(data) and not (data[at] == 0 and len(data) - at < 8):
        end = data.index(0, at)
        found.append(data[at:end].decode(errors="surrogateescape"))
        at = end + 1
    return found


# ---- symbols ----------------------------------------------------------------------------------------------------

SYMBOLS_HEAD = Layout("8s magic, I version, I crc, Q stored_bytes, Q plain_bytes")


class SymbolReader:
    def __init__(self, path):
        data = load(path)
        if len(data) < SYMBOLS_HEAD.size or data[:8] != b"MTSYMB1\n":
            raise Bad(path, 0, "no symbols")
        head, stored = SYMBOLS_HEAD.read(data), data[SYMBOLS_HEAD.size:]
        if head.version != 1 or head.stored_bytes != len(stored):
            raise Bad(path, 16, "%d bytes should follow" % head.stored_bytes)
        if zlib.crc32(data[:12] + bytes(4) + data[16:]) != head.crc:
            raise Bad(path, 12, "the checksum is wrong")
        self.data, self.at = decompress(stored, head.plain_bytes), 0
        if self.data is None:
            raise Bad(path, SYMBOLS_HEAD.size, "does not decompress")
        self.strings = [None] + [self.bytes().decode(errors="surrogateescape") for _ in range(self.number())]

    def number(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value

    def bytes(self):
        size = self.number()
        self.at += size
        return self.data[self.at - size:self.at]

    def string(self):
        return self.strings[self.number()]

    def lines(self):
        for _ in range(self.number()):
            path, build_id, address = self.string(), self.bytes(), 0
            for _ in range(self.number()):
                address += self.number()
                for _ in range(self.number()):
                    function, file, language, where = self.string(), self.string(), self.string(), self.number()
                    names = " ".join("-" if s is None else quoted(s) for s in (function, file, language))
                    yield "symbol %s %s 0x%x %s %d %d" % (quoted(path), build_id.hex() or "-", address, names, where >> 1, where & 1)
        if self.at != len(self.data):
            raise Bad("symbols", self.at, "bytes are left over")


# ---- samples of the system --------------------------------------------------------------------------------------

SAMPLES_HEAD = Layout("8s magic, I version, I bytes, Q reserved, Q reserved2")
SAMPLES_BLOCK = Layout("I magic, I crc, I stored_bytes, I plain_bytes, Q first_ns, Q last_ns, I part, I reserved")
SAMPLES_OPEN = Layout("8s magic, I crc, I plain_bytes, Q offset, Q first_ns, Q last_ns, I part, I reserved")
SAMPLES_MAGIC = 0x4253544D
SUBJECT, TIME, FIGURES, GONE = 1, 2, 3, 4

# By kind: its word, and its fields' names; a unit behind the name holds for the names after it too.
SUBJECTS = {kind: (word, []) for kind, word in enumerate(
    ("machine", "cgroup", "process", "mapping", "device", "device-process"), 1)}
UNITS = {"K": 1024, "B": 1, "N": 1, "U": 1000}
for kind, listing in {
    1: "K total free available buffers cached shmem dirty writeback anon mapped slab_reclaimable slab_unreclaimable kernel_stacks "
       "page_tables locked swap_total swap_free swap_cached huge_pages committed per_cpu shm_total shm_used swapped_in "
       "swapped_out N oom_kills U psi_some psi_full",
    2: "K limit current peak anon file shmem kernel file_mapped file_dirty file_inactive swap_limit swap high N limit_hits ooms "
       "oom_kills U psi_some psi_full",
    3: "K rss rss_anon rss_file rss_shmem rss_peak swap size locked page_tables huge_pages N threads minor_faults major_faults "
       "K pss pss_anon pss_file pss_shmem shared_clean shared_dirty private_clean private_dirty anonymous swap_pss data",
    4: "K size rss pss anonymous swap locked",
    5: "B total used free reserved",
    6: "B bytes N known",
}.items():
    unit = None
    for word in listing.split():
        if word in UNITS:
            unit = UNITS[word]
        else:
            SUBJECTS[kind][1].append((word, unit))


class SampleReader:
    """One stream's items; subjects are (kind, keys, texts)."""

    def __init__(self, start):
        self.stream, self.time, self.subjects, self.values = Stream(), start, [], []

    def varint(self):
        value = shift = 0
        while True:
            byte = self.plain[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def string(self):
        size = self.varint()
        self.at += size
        return self.plain[self.at - size:self.at].decode(errors="surrogateescape")

    def block(self, plain):
        """(what, time, subject, [(field, value)])"""
        self.plain, self.at = plain, 0
        while self.at < len(plain):
            item = self.varint()
            if item == SUBJECT:
                self.subjects.append((self.varint(), tuple(self.varint() for _ in range(3)), self.string(), self.string()))
                self.values.append([0] * 64)
            elif item == TIME:
                self.time += self.varint() * 1000
            elif item == FIGURES:
                number, mask = self.varint(), self.varint()
                fields = []
                for i in range(64):
                    if mask >> i & 1:
                        self.values[number][i] = self.values[number][i] + signed(self.varint()) & U64
                        name, unit = SUBJECTS[self.subjects[number][0]][1][i]
                        fields.append((name, self.values[number][i] * unit))
                yield "sample", self.time, self.subjects[number], fields
            elif item == GONE:
                yield "gone", self.time, self.subjects[self.varint()], []
            else:
                raise ValueError("item %d" % item)


def sample_items(path):
    data = load(path) if os.path.exists(path) else b""
    at, reader = SAMPLES_HEAD.size, None
    if data and (data[:8] != b"MTSAMP1\n" or SAMPLES_HEAD.read(data).version != 1):
        raise Bad(path, 0, "no samples of version 1")
    while at + SAMPLES_BLOCK.size <= len(data):
        block = SAMPLES_BLOCK.read(data, at)
        end = at + SAMPLES_BLOCK.size + block.stored_bytes
        if end > len(data):
            break
        whole = data[at:at + 4] + bytes(4) + data[at + 8:end]
        if block.magic != SAMPLES_MAGIC or zlib.crc32(whole) != block.crc:
            raise Bad(path, at, "no block")
        if not block.part:
            reader = SampleReader(block.first_ns)
        plain = reader.stream.decompress(data[at + SAMPLES_BLOCK.size:end], block.plain_bytes)
        if plain is None:
            raise Bad(path, at, "can't be decompressed")
        yield from reader.block(plain)
        at = end
    open_block = load(path + ".open") if os.path.exists(path + ".open") else b""
    head = SAMPLES_OPEN.read(open_block) if len(open_block) > SAMPLES_OPEN.size else None
    if head and head.magic == b"MTSOPEN1" and head.offset == at:
        plain = open_block[SAMPLES_OPEN.size:SAMPLES_OPEN.size + head.plain_bytes]
        if zlib.crc32(open_block[:8] + bytes(4) + open_block[12:SAMPLES_OPEN.size], zlib.crc32(plain)) == head.crc:
            yield from (reader if head.part else SampleReader(head.first_ns)).block(plain)


def sample_lines(folder):
    items = list(sample_items(os.path.join(folder, "samples")))
    names = {subject[1][:2]: subject[2:] for _, _, subject, _ in items if subject[0] == 3}  # the latest of a process counts
    for what, time, (kind, keys, name, name2), fields in items:
        pid = keys[0] if kind in (3, 4) else keys[1] if kind == 6 else 0
        if kind == 3:
            name, name2 = names[keys[:2]]
        head = "%s %d %s %d %d 0x%x" % (what, time, SUBJECTS[kind][0], pid, keys[2] if kind == 6 else 0, keys[2] if kind == 4 else 0)
        yield " ".join([head, quoted(name), quoted(name2)] + ["%s %d" % f for f in fields])


# ---- the text ---------------------------------------------------------------------------------------------------

EXITS = ["unknown", "exit", "signal", "exec"]


# Bytes that are no UTF-8 are \udc80 to \udcff here.
INVALID = "\ud800-\udfff"
HIDDEN = ("\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f-\u1160\u17b4-\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff"
          "\uffa0\ufff0-\ufffb\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff")


def escaped(match):
    units = match.group().encode("utf-16-be")
    return "".join("\\u%02x%02x" % tuple(units[i:i + 2]) for i in range(0, len(units), 2))


def quoted(string):
    """A string of JSON."""
    out = re.sub(r'(["\\])', r"\\\1", string)
    return '"' + re.sub("[%s]" % INVALID, "\ufffd", re.sub("[%s]" % HIDDEN, escaped, out)) + '"'


def word(string):
    """What is a word of its own line."""
    return re.sub("[ %s%s]" % (HIDDEN, INVALID), "?", string)


def facts(number, process, with_nodes):
    info = process.info
    yield ("process %d %d %d origin %s parent %d %d clock %d start %d fork %d nodes %d %d stacks %s depth %d sample %d exit %s %d"
           % (number, info.pid, info.image, "fork" if info.origin == 2 else "exec", info.parent_pid, info.parent_image,
              info.clock, info.start_ticks, info.fork_ticks, info.node_base, info.node_end,
              ["all", "sample", "none"][info.stacks], info.depth, info.sample_bytes, EXITS[info.exit_kind], info.exit_code))
    if info.address_limit or info.data_limit or info.shm_used:
        yield "limits %d address %d of %d data %d of %d shm %d" % (
            number, info.address_used, info.address_limit, info.data_used, info.data_limit, info.shm_used)
    if info.recorded_ticks or info.stopped_ticks or info.stops:
        yield "recorded %d from %d to %d stops %d gaps %d" % (number, info.recorded_ticks, info.stopped_ticks, info.stops, info.gap_ticks)
    if info.origin == 2 and info.fork_ticks and info.fork_node:
        yield "forked %d at %d %d" % (number, info.fork_node, info.fork_node2)
    yield " ".join(["program %d" % number] + [quoted(s) for s in [process.exe] + process.argv])
    yield " ".join(["env %d" % number] + [quoted(s) for s in process.env])
    if process.late:
        yield " ".join(["late %d" % number] + [quoted(s) for s in process.late])
    for start, end, bias, node_from, node_until, build_id, path in process.modules:
        yield "module %d 0x%x 0x%x 0x%x %d %s %s %s" % (
            number, start, end, bias, node_from, "-" if node_until is None else node_until, build_id or "-", quoted(path))
    for key, name in sorted(process.hooks.items()):
        yield "hook %d %d %s" % (number, key, quoted(name))
    for key, path in sorted(process.files.items()):
        yield "file %d %d %s" % (number, key, quoted(path))
    for index, (tid, name) in sorted(process.threads.items()):
        yield "thread %d %d %d %s" % (number, index, tid, quoted(name))
    for pid, kind, code in process.children:
        yield "child %d %d %s %d" % (number, pid, EXITS[kind], code)
    for key, (version, first_line, file, name, lines) in sorted(process.codes.items()):
        yield "code %d %d 0x%x %d %s %s %s" % (
            number, key, version, first_line, quoted(file), quoted(name), lines.hex() or "-")
    for key, backend, ordinal, total, uuid, name in process.devices:
        yield "device %d %d %d %d %d %s %s" % (number, key, backend, ordinal, total, quoted(uuid), quoted(name))
    for key, name in sorted(process.names.items()):
        yield "name %d %d %s" % (number, key, quoted(name))
    for key, node in process.nodes() if with_nodes else ():
        yield "node %d %d %d 0x%x 0x%x" % (number, key, node.parent, node.pc, node.flags)


def line(number, hooks, e):
    hook = word(hooks.get(e.hook, "?"))
    stack = "%s %d %d" % (hook, e.node, e.node2)
    head = "%s %d %d %d" % (WORDS[e.kind], number, e.ticks, e.ring)
    if e.kind == ALLOC:
        return "%s 0x%x %d %s" % (head, e.addr, e.size, stack)
    if e.kind == FAIL:
        return "%s %d %s %s" % (head, e.addr, {MAP: "map", MAP + TRIAL: "map-trial"}.get(e.size, "heap"), stack)
    if e.kind == MAP:
        x = EXT_MAP.read(e.ext)
        return "%s 0x%x %d %s 0x%x 0x%x %d %d 0x%x" % (
            head, e.addr, e.size, stack, x.prot_flags & 0xFF, x.prot_flags >> 8, x.file, x.offset, x.old)
    if e.kind > LOST:
        x = EXT_DEVICE.read(e.ext)
        return "%s 0x%x %d %s %d %d %d 0x%x %d %d%s" % (
            head, e.addr, e.size, stack, x.what & 0xFF, x.what >> 8 & 0xFFFF, x.what >> 24, x.stream, x.other, x.status,
            " %d" % x.capture if x.capture else "")
    if e.kind == UNMAP:
        return "%s 0x%x %d %s" % (head, e.addr, e.size, hook)
    if e.kind in (FREE, UNDO):
        return "%s 0x%x %s" % (head, e.addr, hook)
    if e.kind == THREAD and e.size:
        return "%s %d %d" % (head, e.addr, e.size)
    return "%s %d" % (head, e.addr)


def listed(folder, session):
    """Names of files of this session: its folder's, and those with its own prefix in the ring directory."""
    ring_dir = text(session.ring_dir, 0)
    own = "memtrace-%016x." % session.start_real_ns
    return os.listdir(folder) + ([n for n in os.listdir(ring_dir) if n.startswith(own)] if os.path.isdir(ring_dir) else [])


def dump(folder, with_nodes):
    """Facts of all processes in order of start, then the events of all, which have one clock, in order of time."""
    path = os.path.join(folder, "session")
    data = load(path)
    if data[:8] != b"MTSESS1\n" or len(data) < SESSION.size or SESSION.read(data).version != 1:
        raise Bad(path, 0, "not a session of version 1")
    session = SESSION.read(data)
    names = {m.group(1) for m in (re.search(r"(\d+-\d+)\.(info|trace)$", n) for n in listed(folder, session)) if m}
    processes = [p for p in (Process(session, folder, name) for name in names) if p.info]
    processes.sort(key=lambda p: (p.info.fork_ticks or p.info.start_ticks, p.info.pid, p.info.image))
    streams = []
    for number, process in enumerate(processes):
        yield from facts(number, process, with_nodes)
        streams.append([(e.ticks, number, e) for e in process.events()])
    for _, number, event in heapq.merge(*streams, key=lambda item: item[:2]):
        yield line(number, processes[number].hooks, event)


# ---- holders ----------------------------------------------------------------------------------------------------

HOLD_HEAD = Layout("I magic, I bytes, Q body_bytes, Q ticks, Q end_ticks, I why, I python, I flags, I faults, Q tracked, Q frozen, 64s name")


class HolderItems:
    """The items of one snapshot."""

    def __init__(self, path, data, base):
        self.path, self.data, self.base, self.at, self.last, self.types, self.texts = path, data, base, 0, 0, [], []

    def number(self):
        value = shift = 0
        while True:
            if self.at >= len(self.data) or shift > 63:
                raise self.bad("a snapshot's item is cut off")
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    def address(self):
        z = self.number()
        self.last = (self.last + 8 * (-(z >> 1) - 1 if z & 1 else z >> 1)) & (2**64 - 1)
        return "0x%x" % self.last

    def bad(self, why):
        return Bad(self.path, self.base + self.at, why)

    def text(self):
        n = self.number()
        if n > len(self.data) - self.at:
            raise self.bad("a snapshot's text is cut off")
        self.at += n
        return self.data[self.at - n:self.at].decode("utf-8", "replace")

    def one_of(self, all_of, n):
        if n >= len(all_of):
            raise self.bad("number %d is not known" % n)
        return all_of[n]

    def name(self, n):
        return self.one_of(self.texts, n - 1) if n else ""

    def edges(self, named):
        return " ".join(["%s:%s" % (self.name(self.number()), self.address()) if named else self.address() for _ in range(self.number())])

    def object(self):
        bits, kind = self.number(), self.one_of(self.types, self.number())
        words = ["object", self.address(), kind, "references %d" % self.number(), "bytes %d" % self.number()]
        words += ["tracked"] if bits & 1 else []
        words += ["label %s" % self.one_of(self.texts, self.number())] if bits & 4 else []
        words += ["items %d" % self.number()] if bits & 8 else []
        words += ["atoms %d %d" % (self.number(), self.number())] if bits & 16 else []
        words += ["type"] if bits & 64 else []
        words.append("to [%s]" % self.edges(bits & 2))
        return " ".join(words + (["words [%s]" % self.edges(False)] if bits & 32 else []))

    def frame(self):
        words = ["frame", self.address(), "thread %d" % self.number(), "line %d" % self.number()]
        words += [self.name(self.number()), self.name(self.number())]
        return " ".join(words + ["to [%s]" % self.edges(True), "words [%s]" % self.edges(False)])

    def lines(self):
        while self.at < len(self.data):
            item = self.number()
            if item == 1:
                address, flags, name = self.address(), self.number(), self.text()
                self.types.append(name)
                yield "type %s flags 0x%x %s" % (address, flags, name)
            elif item == 2:
                self.texts.append(self.text())
            elif item == 3:
                yield self.object()
            elif item == 4:
                yield self.frame()
            elif item == 5:
                yield "block %s class 0x%x words [%s]" % (self.address(), self.number(), self.edges(False))
            elif item == 6:
                yield "fault %s" % self.text()
            else:
                raise self.bad("item %d is not known" % item)


def holder_lines(folder):
    for file in sorted(f for f in os.listdir(folder) if f.endswith(".holders")):
        path, at = os.path.join(folder, file), 0
        with open(path, "rb") as opened:
            data = opened.read()
        while at + HOLD_HEAD.size <= len(data):
            head = HOLD_HEAD.read(data, at)
            if head.magic != 0x5348544d:
                raise Bad(path, at, "no snapshot begins here")
            if not head.body_bytes:
                break
            body = data[at + head.bytes:at + head.bytes + head.body_bytes]
            yield "snapshot %s why %d python 0x%x flags %d faults %d tracked %d frozen %d ticks %d %d %s" % (
                file, head.why, head.python, head.flags, head.faults, head.tracked, head.frozen, head.ticks, head.end_ticks,
                head.name.split(b"\0")[0].decode("utf-8", "replace"))
            try:
                yield from HolderItems(path, body, at + head.bytes).lines()
            except Bad:
                if not head.flags & 1:
                    raise
            at += head.bytes + head.body_bytes


def main():
    with_nodes, samples, symbols, holders = ("--" + word in sys.argv for word in ("nodes", "samples", "symbols", "holders"))
    folders = [a for a in sys.argv[1:] if a not in ("--nodes", "--samples", "--symbols", "--holders")]
    if len(folders) != 1:
        sys.exit(__doc__)
    out = open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)
    try:
        for record in (SymbolReader(os.path.join(folders[0], "symbols")).lines() if symbols else
                       sample_lines(folders[0]) if samples else
                       holder_lines(folders[0]) if holders else dump(folders[0], with_nodes)):
            print(record, file=out)
        out.flush()
    except Bad as bad:
        out.flush()
        print("decode.py: " + str(bad), file=sys.stderr)
        sys.exit(3)


if __name__ == "__main__":
    main()
