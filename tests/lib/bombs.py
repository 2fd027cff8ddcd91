"""Files that mean harm: small ones that stand for gigabytes, walks without an end, names of pipes."""
import lzma
import os
import platform
import struct
import zlib

from records import decode, trace_block, varint

MACHINE = {"x86_64": 62, "aarch64": 183}.get(platform.machine(), 62)
CODE, CODE_END = 0x1000, 0x100000  # addresses of a module's code
PROGBITS, SYMTAB, STRTAB, NOTE, NOBITS = 1, 2, 3, 7, 8
COMPRESSED = 0x800

# ---- streams of one byte ----------------------------------------------------------------------------------------

MIB = 1 << 20


def deflated(mib, head=b"", byte=0):
    """`head` and so many MiB of one byte as a zlib stream, a thousandth of that; made without having it all in memory."""
    pack = zlib.compressobj(9, zlib.DEFLATED, -15)
    first = pack.compress(head) + pack.flush(zlib.Z_FULL_FLUSH)
    chunk = pack.compress(bytes([byte]) * MIB) + pack.flush(zlib.Z_FULL_FLUSH)
    n, a, b = mib * MIB, zlib.adler32(head) & 0xFFFF, zlib.adler32(head) >> 16
    b, a = (b + n * a + byte * n * (n + 1) // 2) % 65521, (a + n * byte) % 65521
    return b"\x78\xda" + first + chunk * mib + pack.flush() + struct.pack(">I", b << 16 | a)


def chdr(mib, head=b"", byte=0):
    """A section's contents, compressed (SHF_COMPRESSED)."""
    return struct.pack("<IIQQ", 1, 0, len(head) + mib * MIB, 1) + deflated(mib, head, byte)


def xz_zeros(mib):
    """An .xz file of one block a MiB."""
    one = lzma.compress(bytes(MIB), check=lzma.CHECK_NONE)
    index_bytes = (struct.unpack_from("<I", one, len(one) - 8)[0] + 1) * 4
    block = one[12:len(one) - 12 - index_bytes]
    record = one[len(one) - 12 - index_bytes:][2:]  # of the index: unpadded size, size
    def skip(data):
        return next(i for i, byte in enumerate(data) if byte < 128) + 1
    record = record[:skip(record) + skip(record[skip(record):])]
    index = b"\0" + varint(mib) + record * mib
    index += bytes(-len(index) % 4)
    index += struct.pack("<I", zlib.crc32(index))
    footer = struct.pack("<I", len(index) // 4 - 1) + one[6:8]
    return one[:12] + block * mib + index + struct.pack("<I", zlib.crc32(footer)) + footer + b"YZ"


def zstd(*parts):
    """A zstd frame of (bytes,) as they are and (byte, count) repeated."""
    blocks, size = [], 0
    for part in parts:
        data, count = part if len(part) == 2 else (part[0], None)
        total = len(data) if count is None else count
        for at in range(0, total, 1 << 17):
            n = min(1 << 17, total - at)
            blocks.append((n << 3 | (0 if count is None else 2), data[at:at + n] if count is None else data))
        size += total
    body = b"".join(struct.pack("<I", head | (i == len(blocks) - 1))[:3] + data for i, (head, data) in enumerate(blocks))
    return b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", size) + body, size


# ---- modules ----------------------------------------------------------------------------------------------------


def module(build_id, *sections, symbol=b"named"):
    """An ELF file whose only function, if it is to have symbols, is all of its code. Sections are (name, contents[, flags])."""
    note = struct.pack("<III", 4, len(build_id), 3) + b"GNU\0" + build_id
    strings = b"\0" + symbol + b"\0"
    symbols = bytes(24) + struct.pack("<IBBHQQ", 1, 0x12, 0, 1, CODE, CODE_END - CODE)
    table = [(b".text", NOBITS, 6, b"", CODE), (b".note.gnu.build-id", NOTE, 2, note, 0)]
    table += [(b".symtab", SYMTAB, 0, symbols, 0), (b".strtab", STRTAB, 0, strings, 0)] if symbol else []
    table += [(s[0], PROGBITS, s[2] if len(s) > 2 else 0, s[1], 0) for s in sections]
    names = b"\0" + b"".join(t[0] + b"\0" for t in table) + b".shstrtab\0"
    table.append((b".shstrtab", STRTAB, 0, names, 0))
    data, headers, note_at = bytearray(64 + 2 * 56), bytes(64), 0
    for name, kind, flags, contents, address in table:
        data += bytes(-len(data) % 8)
        note_at = len(data) if kind == NOTE else note_at
        headers += struct.pack("<IIQQQQIIQQ", names.index(b"\0" + name + b"\0") + 1, kind, flags, address, len(data),
                               CODE_END - CODE if kind == NOBITS else len(contents), 4 if kind == SYMTAB else 0, 1 if kind == SYMTAB else 0, 4 if kind == NOTE else 8,
                               24 if kind == SYMTAB else 0)
        data += contents
    data += bytes(-len(data) % 8)
    data[:64] = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, MACHINE, 1, CODE, 64, len(data), 0, 64, 56, 2, 64,
                                                         len(table) + 1, len(table))
    data[64:120] = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 0x400, CODE_END, 0x1000)
    data[120:176] = struct.pack("<IIQQQQQQ", 4, 4, note_at, note_at, note_at, len(note), len(note), 4)
    return bytes(data) + headers


def abbreviation(code, tag, children, *attributes):
    return varint(code) + varint(tag) + bytes([children]) + b"".join(varint(a) + varint(f) for a, f in attributes) + b"\0\0"


ADDR, REF4, DATA8, STRING, FLAG_PRESENT = 0x01, 0x13, 0x07, 0x08, 0x19
LOW_PC, HIGH_PC, SIBLING, NAME, COMP_DIR, DWO_NAME = 0x11, 0x12, 0x01, 0x03, 0x1B, 0x76
COVERS_ALL = struct.pack("<QQ", CODE, CODE_END - CODE)
UNIT = abbreviation(1, 0x11, 1, (LOW_PC, ADDR), (HIGH_PC, DATA8))


def unit(dies, more=0):
    """A compilation unit, version 4, whose first entry covers all code; `more` bytes follow."""
    body = struct.pack("<HIB", 4, 0, 8) + b"\1" + COVERS_ALL + dies
    return struct.pack("<I", len(body) + more) + body


def inflating(mib):
    """Debug information that is zeros."""
    return ((b".debug_info", chdr(mib, unit(b"")), COMPRESSED), (b".debug_abbrev", UNIT + b"\0"))


def sibling_loop(entries):
    """Each entry's child is its sibling, too."""
    at, dies = 4 + 7 + 1 + 16, b""
    for _ in range(entries):
        at += 5
        dies += b"\2" + struct.pack("<I", at)
    return ((b".debug_info", unit(dies + bytes(entries + 1))),
            (b".debug_abbrev", UNIT + abbreviation(2, 0x39, 1, (SIBLING, REF4)) + b"\0"))


def long_walk(mib):
    """A unit of so many million entries of a byte each, all of them with many attributes."""
    flags = tuple((0x3F, FLAG_PRESENT) for _ in range(40))
    return ((b".debug_info", chdr(mib, unit(b"", mib * MIB), 2), COMPRESSED),
            (b".debug_abbrev", UNIT + abbreviation(2, 0x34, 0, *flags) + b"\0"))


def skeleton(dwo):
    """A unit whose rest is in the file `dwo`."""
    body = struct.pack("<HBBIQ", 5, 4, 8, 0, 1) + b"\1" + COVERS_ALL + dwo.encode() + b"\0/\0"
    return ((b".debug_info", struct.pack("<I", len(body)) + body),
            (b".debug_abbrev", abbreviation(1, 0x4A, 0, (LOW_PC, ADDR), (HIGH_PC, DATA8), (DWO_NAME, STRING), (COMP_DIR, STRING)) + b"\0"))


def alternative(name):
    """DWARF that shares a file of that name with others (dwz)."""
    return ((b".debug_info", unit(b"\0")), (b".debug_abbrev", UNIT + b"\0"), (b".gnu_debugaltlink", name.encode() + b"\0" + b"\5" * 20))


def debug_link(name):
    text = name.encode() + b"\0"
    return ((b".gnu_debuglink", text + bytes(-len(text) % 4) + bytes(4)),)


# ---- traces -----------------------------------------------------------------------------------------------------


def info_block(info, log=b"", zeros=0):
    parts = [(bytes(info) + log,)] + ([(b"\0", zeros)] if zeros else [])
    frame, size = zstd(*parts)
    return trace_block(decode.BLOCK_INFO, [(frame, size)], size)


def nodes_block(count, base):
    """A call tree that is one path."""
    ones = (zstd((b"\0",), (b"\1", count - 1)), zstd((b"\0", count)), zstd((b"\0",)), zstd((b"\0",)))
    return trace_block(decode.BLOCK_NODES, list(ones), count, base)


def allocations_block(count, ticks, number):
    """Allocations of 1 KiB that are never freed, one behind the other, from the `number`th GiB (from 1) on."""
    kind = varint(decode.ALLOC | 1 << 16)
    first = zstd((varint(1 << 10),), (b"\0", count - 1))  # a size, then as predicted
    address = varint(number << 30 >> 4 << 2)
    columns = [zstd((kind,)), zstd((b"\0", count)), zstd((varint(0) + varint(count - 1),)), zstd((b"\0", count)), first, (b"", 0), (b"", 0),
               zstd((b"\x09", count)), zstd((address,), (b"\0", count - 1)), (b"", 0), (b"", 0), (b"", 0), (b"", 0)]
    position = number - 1
    return trace_block(decode.BLOCK_EVENTS, columns, count, ticks, ticks, [(0, 0, position * count, (position + 1) * count)])


END = trace_block(decode.BLOCK_END, [], 0)


class Trace:
    """The session of a settled trace with processes made up: each is the one that was recorded, under another pid and with blocks of its own."""

    def __init__(self, recorded, folder):
        self.folder = folder
        os.makedirs(folder)
        with open(os.path.join(recorded, "session"), "rb") as file:
            session = file.read()
        with open(os.path.join(folder, "session"), "wb") as file:
            file.write(session)
        name = next(f for f in sorted(os.listdir(recorded)) if f.endswith(".trace"))
        path = os.path.join(recorded, name)
        found = {b.type: b for b in decode.trace_blocks(path)}
        plain = decode.decode_info(found[decode.BLOCK_INFO])
        size = struct.unpack_from("<I", plain, 12)[0]
        self.info, self.log = bytearray(plain[:size]), plain[size:]
        self.ticks = struct.unpack_from("<Q", self.info, 40)[0]
        self.head = decode.load(path)[:32]

    def add(self, pid, *blocks, zeros=0):
        """`zeros` more bytes of log."""
        info = bytearray(self.info)
        struct.pack_into("<I", info, 16, pid)
        struct.pack_into("<I", info, 92, 0)  # node_base
        struct.pack_into("<I", info, 152, 0)  # node_end
        struct.pack_into("<I", info, 112, 1)  # exit
        with open(os.path.join(self.folder, "%d-0.trace" % pid), "wb") as file:
            file.write(self.head[:16] + struct.pack("<II", pid, 0) + self.head[24:])
            file.write(b"".join(blocks) + info_block(info, self.log, zeros) + END)
