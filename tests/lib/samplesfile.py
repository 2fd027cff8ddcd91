"""Writes DIR/samples as docs/FORMAT.md says, without any of memtrace's code and without compression (raw zstd blocks).

    file = SamplesFile(start_ns)
    file.time(start_ns)
    file.add(("machine",), total=24 << 30, free=...)               in bytes, counts, nanoseconds
    file.add(("process", 4711, boot_start, 1, "python", "/"), rss=...)
    file.flush(); file.write(path)
"""
import os
import struct

import records
from records import decode, varint, zigzag

KINDS = {word: (kind, {name: (i, unit if unit != 1000 else 1000) for i, (name, unit) in enumerate(fields)})
         for kind, (word, fields) in decode.SUBJECTS.items()}


def raw_frame(data, first):
    """Blocks of a zstd frame with a window of 128 KiB that goes on."""
    return (struct.pack("<IBB", 0xFD2FB528, 0, 7 << 3) if first else b"") + records.zstd_blocks(data, 100000, False)


class SamplesFile:
    def __init__(self, parts=120):
        self.data = bytearray(records.samples_head())
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
        plain = bytes(self.plain)
        self.data += records.samples_block(self.first, self.told, plain, self.part, raw_frame(plain, self.part == 0))
        self.part += 1
        self.plain, self.first = bytearray(), None
        if self.part == self.parts:
            self.begin()

    def write(self, folder):
        self.flush()
        with open(os.path.join(folder, "samples"), "wb") as out:
            out.write(self.data)
