#!/usr/bin/env python3
"""A second reader of memtrace's format, version 1, written from docs/FORMAT.md alone: prints what `memtrace dump` prints.

usage: decode.py DIR

It exists so that the format's document is known to be complete, and so that a trace can be read without any of our
programs: Python 3.8's standard library and libzstd.so.1 are all it needs. It keeps everything in memory.
"""
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
    "Q unrecorded")
INFO = Layout(
    "8s magic, I version, I bytes, I pid, I image, I parent_pid, I parent_image, I origin, I clock, Q start_ticks, "
    "Q start_mono_ns, Q start_real_ns, Q boot_start, Q pid_ns, Q fork_ticks, I fork_exact, I node_base, I stacks, I depth, "
    "Q sample_bytes, I exit_kind, i exit_code, Q end_ticks, Q pair_ticks, Q pair_mono_ns, Q log_bytes, I node_end, I chunks, "
    "I rings, I threads, Q lost_events, Q truncated_stacks, Q unwritten_bytes, Q faults, I off, I seccomp")
RECORD = Layout("H type, H reserved, I bytes, Q ticks")
NODE = Layout("Q pc, I parent, I flags")
CHUNK = Layout("I magic, I ring, Q seq, I used, I thread, 40s reserved")
EVENT = Layout("Q ticks, Q addr, Q packed, I node, I node2")
EXT_MAP = Layout("Q old, Q offset, I prot_flags, I kind_ext, I file, I reserved")
TRACE = Layout("8s magic, I version, I bytes, I pid, I image, Q reserved")
BLOCK = Layout(
    "I magic, I type, I crc, I covers, Q payload_bytes, Q count, Q first_ticks, Q last_ticks, I shift, I columns")
COVER = Layout("I ring, I thread, Q start, Q end")

INFO_STATES, INFO_LOG = 4096, 0x20000
CHUNK_BYTES, CHUNK_SLOTS = 262144, 8190
CHUNK_MAGIC, BLOCK_MAGIC = 0x4B43544D, 0x4B42544D
CHUNK_FREE, CHUNK_FILLING, CHUNK_FULL = range(3)
BLOCK_EVENTS, BLOCK_NODES, BLOCK_INFO, BLOCK_END = range(1, 5)
NONE, ALLOC, FREE, FAIL, UNDO, MAP, UNMAP, EXT, THREAD, LOST = range(10)

# ---- compression ------------------------------------------------------------------------------------------------


def load_zstd():
    lib = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
    lib.ZSTD_decompress.restype = ctypes.c_size_t
    lib.ZSTD_decompress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    lib.ZSTD_isError.argtypes = [ctypes.c_size_t]
    return lib


ZSTD = load_zstd()


def decompress(data, size):
    """Exactly `size` bytes, or None."""
    out = ctypes.create_string_buffer(size or 1)
    got = ZSTD.ZSTD_decompress(out, size, data, len(data))
    return None if ZSTD.ZSTD_isError(got) or got != size else out.raw[:size]


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
