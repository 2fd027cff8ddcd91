"""Mutants of traces: whole structures changed, checksums mended. Mutant N is the same everywhere: only its number decides.

    m = mutants.Mutant(4711)
    m.write(folder)         # the trace
    m.what                  # of which trace it is and what was done to it, a line each
"""
import os
import random
import struct
import sys
import tempfile

import golden_traces
import hostile
import modules
import records as r
from records import decode

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../battery"))
import trace as battery

NUMBERS = (0, 1, 2, 3, 7, 255, 4095, 4096, 65535, 65536, (1 << 30) - 1, 1 << 30, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 47) - 1, 1 << 47,
           (1 << 48) - 1, 1 << 53, (1 << 62), (1 << 63) - 4096, (1 << 63) - 1, 1 << 63, (1 << 64) - 4096, (1 << 64) - 1)
KINDS = tuple(range(21)) + (63,)
HERE = b"of this machine, as it runs".ljust(40, b"\0")  # a boot_id: store() knows which
PIPE, FOLDER, LOOP, ENDLESS = "a pipe", "a directory", "a link to itself", "a link to /dev/zero"  # in place of a file's bytes


# ---- traces to begin with -------------------------------------------------------------------------------------------


def load(folder):
    return {name: decode.load(os.path.join(folder, name)) for name in sorted(os.listdir(folder))}


def with_symbols(files):
    """Every address of its stacks is known."""
    with tempfile.TemporaryDirectory() as folder:
        store(files, folder)
        return dict(files, symbols=hostile.symbols_of(folder, lambda field, text: text))


def store(files, folder):
    for name, data in files.items():
        path = os.path.join(folder, name)
        if data == PIPE:
            os.mkfifo(path)
        elif data == FOLDER:
            os.mkdir(path)
        elif data == LOOP:
            os.symlink(name, path)
        elif data == ENDLESS:
            os.symlink("/dev/zero", path)
        else:
            with open(path, "wb") as file:
                file.write(data.replace(HERE, boot_id()) if name == "session" else data)


def boot_id():
    with open("/proc/sys/kernel/random/boot_id", "rb") as file:
        return file.read().strip().ljust(40, b"\0")


def devices_trace(path):
    """Two processes on two devices that are sampled: pools, segments, graphs, failures, phases, steps, labels."""
    b = battery
    t = b.Trace(path)
    for pid in (501, 502):
        p = t.process(pid, ["train.py", "--rank", str(pid - 501)])
        devices = [p.device(i, "GPU-%d" % i, 24 << 30) for i in range(2)]
        deep = p.stack(("/src/train.py", "<module>", 3), ("/src/model.py", "Block.forward", 57), library="/lib/libc10.so")
        flat = p.stack(("/src/train.py", "<module>", 9))
        native = p.stack(library="/lib/libtorch.so")
        p.begin("load")
        p.map_file(1 << 20, "/data/weights", native)
        kept = [p.malloc(1000 + i, deep) for i in range(20)]
        p.end_phase("load")
        segments = [p.alloc(d, b.DEVICE, 64 << 20, native) for d in devices]
        graph = p.alloc(devices[0], b.DEVICE, 32 << 20, native)
        pinned = p.alloc(0, b.PINNED, 1 << 20, flat)
        handle = p.alloc(devices[1], b.PHYSICAL, 2 << 20, native, address=77)
        reserved = p.alloc(devices[1], b.RESERVED, 16 << 20, native)
        p.slot(b.DEVICE_MAP, reserved, 2 << 20, 4, native, p.ext(b.PHYSICAL, devices[1], handle))
        for step in range(12):
            p.at(1 + step * 0.1)
            p.step(step)
            p.begin("forward")
            blocks = [p.alloc(d, b.POOL, (1 + i) << 20, deep if i % 2 else flat, address=segments[k] + (i << 22))
                      for k, d in enumerate(devices) for i in range(4)]
            p.label(blocks[0], "activations")
            p.alloc(devices[0], b.POOL, 1 << 16, flat, address=graph + (step << 18), capture=1 + step % 2)
            p.end_phase("forward")
            for k, block in enumerate(blocks):
                p.free(devices[k // 4], b.POOL, block)
            kept.append(p.malloc(50_000, flat))
            p.mfree(kept.pop(0))
        p.info(devices[0], 1 << 20, 24 << 30)
        p.fail(devices[0], b.DEVICE, 2 << 30, native)
        p.fail(devices[0], b.POOL, 2 << 30, deep, 50 << 20, 96 << 20)
        p.slot(b.DEVICE_UNMAP, reserved, 2 << 20, 5, (0, 0), p.ext(b.PHYSICAL, devices[1], handle))
        p.slot(b.LOST, 5)
        p.free(0, b.PINNED, pinned)
    sample(t)
    t.save()
    return path


def sample(t):
    s = t.samples
    machine = s.subject("MACHINE")
    group = s.subject("CGROUP", (2, 0, 0), "/box", "/box/job")
    processes = [s.subject("PROCESS", (pid, pid, 1), "python", "/box/job") for pid in (501, 502)] + [s.subject("PROCESS", (9, 9, 0), "other", "/")]
    mapping = s.subject("MAPPING", (501, 501, 0x7F0000000000), "[anon]")
    device = [s.subject("DEVICE", (1, i, 0), "GPU-%d" % i, "Stand-in") for i in range(2)]
    users = [s.subject("DEVICE_PROCESS", (1, pid, pid), "GPU-0", "python") for pid in (501, 9)]
    for i in range(15):
        now = i * 0.2
        s.say(now, machine, total=64 << 30, free=(20 - i) << 30, available=(30 - i) << 30, committed=30 << 30)
        s.say(now, group, limit=8 << 30, current=i << 29, peak=i << 29, anon=i << 28, file=1 << 28, oom_kills=i // 8)
        for p in processes:
            s.say(now, p, rss=(100 + i) << 20, rss_peak=(100 + i) << 20, size=1 << 30, threads=4, pss=90 << 20, private_dirty=i << 20)
        s.say(now, mapping, size=64 << 20, rss=i << 20, pss=i << 20, anonymous=i << 20)
        for d in device:
            s.say(now, d, total=24 << 30, used=(10 + i) << 30, free=(14 - i) << 30)
        for u in users:
            s.say(now, u, bytes=(5 << 30) + i, known=1)


def folded_trace(path):
    """A trace of allocations with a block whose pairs are left out."""
    source = os.path.join(path, "plain")
    os.makedirs(source)
    golden_traces.unpack("final", source)
    files = load(source)
    name = next(n for n in files if n.endswith(".trace"))
    head, blocks = r.read_blocks(files[name], os.path.join(source, name))
    for block in blocks:
        if block.type == decode.BLOCK_EVENTS:
            events = r.read_events(block)
            block.type, first, last = decode.BLOCK_FOLDED, events[0], events[-1]
            fold = lambda at, what, addr, size, stream, other, of: folding(at, what, addr, size, stream, other, of)
            thread = 0
            events = [fold(first, 1, 1 << 20, 0, 1 << 20, 0, thread)] + events + [
                fold(last, 2, 9, 1000, 9000, 3, thread), fold(last, 2, 5, 64, 320, 5, thread), fold(last, 3, 0, 0, 0, 0, thread)]
            covers = block.covers
            r.write_events(block, events)
            slots = sum(c[3] - c[2] for c in covers)
            covers[-1][3] += max(0, block.count - slots) + 28
            block.covers, block.shift = covers, block.shift & 255 | 1 << 8
    os.unlink(os.path.join(source, name))
    return dict(files, **{name: head + b"".join(b.pack() for b in blocks)})


def folding(like, what, addr, size, stream, other, thread):
    e = decode.Event(like.ring, like.ticks, addr, size, like.hook, 19, like.node, 0)
    e.ext = struct.pack("<QQIIII", stream, other, what, decode.EXT << 26, thread, 0)
    return e


class Originals:
    """Name -> files; made once."""
    made = None

    @classmethod
    def get(cls):
        if cls.made is None:
            cls.made = {}
            for name in golden_traces.NAMES:
                with tempfile.TemporaryDirectory() as folder:
                    cls.made[name] = load(golden_traces.unpack(name, folder))
            with tempfile.TemporaryDirectory() as folder:
                cls.made["made"] = load(devices_trace(os.path.join(folder, "t")))
            with tempfile.TemporaryDirectory() as folder:
                cls.made["folded"] = folded_trace(folder)
            for name in ("final", "made"):
                cls.made[name + "+symbols"] = with_symbols(cls.made[name])
        return cls.made


# ---- changes of one structure ---------------------------------------------------------------------------------------


def number(chance, near=0):
    """One that something may not have been prepared for."""
    return chance.choice((near - 1, near + 1, near * 2, near // 2)) & r.U64 if chance.random() < 0.4 else chance.choice(NUMBERS)


def shuffle_list(chance, items, make=None):
    """Drops, doubles, moves, reverses, repeats; says what."""
    if not items:
        return "nothing to move"
    at = chance.randrange(len(items))
    n = min(len(items) - at, chance.choice((1, 1, 1, 2, 5, 50)))
    way = chance.choice(("drop", "double", "swap", "reverse", "repeat", "move", "cut"))
    part = items[at:at + n]
    copy = make or (lambda x: x)
    if way == "drop":
        del items[at:at + n]
    elif way == "double":
        items[at:at] = [copy(x) for x in part]
    elif way == "swap":
        to = chance.randrange(len(items))
        items[at], items[to] = items[to], items[at]
    elif way == "reverse":
        items[at:at + n] = part[::-1]
    elif way == "repeat":
        items[at:at] = [copy(x) for x in part[:3] * 40]
    elif way == "move":
        del items[at:at + n]
        to = chance.randrange(len(items) + 1)
        items[to:to] = part
    else:
        del items[at:]
    return "%s %d at %d of %d" % (way, n, at, len(items))


def copy_event(e):
    new = decode.Event(e.ring, e.ticks, e.addr, e.size, e.hook, e.kind, e.node, e.node2)
    new.ext = e.ext
    return new


EXT_FIELDS = (("stream", "<Q", 0), ("other", "<Q", 8), ("class", "<B", 16), ("device", "<H", 17), ("source", "<B", 19), ("status", "<I", 24),
              ("capture", "<I", 28), ("flags", "<H", 17))


def change_ext(chance, event):
    word, code, at = chance.choice(EXT_FIELDS)
    ext = bytearray(event.ext or struct.pack("<QQIIII", 0, 0, 1, decode.EXT << 26, 0, 0))
    old, = struct.unpack_from(code, ext, at)
    bits = 8 * struct.calcsize(code)
    value = (chance.randrange(21) if word in ("class", "source") and chance.random() < 0.8 else number(chance, old)) & (1 << bits) - 1
    struct.pack_into(code, ext, at, value)
    event.ext = bytes(ext)
    return "ext.%s %d to %d" % (word, old, value)


def change_event(chance, events):
    at = chance.randrange(len(events))
    e, other = events[at], chance.choice(events)
    field = chance.choice(("ticks", "addr", "addr", "size", "size", "hook", "kind", "kind", "node", "node", "node2", "ring", "ext", "ext", "ext", "neighbour"))
    if field == "ext":
        return "event %d: %s" % (at, change_ext(chance, e))
    if field == "neighbour":
        field = chance.choice(("addr", "size", "node", "node2", "ticks", "kind"))
        value = getattr(other, field)
    elif field == "kind":
        value = chance.choice(KINDS)
        if value in r.HAS_EXT and not e.ext and chance.random() < 0.9:
            e.ext = struct.pack("<QQIIII", 0, 0, chance.randrange(1, 12) | chance.randrange(3) << 8, decode.EXT << 26, 0, 0)
        elif value not in r.HAS_EXT and chance.random() < 0.9:
            e.ext = None
    else:
        value = number(chance, getattr(e, field))
    limit = {"size": (1 << 48) - 1, "hook": 1023, "kind": 63, "node": r.U32, "node2": r.U32, "ring": r.U32}.get(field, r.U64)
    old = getattr(e, field)
    setattr(e, field, value & limit)
    return "event %d (%s): %s %d to %d" % (at, decode.WORDS[e.kind] if e.kind < 20 else e.kind, field, old, value & limit)


def change_events(chance, events):
    """A field of one or of all of a kind, or the list itself."""
    if not events:
        return "no events"
    way = chance.random()
    if way < 0.6:
        return "; ".join(change_event(chance, events) for _ in range(chance.choice((1, 1, 3, 20))))
    if way < 0.8:
        return "events: " + shuffle_list(chance, events, copy_event)
    kind = chance.choice(events).kind
    if way < 0.9:
        kept = [e for e in events if e.kind != kind]
        gone = len(events) - len(kept)
        events[:] = kept or events[:1]
        return "all %d events of kind %d are left out" % (gone, kind)
    field, value = chance.choice((("size", (1 << 48) - 1), ("addr", 4096), ("node", 0), ("node", r.U32), ("ticks", events[0].ticks), ("hook", 0)))
    for e in events:
        if e.kind == kind:
            setattr(e, field, value)
    return "%s of all events of kind %d is %d" % (field, kind, value)


def change_nodes(chance, nodes, base):
    if not nodes:
        return "no nodes"
    at = chance.randrange(len(nodes))
    way = chance.choice(("parent", "parent", "pc", "flags", "cycle", "python", "list", "deep"))
    if way == "list":
        return "nodes: " + shuffle_list(chance, nodes, list)
    if way == "cycle":
        to = chance.randrange(len(nodes))
        nodes[at][1], nodes[to][1] = base + to, base + at
        return "nodes %d and %d are each other's parent" % (at, to)
    if way == "python":
        nodes[at][0], nodes[at][2] = 1 << 63 | chance.randrange(2) << 62 | chance.choice((0, 1, 2, 3, 1 << 29, (1 << 30) - 1)) << 32 | (
            chance.choice((0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF))), chance.choice((2, 3, 6, 7))
        return "node %d is a Python frame 0x%x" % (at, nodes[at][0])
    if way == "deep":
        for i in range(1, len(nodes)):
            nodes[i][1] = base + i - 1
        return "the nodes are one path"
    if way == "parent":
        nodes[at][1] = chance.choice((base + at, base + at + 1, base + len(nodes), r.U32, base, 0, base - 1 & r.U32, number(chance, nodes[at][1]))) & r.U32
    elif way == "pc":
        nodes[at][0] = number(chance, nodes[at][0])
    else:
        nodes[at][2] = chance.choice((0, 1, 2, 3, 4, 5, 6, 7, 8, r.U32))
    return "node %d: %s is now %s" % (at, way, nodes[at])


def change_payload(chance, record):
    """Words of a record of the log, its end, or its texts."""
    data = bytearray(record[2])
    way = chance.choice(("word", "word", "word", "cut", "ends", "longer"))
    if way == "word" and len(data) >= 4:
        at = 4 * chance.randrange(min(len(data), 40) // 4)
        struct.pack_into("<I", data, at, number(chance, struct.unpack_from("<I", data, at)[0]) & r.U32)
        what = "word at %d" % at
    elif way == "cut":
        del data[chance.randrange(len(data) + 1):]
        what = "%d bytes are left" % len(data)
    elif way == "ends":
        data = bytearray(b if b else 1 for b in data)
        what = "no string ends"
    else:
        data += bytes(chance.choice((1, 8, 4096)))
        what = "longer"
    record[2] = bytes(data)
    record[3] = None if chance.random() < 0.8 else number(chance, record[3] or 16) & r.U32
    return "record of type %d: %s%s" % (record[0], what, "" if record[3] is None else ", says %d bytes" % record[3])


def change_info(chance, info):
    way = chance.random()
    if way < 0.4 or not info.records:
        field = chance.choice(info.head.numbers())
        old = info.head.fields[field]
        info.head.fields[field] = number(chance, old)
        if field == "log_bytes":
            info.log_bytes = True
        return "info.%s %d to %d" % (field, old, info.head.fields[field])
    if way < 0.6:
        return "log: " + shuffle_list(chance, info.records, list)
    record = chance.choice(info.records)
    if way < 0.7:
        old, record[0] = record[0], chance.choice((0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 65535))
        return "a record of type %d is of type %d" % (old, record[0])
    if way < 0.75:
        record[1] = number(chance, record[1])
        return "a record's time is %d" % record[1]
    return change_payload(chance, record)


# ---- changes of one file --------------------------------------------------------------------------------------------


def change_block(chance, block):
    way = chance.random()
    if block.type in (decode.BLOCK_EVENTS, decode.BLOCK_FOLDED) and way < 0.7:
        events = r.read_events(block)
        covers = block.covers
        what = change_events(chance, events)
        r.write_events(block, events)
        if block.type == decode.BLOCK_FOLDED and covers:
            covers[-1][3] = covers[-1][2] + max(covers[-1][3] - covers[-1][2], block.count)
        return what
    if block.type == decode.BLOCK_NODES and way < 0.7:
        nodes = r.read_nodes(decode.decode_nodes(block.source))
        what = change_nodes(chance, nodes, block.first)
        block.columns, block.count = r.nodes_columns(nodes, block.first), len(nodes)
        return what
    if block.type == decode.BLOCK_INFO and way < 0.85:
        info = r.Info(block.columns[0], struct.unpack_from("<I", block.columns[0], 12)[0])
        what = change_info(chance, info)
        block.columns = [info.pack()]
        block.count = len(block.columns[0])
        return what
    way = chance.choice(("head", "cover", "column", "column", "columns"))
    if way == "head":
        field = chance.choice(("type", "count", "first", "last", "shift"))
        old = getattr(block, field)
        setattr(block, field, chance.randrange(7) if field == "type" else number(chance, old))
        return "head of block of type %d: %s %d to %d" % (block.type, field, old, getattr(block, field))
    if way == "cover" and block.covers:
        at, field = chance.randrange(len(block.covers)), chance.randrange(4)
        block.covers[at][field] = number(chance, block.covers[at][field])
        return "cover %d is %s" % (at, block.covers[at])
    if way == "columns" or not block.columns:
        return "columns: " + shuffle_list(chance, block.columns)
    at = chance.randrange(len(block.columns))
    values = list(decode.varints(block.columns[at])) if at != decode.PLACE else list(block.columns[at])
    if values and chance.random() < 0.7:
        where = chance.randrange(len(values))
        values[where] = number(chance, values[where])
        what = "value %d is %d" % (where, values[where])
    else:
        what = shuffle_list(chance, values)
    block.columns[at] = r.varints(values) if at != decode.PLACE else bytes(v & 255 for v in values)
    return "column %d of block of type %d: %s" % (at, block.type, what)


def change_trace(chance, files, name):
    with tempfile.NamedTemporaryFile() as file:
        file.write(files[name])
        file.flush()
        head, blocks = r.read_blocks(files[name], file.name)
    way = chance.random()
    if way < 0.75:
        at = chance.randrange(len(blocks))
        what = "block %d: %s" % (at, change_block(chance, blocks[at]))
    elif way < 0.9:
        what = "blocks: " + shuffle_list(chance, blocks)
    elif way < 0.97:
        more = [n for f in Originals.get().values() for n in f.items() if n[0].endswith(".trace")]
        with tempfile.NamedTemporaryFile() as file:
            file.write(chance.choice(more)[1])
            file.flush()
            block = chance.choice(r.read_blocks(decode.load(file.name), file.name)[1])
        blocks.insert(chance.randrange(len(blocks) + 1), block)
        what = "a block of type %d of another trace" % block.type
    else:
        at = chance.choice((8, 12, 16, 20))
        head = head[:at] + struct.pack("<I", number(chance, struct.unpack_from("<I", head, at)[0]) & r.U32) + head[at + 4:]
        what = "word %d of the head" % at
    files[name] = head + b"".join(b.pack() for b in blocks)
    return what


def change_raw_info(chance, files, name):
    info = r.Info(files[name], decode.INFO_LOG)
    if chance.random() < 0.15:
        at = chance.randrange(3)
        info.rest = info.rest[:4096 - decode.INFO.size + at] + bytes([chance.choice((0, 1, 2, 255))]) + info.rest[4097 - decode.INFO.size + at:]
        what = "state of chunk %d" % at
    else:
        what = change_info(chance, info)
    files[name] = info.pack()
    return what


def change_raw_nodes(chance, files, name):
    nodes = r.read_nodes(files[name])
    used = max((i for i, n in enumerate(nodes) if n[0]), default=0) + 1
    part = nodes[:used]
    what = change_nodes(chance, part, 0)
    files[name] = r.write_nodes(part + nodes[used:])
    return what


def change_ring(chance, files, name):
    at, head, events = chance.choice(r.read_ring(files[name]))
    if chance.random() < 0.8:
        what = change_events(chance, events)
        files[name] = r.write_chunk(files[name], at, head, events)
        return what
    field = chance.choice(("magic", "ring", "seq", "used", "thread"))
    head.fields[field] = number(chance, head.fields[field])
    files[name] = files[name][:at] + head.pack() + files[name][at + 64:]
    return "chunk.%s is %d" % (field, head.fields[field])


def change_session(chance, files, name):
    session = r.Head(decode.SESSION, files[name])
    field = chance.choice(session.numbers() + ["ring_dir"] + ["boot_id"] * 8)
    session.fields[field] = HERE if field == "boot_id" else chance.choice((b"/nowhere", b".", b"x" * 1024, b"/proc/self")) if field == "ring_dir" else number(chance, session.fields[field])
    files[name] = session.pack() + files[name][decode.SESSION.size:]
    return "session.%s is %s" % (field, session.fields[field])


def change_items(chance, items):
    if chance.random() < 0.4:
        return "items: " + shuffle_list(chance, items, list)
    item = chance.choice(items)
    at = chance.randrange(len(item))
    if isinstance(item[at], bytes):
        item[at] = chance.choice((b"", b"x" * 1000, b"x" * 1001, b"\0", b"GPU-1", b"[anon]"))
    else:
        item[at] = number(chance, item[at])
    return "item %s" % str(item)[:200]


def change_samples(chance, files, name):
    streams = r.sample_streams(files[name])
    stream = chance.choice(streams)
    what = []
    for _ in range(chance.choice((1, 1, 3, 10))):
        if chance.random() < 0.15:
            at = chance.randrange(2)
            stream[at] = number(chance, stream[at])
            what.append("%s is %d" % (("first_ns", "last_ns")[at], stream[at]))
        else:
            what.append(change_items(chance, stream[2]))
    if chance.random() < 0.2:
        what.append("streams: " + shuffle_list(chance, streams))
    data = files[name][:32] + b"".join(r.samples_block(first, last, r.pack_items(items), 0 if chance.random() < 0.95 else number(chance))
                                       for first, last, items in streams)
    if chance.random() < 0.2 and streams:
        files["samples.open"] = r.samples_open(len(data) if chance.random() < 0.8 else number(chance), *streams[-1][:2],
                                               r.pack_items(streams[-1][2]))
        what.append("the last stream is in samples.open, too")
    files[name] = data
    return "; ".join(what)


def change_symbols(chance, files, name):
    tokens = r.symbol_tokens(files[name])
    what = []
    for _ in range(chance.choice((1, 1, 2, 5))):
        at = chance.randrange(len(tokens))
        if isinstance(tokens[at], bytes) or chance.random() < 0.2:
            what.append("tokens: " + shuffle_list(chance, tokens))
        else:
            tokens[at] = number(chance, tokens[at])
            what.append("token %d is %d" % (at, tokens[at]))
    files[name] = r.pack_symbols(tokens)
    return "; ".join(what)


WAYS = {".trace": change_trace, ".info": change_raw_info, ".nodes": change_raw_nodes, ".ring": change_ring, "session": change_session,
        "samples": change_samples, "symbols": change_symbols}


# ---- changes of files -----------------------------------------------------------------------------------------------


def borders(name, data):
    """Where a part of a file begins."""
    if name.endswith(".trace"):
        at, found = 32, [0, 32]
        while at + 56 <= len(data):
            covers, payload = struct.unpack_from("<IQ", data, at + 12)
            at += 56 + 24 * covers + payload
            found.append(at)
        return found
    step = {".ring": decode.CHUNK_BYTES, ".info": 4096, ".nodes": 16}.get(os.path.splitext(name)[1], 32)
    return list(range(0, len(data) + 1, step))


def change_files(chance, files):
    name = chance.choice(sorted(files))
    ending = os.path.splitext(name)[1]
    way = chance.choice(("swap", "other", "other", "cut", "cut", "cut", "new pid", "new pid", "drop", "kind", "empty", "insert", "both"))
    alike = [n for n in sorted(files) if os.path.splitext(n)[1] == ending and n != name]
    if way == "swap" and alike:
        other = chance.choice(alike)
        files[name], files[other] = files[other], files[name]
        return "%s and %s are swapped" % (name, other)
    if way == "other":
        trace = chance.choice(sorted(Originals.get()))
        found = [n for n in sorted(Originals.get()[trace]) if os.path.splitext(n)[1] == ending and (ending or n == name)]
        if found:
            other = chance.choice(found)
            files[name] = Originals.get()[trace][other]
            return "%s is %s of %s" % (name, other, trace)
    if way == "both" and "-" in name:
        trace = chance.choice(sorted(Originals.get()))
        for other, data in Originals.get()[trace].items():
            files.setdefault(other, data)
        return "all files of %s, too" % trace
    if way == "new pid" and "-" in name:
        stem, number_ = os.path.splitext(name)[0], chance.choice(("1-0", "17363-1", "4294967295-0", "4294967296-0", "502-1", "27723-1", "0-0"))
        for n in [n for n in sorted(files) if os.path.splitext(n)[0] == stem]:
            files[number_ + os.path.splitext(n)[1]] = files[n]
            if chance.random() < 0.5:
                pid, image = (int(w) & r.U32 for w in number_.split("-"))
                at = 16 if n.endswith((".trace", ".info")) else None
                if at:
                    data = files[n]
                    files[number_ + os.path.splitext(n)[1]] = data[:at] + struct.pack("<II", pid, image) + data[at + 8:]
        return "%s is there as %s, too" % (stem, number_)
    if way in ("cut", "insert") and not isinstance(files[name], bytes):
        way = "drop"
    if way == "cut":
        at = chance.choice(borders(name, files[name]))
        files[name] = files[name][:at + chance.choice((0, 0, 1, -1, 20))] if at else files[name][:at]
        return "%s is cut off at %d" % (name, len(files[name]))
    if way == "insert":
        at = chance.choice(borders(name, files[name]))
        files[name] = files[name][:at] + bytes(chance.choice((1, 32, 56, 4096))) + files[name][at:]
        return "zeros in %s at %d" % (name, at)
    if way == "kind":
        files[name] = chance.choice((PIPE, FOLDER, LOOP, ENDLESS))
        return "%s is %s" % (name, files[name])
    if way == "empty":
        files[name] = b""
        return "%s is empty" % name
    del files[name]
    return "%s is missing" % name


def change(chance, files):
    """One change of what there is; says what."""
    if chance.random() < 0.12:
        return change_files(chance, files)
    if chance.random() < 0.05 and isinstance(files.get("session"), bytes):  # whoever is not known to have ended may run
        files["session"] = files["session"][:64] + HERE + files["session"][104:]
        return "session.boot_id is this machine's"
    name = chance.choice(sorted(files))
    if chance.random() < 0.3:  # the session is a small part of what is read
        name = chance.choice(sorted(n for n in files if n != "session") or [name])
    way = WAYS.get(os.path.splitext(name)[1] or name)
    if not way or not isinstance(files[name], bytes):
        return change_files(chance, files)
    return "%s: %s" % (name, way(chance, files, name))


class Mutant:
    """A trace, or one with a module that is changed."""

    def __init__(self, seed):
        self.seed, self.what = seed, []
        chance = self.chance = random.Random("memtrace %d" % seed)
        self.elf = chance.random() < 0.2
        if self.elf:
            self.module, self.what = modules.mutant(chance)
            return
        name = chance.choice(sorted(Originals.get()))
        self.what.append("trace " + name)
        self.files = dict(Originals.get()[name])
        for _ in range(chance.choice((1, 1, 2, 3, 5))):
            try:
                self.what.append(change(chance, self.files))
            except Exception as error:  # whatever an earlier change has made of it
                self.what.append("no change: what is damaged already can't be taken apart (%s)" % type(error).__name__)

    def write(self, folder):
        """The trace's folder; what it names lies beside it."""
        trace = os.path.join(folder, "t")
        if self.elf:
            modules.write(self.module, folder, trace)
        else:
            os.mkdir(trace)
            store(self.files, trace)
        return trace
