"""Names that mean harm, and traces that have one in every field that holds text: rewritten from docs/FORMAT.md, checksums mended."""
import os
import re
import struct
import unicodedata

import records
from records import decode

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
    "MODE": (12, len, 0), "IMPORT": (13, lambda data: 8, 3), "NEVER": (14, len, 0), "LATE": (15, lambda data: 0, None),
}


def documented():
    """What docs/FORMAT.md says: {name of a record: number}, fields of char[], kinds of samples with their texts."""
    with open(FORMAT, encoding="utf-8") as file:
        page = file.read()
    log = page[page.index("### Records"):page.index("## Nodes")]
    return ({m[1]: int(m[0]) for m in re.findall(r"^\| (\d+) ([A-Z]+) \|", log, re.M)},
            set(re.findall(r"^\| \d+ \| char\[\d+\] \| (\w+) \|", page, re.M)),
            {int(m[0]): m[1] for m in re.findall(r"^\| (\d) ([a-z ]+) \|[^|]*\| [KBN] ", page, re.M)})


def change_info(data, change, log_at):
    kinds = {number: (word, before, count) for word, (number, before, count) in RECORDS.items()}
    info = records.Info(data, log_at)
    info.records.append([RECORDS["LATE"][0], 0, b"PYTORCH_ALLOC_CONF=max_split_size_mb:21\0", None])  # no trace here has one
    for record in info.records:
        word, before, count = kinds[record[0]]
        kept = record[2][:before(record[2])]
        texts = decode.strings(record[2][len(kept):])[:count] if count != 0 else []
        record[2:] = kept + b"".join(change(word, t.encode(errors="surrogateescape")) + b"\0" for t in texts), None
    return info.pack()


def change_blocks(path, change):
    head, blocks = records.read_blocks(decode.load(path), path)
    for block in blocks:
        if block.type == decode.BLOCK_INFO:
            plain = block.columns[0]
            block.columns = [change_info(plain, change, struct.unpack_from("<I", plain, 12)[0])]
            block.count = len(block.columns[0])
    return head + b"".join(block.pack() for block in blocks)


def change_item(item, change):
    """An item of samples with other texts."""
    if item[0] != decode.SUBJECT:
        return item
    field = decode.SUBJECTS[item[1]][0] + " text%d"
    return item[:5] + [change(field % i, text)[-MOST_SAMPLE:] if text else text for i, text in enumerate(item[5:], 1)]


def change_samples(path, change):
    """Each stream becomes one block."""
    data = decode.load(path)
    return data[:decode.SAMPLES_HEAD.size] + b"".join(
        records.samples_block(first, last, records.pack_items(change_item(item, change) for item in items))
        for first, last, items in records.sample_streams(data))


# ---- symbols -------------------------------------------------------------------------------------------------------


def symbols_of(folder, change):
    """A file of symbols for every address that the stacks of a trace have, of changed names."""
    strings, addresses_of = [], {}

    def string(text):
        strings.append(text.decode(errors="ignore").replace("\0", "").encode())  # what is no UTF-8 is refused
        return len(strings)

    session = decode.SESSION.read(decode.load(os.path.join(folder, "session")))
    for file in sorted(os.listdir(folder)):
        if not re.fullmatch(r"\d+-\d+\.(info|trace)", file):
            continue
        process = decode.Process(session, folder, file.rsplit(".", 1)[0])
        for _, node in process.nodes():
            for start, end, bias, _, _, build_id, path in process.modules:
                if start <= node.pc < end and not node.pc >> 63:
                    addresses_of.setdefault((path, build_id), set()).add(node.pc - bias - (0 if node.flags & 1 else 1))
    modules = [len(addresses_of)]
    for (path, build_id), addresses in sorted(addresses_of.items()):
        modules += [string(path.encode(errors="surrogateescape")), bytes.fromhex(build_id), len(addresses)]
        last = 0
        for address in sorted(addresses):
            modules += [address - last, 1]
            modules += [string(change("function", b"work()")), string(change("file", b"/src/work.cc")), string(change("language", b"c++")), 7 << 1]
            last = address
    return records.pack_symbols([len(strings), *strings, *modules])


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
