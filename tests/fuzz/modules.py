"""Modules (ELF files with DWARF) that are damaged, and a trace that names one."""
import os
import struct
import sys

import bombs
from records import varint

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../battery"))
import trace as battery

ID = bytes(range(1, 21))
TEXT_SITES = 24  # addresses that a trace has of it
EHDR = (("e_type", 16, "<H"), ("e_machine", 18, "<H"), ("e_version", 20, "<I"), ("e_entry", 24, "<Q"), ("e_phoff", 32, "<Q"), ("e_shoff", 40, "<Q"),
        ("e_flags", 48, "<I"), ("e_ehsize", 52, "<H"), ("e_phentsize", 54, "<H"), ("e_phnum", 56, "<H"), ("e_shentsize", 58, "<H"),
        ("e_shnum", 60, "<H"), ("e_shstrndx", 62, "<H"), ("class", 4, "<B"), ("data", 5, "<B"))
PHDR = (("p_type", 0, "<I"), ("p_flags", 4, "<I"), ("p_offset", 8, "<Q"), ("p_vaddr", 16, "<Q"), ("p_filesz", 32, "<Q"), ("p_memsz", 40, "<Q"), ("p_align", 48, "<Q"))
SHDR = (("sh_name", 0, "<I"), ("sh_type", 4, "<I"), ("sh_flags", 8, "<Q"), ("sh_addr", 16, "<Q"), ("sh_offset", 24, "<Q"), ("sh_size", 32, "<Q"),
        ("sh_link", 40, "<I"), ("sh_info", 44, "<I"), ("sh_addralign", 48, "<Q"), ("sh_entsize", 56, "<Q"))
NUMBERS = (0, 1, 2, 3, 4, 8, 16, 255, 0x7F, 0x80, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFF0, 0xFFFFFFFF, 1 << 32, 1 << 40, 1 << 62, (1 << 63) - 1,
           1 << 63, (1 << 64) - 8, (1 << 64) - 1)
INSIDE = (b".eh_frame_hdr", b".debug_line", b".debug_info", b".debug_abbrev", b".debug_str", b".debug_ranges", b".debug_aranges", b".symtab",
          b".strtab", b".shstrtab", b".note.gnu.build-id", b".gnu_debuglink", b".gnu_debugaltlink")


# ---- one that is whole ----------------------------------------------------------------------------------------------


def sleb(value):
    out = bytearray()
    while True:
        byte, value = value & 127, value >> 7
        if value == (-1 if byte & 64 else 0):
            return bytes(out) + bytes([byte])
        out.append(byte | 128)


def line_program():
    """Version 4: two files in two directories, a row for every 0x100 bytes of code."""
    header = struct.pack("<BBBbBB", 1, 1, 1, -5, 14, 13) + bytes((0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1))
    header += b"/src\0/usr/include\0\0" + b"work.c\0\1\0\0" + b"part.h\0\2\0\0" + b"\0"
    rows = b"\0\x09\2" + struct.pack("<Q", bombs.CODE)
    for i in range(64):
        rows += b"\4" + varint(1 + i % 2) + b"\3" + sleb(7 if i % 3 else -5) + b"\1" + b"\2" + varint(0x100)
    rows += b"\0\1\1"
    body = struct.pack("<HI", 4, len(header)) + header + rows
    return struct.pack("<I", len(body)) + body


def debug_info():
    """A unit with functions, of which each has another inlined; with calls' places, specifications and ranges."""
    abbreviations = (
        bombs.abbreviation(1, 0x11, 1, (0x03, 0x0E), (0x13, 0x05), (0x11, 1), (0x12, 7), (0x10, 0x17), (0x1B, 8))  # compile_unit
        + bombs.abbreviation(2, 0x2E, 1, (0x03, 8), (0x11, 1), (0x12, 7), (0x3A, 0x0B), (0x3B, 0x0F), (0x47, 0x13))  # subprogram
        + bombs.abbreviation(3, 0x1D, 0, (0x31, 0x13), (0x11, 1), (0x12, 7), (0x58, 0x0B), (0x59, 0x0F), (0x57, 0x0B))  # inlined
        + bombs.abbreviation(4, 0x2E, 0, (0x03, 8), (0x6E, 0x0E), (0x20, 0x0B))  # abstract
        + bombs.abbreviation(5, 0x1D, 0, (0x31, 0x13), (0x55, 0x17), (0x58, 0x0B), (0x59, 0x0F))  # inlined, in ranges
        + b"\0")
    at = 11
    dies = b"\1" + struct.pack("<I", 1) + struct.pack("<HQQI", 12, bombs.CODE, bombs.CODE_END - bombs.CODE, 0) + b"/src\0"
    abstract = at + len(dies)
    dies += b"\4inline_one\0" + struct.pack("<I", 1) + b"\1"
    for i in range(16):
        low = bombs.CODE + i * 0x400
        dies += b"\2fun%d\0" % i + struct.pack("<QQ", low, 0x400) + b"\1" + varint(100 + i) + struct.pack("<I", abstract)
        dies += b"\3" + struct.pack("<I", abstract) + struct.pack("<QQ", low + 0x80, 0x100) + b"\1" + varint(9) + b"\2"
        dies += b"\5" + struct.pack("<I", abstract) + struct.pack("<I", 0) + b"\1" + varint(11)
        dies += b"\0"
    dies += b"\0"
    body = struct.pack("<HIB", 4, 0, 8) + dies
    return struct.pack("<I", len(body)) + body, abbreviations


def frame_header():
    table = b"".join(struct.pack("<ii", 0x100 * i, 0x40 * i) for i in range(8))
    return b"\1\x1b\3\x3b" + struct.pack("<iI", 16, 8) + table


def whole(*more):
    info, abbreviations = debug_info()
    ranges = b"".join(struct.pack("<QQ", 0x200 * i, 0x200 * i + 0x40) for i in range(8)) + bytes(16)
    arange = struct.pack("<HIBB", 2, 0, 8, 0) + bytes(4) + struct.pack("<QQ", bombs.CODE, bombs.CODE_END - bombs.CODE) + bytes(16)
    return bombs.module(ID, (b".debug_info", info), (b".debug_abbrev", abbreviations), (b".debug_line", line_program()),
                        (b".debug_str", b"\0_ZN4work3runILi3EEEvT_\0"), (b".debug_ranges", ranges),
                        (b".debug_aranges", struct.pack("<I", len(arange)) + arange), (b".eh_frame_hdr", frame_header()), *more)


# ---- damage ---------------------------------------------------------------------------------------------------------


def number(chance, near, bits):
    value = chance.choice((near - 1, near + 1, near * 2, near // 2)) if chance.random() < 0.3 else chance.choice(NUMBERS)
    return value & (1 << bits) - 1


def put(chance, data, base, fields, what):
    word, at, code = chance.choice(fields)
    if base + at + struct.calcsize(code) > len(data):
        return "%s lies outside" % what
    old, = struct.unpack_from(code, data, base + at)
    value = number(chance, old, 8 * struct.calcsize(code))
    struct.pack_into(code, data, base + at, value)
    return "%s.%s %d to %d" % (what, word, old, value)


def sections(data):
    """{name: (offset of the header, offset, size)} of a file that is whole."""
    shoff, = struct.unpack_from("<Q", data, 40)
    count, strings = struct.unpack_from("<HH", data, 60)
    heads = [struct.unpack_from("<IIQQQQIIQQ", data, shoff + 64 * i) for i in range(count)]
    names = heads[strings][4]
    found = {}
    for i, h in enumerate(heads):
        found[bytes(data[names + h[0]:data.index(0, names + h[0])])] = (shoff + 64 * i, h[4], h[5])
    return found


def damage_contents(chance, data, places):
    """Bytes and words of a section, one that is read mostly."""
    named = [n for n in INSIDE if n in places and places[n][2]]
    name = chance.choice(named)
    _, at, size = places[name]
    what = []
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        where = chance.randrange(size)
        if chance.random() < 0.5:
            data[at + where] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, data[at + where] ^ 1 << chance.randrange(8)))
            what.append("byte %d" % where)
        else:
            bytes_ = chance.choice((2, 4, 8))
            value = number(chance, int.from_bytes(data[at + where:at + where + bytes_], "little"), 8 * bytes_)
            n = min(bytes_, size - where)
            data[at + where:at + where + n] = value.to_bytes(bytes_, "little")[:n]
            what.append("%d bytes at %d" % (n, where))
    return "%s: %s" % (name.decode(), ", ".join(what))


def damage(chance, data, places):
    way = chance.choice(("header", "program", "section", "section", "section", "contents", "contents", "contents", "contents", "swap", "cut", "compressed"))
    if way == "header":
        return put(chance, data, 0, EHDR, "header")
    if way == "program":
        return put(chance, data, 64 + 56 * chance.randrange(2), PHDR, "program header")
    if way == "contents":
        return damage_contents(chance, data, places)
    name = chance.choice(sorted(places))
    head, at, size = places[name]
    if way == "section":
        return put(chance, data, head, SHDR, name.decode() or "section 0")
    if way == "cut":
        end = chance.choice((chance.randrange(len(data)), head, at, at + size // 2))
        del data[end:]
        return "cut off at %d" % end
    other = chance.choice(sorted(places))
    if len(data) < max(head, places[other][0]) + 64:
        return "the headers are cut off"
    if way == "swap":
        a, b = bytes(data[head + 24:head + 40]), bytes(data[places[other][0] + 24:places[other][0] + 40])
        data[head + 24:head + 40], data[places[other][0] + 24:places[other][0] + 40] = b, a
        return "%s and %s lie in each other's place" % (name.decode(), other.decode())
    flags, = struct.unpack_from("<Q", data, head + 8)
    struct.pack_into("<Q", data, head + 8, flags ^ bombs.COMPRESSED)
    if size >= 24 and at + size <= len(data):
        struct.pack_into("<IIQQ", data, at, chance.choice((0, 1, 2, 3, 0xFFFFFFFF)), 0, number(chance, size, 64), chance.choice((0, 1, 8, 3, 1 << 63)))
    return "%s says that it is compressed" % name.decode()


BASES = {
    "whole": lambda chance: whole(),
    "with a debug link": lambda chance: whole(*bombs.debug_link(chance.choice(("libown.so", "other.debug", "/dev/zero", "..", "")))),
    "with a dwz link": lambda chance: whole((b".gnu_debugaltlink", chance.choice((b"libown.so", b"other.debug", b"", b"/dev/zero")) + b"\0" + b"\5" * 20)),
    "with compressed DWARF": lambda chance: bombs.module(ID, *bombs.inflating(chance.choice((1, 5)))),
    "a skeleton": lambda chance: bombs.module(ID, *bombs.skeleton(chance.choice(("libown.so", "other.debug", "/dev/zero", "", "x" * 5000)))),
    "with .gnu_debugdata": lambda chance: bombs.module(ID, (b".gnu_debugdata", bombs.xz_zeros(1)), symbol=b""),
    "without names": lambda chance: bombs.module(ID, symbol=b""),
    "a long name": lambda chance: bombs.module(ID, symbol=b"_Z" + chance.choice((b"N1a", b"1fIXadL_Z", b"S_", b"St", b"3foo")) * chance.choice((1, 50, 800))),
}


def mutant(chance):
    base = chance.choice(["whole"] * 8 + sorted(BASES))
    data = bytearray(BASES[base](chance))
    places, what = sections(data), ["module " + base]
    for _ in range(chance.choice((1, 1, 2, 3, 6))):
        try:
            what.append(damage(chance, data, places))
        except (struct.error, IndexError, ValueError) as error:
            what.append("no change: it is cut off (%s)" % type(error).__name__)
    return bytes(data), what


def write(data, folder, trace):
    """libown.so, a whole file of debug information beside it, and a trace with stacks in it."""
    b, path = battery, os.path.join(folder, "libown.so")
    for name, contents in ((path, data), (os.path.join(folder, "other.debug"), whole())):
        with open(name, "wb") as file:
            file.write(contents)
    t = b.Trace(trace)
    p = t.process(900, ["own"])
    base = 0x7E0000000000
    record = struct.pack("<QQQII", base, base, base + 0x200000, 0, len(ID)) + ID + path.encode() + b"\0"
    p.record(b.REC_MODULE, record)
    caller = p.node(0, base + bombs.CODE + 0x3F00)
    for i in range(TEXT_SITES):
        p.malloc(1 << 20, (p.node(caller, base + bombs.CODE + 0x91 + 0x155 * i), 0))
    t.save()
