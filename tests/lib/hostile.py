"""Names that mean harm, and traces that have one in every field that holds text: rewritten from docs/FORMAT.md, checksums mended."""
import os
import re
import struct
import sys
import unicodedata
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../battery"))
import decode
import trace as battery

FORMAT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/FORMAT.md")
MOST_SAMPLE = 1000  # bytes of a text in samples
MARK = "INJECTED"  # begins no line of memtrace's own
TRICKS = (b"\x1b[2J\x1b]0;owned\x07\x1b]8;;http:x\x1b\\link\x1b]8;;\x1b\\", b"\n" + MARK.encode() + b" status ok\r" + MARK.encode(), b"\xff\xc3\x9b",
          b"\xc2\x9b2J\xc2\x85", b"\xc0\x8a\xe0\x80\x8a\xed\xa0\x80\xf4\x90\x80\x80\xe2\x96", "\u202egnp.\u2066\u2069\u200b\u200e\u200f\u061c\u2028\u2029\ufeff".encode(),
          b"'\"\\`$(touch pwned);&|<>*?[x] \t ,=1+1 ", "内存 e\u0301 \U0001f600\U000e0041".encode())
ALL = b"".join(TRICKS)
SEEN_CF = {0x600, 0x601, 0x602, 0x603, 0x604, 0x605, 0x6dd, 0x70f, 0x890, 0x891, 0x8e2, 0x110bd, 0x110cd}  # signs that stand before digits
INVISIBLE = "".join(chr(c) for c in range(1, 0x110000) if unicodedata.category(chr(c)) in ("Cc", "Cf", "Zl", "Zp") and c not in SEEN_CF)
UNSEEN = re.compile("[%s\ud800-\udfff]" % re.escape(INVISIBLE.replace("\n", "")))


def name(trick=ALL, length=0):
    """A name of a file: no slash, no NUL, at most 255 bytes."""
    return (trick.replace(b"/", b"") + b"n" * length)[:255]


def forms(text, number):
    """The same name, with harm before it, behind it, or far behind it."""
    return (ALL + text, text + ALL, text + b"l" * 4096 + ALL, text + INVISIBLE.encode())[number % 4]


class Changer:
    """Gives each text that it is asked for another form; .fields says what it was asked for."""

    def __init__(self, first=0):
        self.number, self.fields = first, set()

    def __call__(self, field, text):
        self.fields.add(field)
        self.number += 1
        return forms(text, self.number)


# ---- the log: type -> (bytes before the texts, how many texts; None: all there are) ---------------------------------

RECORDS = {
    "PROGRAM": (1, lambda data: 0, None), "ENV": (2, lambda data: 0, None), "HOOK": (3, lambda data: 8, 1),
    "MODULE": (4, lambda data: 32 + struct.unpack_from("<I", data, 28)[0], 1), "UNMODULE": (5, len, 0), "THREAD": (6, lambda data: 8, 1),
    "FILE": (7, lambda data: 8, 1), "CHILD": (8, len, 0), "CODE": (9, lambda data: 16 + struct.unpack_from("<I", data, 12)[0], 2),
    "DEVICE": (10, lambda data: 24, 2), "NAME": (11, lambda data: 8, 1),
}


def documented():
    """What docs/FORMAT.md says: {name of a record: number}, fields of char[], kinds of samples with their texts."""
    with open(FORMAT, encoding="utf-8") as file:
        page = file.read()
    log = page[page.index("### Records"):page.index("## Nodes")]
    return ({m[1]: int(m[0]) for m in re.findall(r"^\| (\d+) ([A-Z]+) \|", log, re.M)},
            set(re.findall(r"^\| \d+ \| char\[\d+\] \| (\w+) \|", page, re.M)),
            {int(m[0]): m[1] for m in re.findall(r"^\| (\d) ([a-z ]+) \|[^|]*\| [KBN] ", page, re.M)})


def change_log(log, change):
    kinds = {number: (word, before, count) for word, (number, before, count) in RECORDS.items()}
    out, at = bytearray(), 0
    while at < len(log):
        record = decode.RECORD.read(log, at)
        data = log[at + decode.RECORD.size:at + record.bytes]
        word, before, count = kinds[record.type]
        kept = before(data)
        texts = decode.strings(data[kept:])[:count] if count != 0 else []
        new = data[:kept] + b"".join(change(word, t.encode(errors="surrogateescape")) + b"\0" for t in texts)
        size = decode.RECORD.size + len(new) + 7 & ~7
        out += struct.pack("<HHIQ", record.type, 0, size, record.ticks) + new.ljust(size - decode.RECORD.size, b"\0")
        at += record.bytes
    return bytes(out)


def change_info(data, change, log_at):
    head, log_bytes = bytearray(data[:log_at]), struct.unpack_from("<Q", data, 144)[0]
    log = change_log(data[log_at:log_at + log_bytes], change)
    struct.pack_into("<Q", head, 144, len(log))
    return bytes(head) + log


def change_blocks(path, change):
    data = decode.load(path)
    out = bytearray(data[:decode.TRACE.size])
    for block in decode.trace_blocks(path):
        payload, count = block.payload, block.count
        if block.type == decode.BLOCK_INFO:
            plain = decode.decode_info(block)
            plain = change_info(plain, change, struct.unpack_from("<I", plain, 12)[0])
            frame = battery.stored(plain)
            payload, count = struct.pack("<II", len(plain), len(frame)) + frame, len(plain)
        covers = b"".join(struct.pack("<IIQQ", c.ring, c.thread, c.start, c.end) for c in block.cover)
        shift = struct.unpack_from("<I", data, block.offset + 48)[0]
        head = [block.magic, block.type, 0, block.covers, len(payload), count, block.first_ticks, block.last_ticks, shift, block.columns]
        whole = struct.pack("<IIIIQQQQII", *head) + covers + payload
        head[2] = zlib.crc32(whole)
        out += struct.pack("<IIIIQQQQII", *head) + covers + payload
    return bytes(out)


# ---- samples -------------------------------------------------------------------------------------------------------


def change_items(plain, change):
    """Items of samples with other texts."""
    out, at = bytearray(), 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = plain[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def copied(count):
        start = at
        values = [number() for _ in range(count)]
        out.extend(plain[start:at])
        return values

    while at < len(plain):
        item, = copied(1)
        if item == decode.SUBJECT:
            kind = copied(4)[0]
            for i in range(2):
                size, start = number(), at
                at += size
                text = plain[start:at]
                text = change("%s text%d" % (decode.SUBJECTS[kind][0], i + 1), text)[-MOST_SAMPLE:] if size else text
                out += battery.varint(len(text)) + text
        elif item == decode.FIGURES:
            copied(bin(copied(2)[1]).count("1"))
        else:
            copied(1)
    return bytes(out)


def change_samples(path, change):
    """Each stream becomes one block."""
    data = decode.load(path)
    out, at, streams = bytearray(data[:decode.SAMPLES_HEAD.size]), decode.SAMPLES_HEAD.size, []
    while at + decode.SAMPLES_BLOCK.size <= len(data):
        block = decode.SAMPLES_BLOCK.read(data, at)
        end = at + decode.SAMPLES_BLOCK.size + block.stored_bytes
        if not block.part:
            streams.append([block.first_ns, block.last_ns, b"", decode.Stream()])
        streams[-1][1] = block.last_ns
        streams[-1][2] += streams[-1][3].decompress(data[at + decode.SAMPLES_BLOCK.size:end], block.plain_bytes)
        at = end
    for first, last, plain, _ in streams:
        plain = change_items(plain, change)
        frame = battery.stored(plain)
        head = [decode.SAMPLES_MAGIC, 0, len(frame), len(plain), first, last, 0, 0]
        head[1] = zlib.crc32(struct.pack("<IIIIQQII", *head) + frame)
        out += struct.pack("<IIIIQQII", *head) + frame
    return bytes(out)


# ---- symbols -------------------------------------------------------------------------------------------------------


def symbols_of(folder, change):
    """A file of symbols for every address that the stacks of a trace have, of changed names."""
    strings, modules = [], {}

    def string(field, text):
        valid = change(field, text).decode(errors="ignore").replace("\0", "").encode()  # what is no UTF-8 is refused
        strings.append(valid)
        return battery.varint(len(strings))

    for file in sorted(os.listdir(folder)):
        if not re.fullmatch(r"\d+-\d+\.(info|trace)", file):
            continue
        session = decode.SESSION.read(decode.load(os.path.join(folder, "session")))
        process = decode.Process(session, folder, file.rsplit(".", 1)[0])
        for _, node in process.nodes():
            for start, end, bias, _, _, build_id, path in process.modules:
                if start <= node.pc < end and not node.pc >> 63:
                    modules.setdefault((path, build_id), set()).add(node.pc - bias - (0 if node.flags & 1 else 1))
    body = bytearray(battery.varint(len(modules)))
    for (path, build_id), addresses in sorted(modules.items()):
        raw = path.encode(errors="surrogateescape")
        strings.append(raw.decode(errors="ignore").encode())
        body += battery.varint(len(strings)) + battery.varint(len(build_id) // 2) + bytes.fromhex(build_id) + battery.varint(len(addresses))
        last = 0
        for address in sorted(addresses):
            body += battery.varint(address - last) + battery.varint(1)
            last = address
            body += string("function", b"work()") + string("file", b"/src/work.cc") + string("language", b"c++") + battery.varint(7 << 1)
    plain = battery.varint(len(strings)) + b"".join(battery.varint(len(s)) + s for s in strings) + bytes(body)
    frame = battery.stored(plain)
    head = [b"MTSYMB1\n", 1, 0, len(frame), len(plain)]
    head[2] = zlib.crc32(struct.pack("<8sIIQQ", *head) + frame)
    return struct.pack("<8sIIQQ", *head) + frame


# ---- a trace -------------------------------------------------------------------------------------------------------


def change_session(data, change, ring_dir):
    out = bytearray(data)
    for field, at, room in (("host", 104, 64), ("boot_id", 64, 40), ("ring_dir", 168, 1024)):
        if field == "ring_dir" and not ring_dir:
            continue
        text = change(field, bytes(data[at:at + room]).split(b"\0")[0])[:room - 1]
        if field == "ring_dir":
            text = b"/nowhere" + name(text)[:200]
        out[at:at + room] = text.ljust(room, b"\0")
    return bytes(out)


def rewrite(folder, change):
    """Every text of a trace directory is what change(field, text) says. Its raw files must lie in it, or there must be none."""
    raw = any(f.endswith(".info") for f in os.listdir(folder))
    for file in sorted(os.listdir(folder)):
        path = os.path.join(folder, file)
        if file.endswith(".trace"):
            new = change_blocks(path, change)
        elif file.endswith(".info"):
            new = change_info(decode.load(path), change, decode.INFO_LOG)
        elif file == "samples":
            new = change_samples(path, change)
        elif file == "session":
            new = change_session(decode.load(path), change, not raw)
        else:
            continue
        with open(path, "wb") as out:
            out.write(new)
    with open(os.path.join(folder, "symbols"), "wb") as out:
        out.write(symbols_of(folder, change))
    return folder
