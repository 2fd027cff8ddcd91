"""Writes DIR/samples as docs/FORMAT.md says, without any of memtrace's code and without compression (raw zstd blocks).

    file = SamplesFile(start_ns)
    file.time(start_ns)
    file.add(("machine",), total=24 << 30, free=...)               in bytes, counts, nanoseconds
    file.add(("process", 4711, boot_start, 1, "python", "/"), rss=...)
    file.flush(); file.write(path)
"""
import os
import struct
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts"))
import decode

KINDS = {word: (kind, {name: (i, unit if unit != 1000 else 1000) for i, (name, unit) in enumerate(fields)})
         for kind, (word, fields) in decode.SUBJECTS.items()}


def varint(value):
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def zigzag(value):
    return (value << 1) if value >= 0 else (-value << 1) - 1


def raw_frame(data, first):
    """Blocks of a zstd frame with a window of 128 KiB that goes on."""
    out = struct.pack("<IBB", 0xFD2FB528, 0, 7 << 3) if first else b""
    for i in range(0, len(data), 100000):
        piece = data[i:i + 100000]
        out += struct.pack("<I", len(piece) << 3)[:3] + piece
    return out


class SamplesFile:
    def __init__(self, parts=120):
        self.data = bytearray(struct.pack("<8sIIQQ", b"MTSAMP1\n", 1, 32, 0, 0))
        self.parts, self.now = parts, None
        self.begin()

    def begin(self):
        self.part, self.subjects, self.values, self.told = 0, {}, {}, None
        self.plain, self.first = bytearray(), None

    def time(self, mono_ns):
        self.now = mono_ns

    def number(self, subject):
        if subject not in self.subjects:
            word, *rest = subject
            texts = [r for r in rest if isinstance(r, str)]
            keys = [r for r in rest if not isinstance(r, str)]
            out = varint(1) + varint(KINDS[word][0])
            for key in (keys + [0, 0, 0])[:3]:
                out += varint(key)
            for text in (texts + ["", ""])[:2]:
                out += varint(len(text.encode())) + text.encode()
            self.plain += out
            self.subjects[subject] = len(self.subjects)
            self.values[subject] = {}
        return self.subjects[subject]

    def clock(self):
        if self.told is None:
            self.told = self.now
        if self.now // 1000 > self.told // 1000:
            step = (self.now - self.told) // 1000
            self.plain += varint(2) + varint(step)
            self.told += step * 1000
        if self.first is None:
            self.first = self.told

    def add(self, subject, **fields):
        number = self.number(subject)
        self.clock()
        table, last = KINDS[subject[0]][1], self.values[subject]
        row = sorted((table[name][0], value // table[name][1]) for name, value in fields.items())
        self.plain += varint(3) + varint(number) + varint(sum(1 << i for i, _ in row))
        for i, value in row:
            self.plain += varint(zigzag(value - last.get(i, 0)))
            last[i] = value

    def gone(self, subject):
        number = self.number(subject)
        self.clock()
        self.plain += varint(4) + varint(number)

    def flush(self):
        if not self.plain:
            return
        stored = raw_frame(bytes(self.plain), self.part == 0)
        head = [0x4253544D, 0, len(stored), len(self.plain), self.first, self.told, self.part, 0]
        head[1] = zlib.crc32(struct.pack("<IIIIQQII", *head) + stored)
        self.data += struct.pack("<IIIIQQII", *head) + stored
        self.part += 1
        self.plain, self.first = bytearray(), None
        if self.part == self.parts:
            self.begin()

    def write(self, folder):
        self.flush()
        with open(os.path.join(folder, "samples"), "wb") as out:
            out.write(self.data)
