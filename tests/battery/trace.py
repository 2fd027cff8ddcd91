"""Writes traces as the shim would, from calls that say what happened: raw chunks, call tree, log, and the recorder's samples.

    t = Trace("/tmp/x")
    p = t.process(4711, ["python", "train.py"])
    gpu = p.device(0, "GPU-1", 24 << 30)
    step = p.stack(("train.py", "<module>", 30), ("model.py", "Block.forward", 57))
    p.at(1.5)
    a = p.alloc(gpu, POOL, 1 << 20, step)
    p.free(gpu, POOL, a)
    t.save()

Times are seconds since the start; the clock is CLOCK_MONOTONIC's kind: a tick is a nanosecond. The names and values are those of
format/format.h and format/samples.h.
"""
import os
import re
import struct
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests/lib"))
import records
from records import varint, zigzag

START = 10 ** 12
REAL = 1_700_000_000 * 10 ** 9
SLOTS = 8190
(ALLOC, FREE, FAIL, UNDO, MAP, UNMAP, EXT, THREAD, LOST, DEVICE_ALLOC, DEVICE_FREE, DEVICE_FAIL, DEVICE_UNDO, DEVICE_MAP,
 DEVICE_UNMAP, DEVICE_RESET, DEVICE_INFO, MARK) = range(1, 19)
DEVICE, MANAGED, ASYNC, ARRAY, PHYSICAL, RESERVED, ALIAS, PINNED, REGISTERED, POOL, WORKSPACE = range(1, 12)
POINT, STEP, BEGIN, END, LABEL = range(1, 6)
REC_PROGRAM, REC_ENV, REC_HOOK, REC_MODULE, REC_UNMODULE, REC_THREAD, REC_FILE, REC_CHILD, REC_CODE, REC_DEVICE, REC_NAME = range(1, 12)
EXIT_NONE, EXIT_CODE, EXIT_SIGNAL = 0, 1, 2
HOOKS = ["malloc", "free", "mmap", "cudaMalloc", "cudaFree", "c10::cuda", "ncclCommInitRank"]
LINES = 1200  # of every Python function's line table


pace = 1  # a second of the program takes so many


def ticks(seconds):
    return START + int(seconds * pace * 1e9)


class Process:
    def __init__(self, trace, pid, command, start=0.0, parent=None):
        self.trace, self.pid, self.command, self.start = trace, pid, command, start
        self.slots, self.nodes, self.node_ids = [], [(0, 0, 0)], {}
        self.log, self.codes, self.names, self.modules = bytearray(), {}, {}, {}
        self.devices, self.now, self.next_address = 0, start, 0x7F0000000000
        self.exit, self.end, self.sizes = (EXIT_CODE, 0), None, {}
        self.stacks = {}
        text = "\0".join(["/usr/bin/python3", *command]) + "\0"
        self.record(REC_PROGRAM, text.encode())
        for i, name in enumerate(HOOKS, 1):
            self.record(REC_HOOK, struct.pack("<II", i, 0) + name.encode() + b"\0")
        self.record(REC_THREAD, struct.pack("<II", 0, pid) + b"python\0")

    def record(self, kind, payload):
        size = (16 + len(payload) + 7) & ~7
        self.log += struct.pack("<HHIQ", kind, 0, size, ticks(self.now if hasattr(self, "now") else self.start)) + payload
        self.log += bytes(size - 16 - len(payload))

    # ---- stacks

    def node(self, parent, pc, flags=0):
        key = (parent, pc, flags)
        if key not in self.node_ids:
            self.node_ids[key] = len(self.nodes)
            self.nodes.append((pc, parent, flags))
        return self.node_ids[key]

    def code(self, file, function):
        key = (file, function)
        if key not in self.codes:
            self.codes[key] = len(self.codes) + 1
            head = struct.pack("<IIII", self.codes[key], 0x0308, 1, 2 * LINES)
            self.record(REC_CODE, head + bytes([1, 1]) * LINES + file.encode() + b"\0" + function.encode() + b"\0")
        return self.codes[key]

    def stack(self, *frames, library=None):
        """(native node, Python node) of frames (file, function, line), outermost first, with a native frame in `library` inside."""
        key = (frames, library)
        if key in self.stacks:
            return self.stacks[key]
        python = 0
        for file, function, line in frames:
            python = self.node(python, 1 << 63 | self.code(file, function) << 32 | (line - 1), 2)
        native = 0
        if library:
            if library not in self.modules:
                base = 0x7E0000000000 + len(self.modules) * 0x10000000
                self.modules[library] = base
                self.record(REC_MODULE, struct.pack("<QQQII", base, base, base + 0x1000000, 0, 0) + library.encode() + b"\0")
            native = self.node(0, self.modules[library] + 0x1000)
        self.stacks[key] = (native, python)
        return self.stacks[key]

    # ---- events

    def at(self, seconds):
        self.now = max(self.now, seconds)

    def tick(self, seconds=1e-6):
        self.now += seconds

    def slot(self, kind, addr, size=0, hook=0, stack=(0, 0), ext=None):
        word = size & (1 << 48) - 1 | hook << 48 | kind << 58
        event = struct.pack("<QQQII", ticks(self.now), addr & (1 << 64) - 1, word, *stack)
        self.slots.append((event, ext))
        self.now += 1e-7

    def ext(self, class_, device=0, stream=0, other=0, source=0, status=0, capture=0):
        return struct.pack("<QQIIII", stream, other, class_ | device << 8 | source << 24, EXT << 26, status, capture)

    def address(self, size):
        address = self.next_address
        self.next_address += (size + 0x1FF & ~0x1FF) + 0x1000
        return address

    def malloc(self, size, stack=(0, 0)):
        address = self.address(size)
        self.slot(ALLOC, address, size, 1, stack)
        return address

    def mfree(self, address):
        self.slot(FREE, address, 0, 2)

    def map_file(self, size, path, stack=(0, 0)):
        key = "file:" + path
        if key not in self.names:
            self.names[key] = len(self.names) + 1
            self.record(REC_FILE, struct.pack("<II", self.names[key], 0) + path.encode() + b"\0")
        address = self.address(size + 0xFFF & ~0xFFF) + 0xFFF & ~0xFFF
        ext = struct.pack("<QQIIII", 0, 0, 1, EXT << 26, self.names[key], 0)
        self.slot(MAP, address, size, 3, stack, ext)
        return address

    def device(self, ordinal, uuid, total, name="Stand-in", backend=1):
        self.devices += 1
        text = uuid.encode() + b"\0" + name.encode() + b"\0"
        self.record(REC_DEVICE, struct.pack("<IIIIQ", self.devices, backend, ordinal, 0, total) + text)
        return self.devices

    def alloc(self, device, class_, size, stack=(0, 0), hook=4, address=None, capture=0):
        address = address or self.address(size)
        self.slot(DEVICE_ALLOC, address, size, 6 if class_ == POOL else hook, stack, self.ext(class_, device, capture=capture))
        return address

    def free(self, device, class_, address):
        self.slot(DEVICE_FREE, address, 0, 5, (0, 0), self.ext(class_, device))

    def info(self, device, free, total):
        self.slot(DEVICE_INFO, free, total, 0, (0, 0), self.ext(DEVICE, device))

    def fail(self, device, class_, size, stack=(0, 0), allocated=0, reserved=0, hook=4):
        status = 0 if class_ == POOL else 2
        self.slot(DEVICE_FAIL, size, 0, 6 if class_ == POOL else hook, stack, self.ext(class_, device, allocated, reserved, 0, status))

    def name(self, text):
        if text not in self.names:
            self.names[text] = len(self.names) + 1
            self.record(REC_NAME, struct.pack("<II", self.names[text], 0) + text.encode() + b"\0")
        return self.names[text]

    def step(self, number):
        self.slot(MARK, number, 0, 0, (0, 0), self.ext(STEP))

    def begin(self, phase):
        self.slot(MARK, 0, self.name(phase), 0, (0, 0), self.ext(BEGIN))

    def end_phase(self, phase):
        self.slot(MARK, 0, self.name(phase), 0, (0, 0), self.ext(END))

    def label(self, address, text):
        self.slot(MARK, address, self.name(text), 0, (0, 0), self.ext(LABEL))

    # ---- files

    def chunks(self):
        out, used, chunk = [], 0, bytearray()
        def flush():
            head = struct.pack("<IIQIIQQQQQ", 0x4B43544D, 0, len(out), used, 0, 0, 0, 0, 0, 0)
            out.append(head + chunk)
        for event, ext in self.slots:
            need = 2 if ext else 1
            if used + need > SLOTS:
                if used < SLOTS:
                    used = used  # the last slot stays unused
                flush()
                used, chunk = 0, bytearray()
            chunk += event + (ext or b"")
            used += need
        flush()
        return out

    def save(self, path):
        end = self.end if self.end is not None else self.now + 1e-3
        chunks = self.chunks()
        info = struct.pack(
            "<8sIIIIIIIIQQQQQQIIIIQIiQQQQIIIIQQQQII", b"MTINFO1\n", 1, 208, self.pid, 0, 1, 0xFFFFFFFF, 1, 2, ticks(self.start),
            ticks(self.start), REAL + ticks(self.start) - START, self.pid, 0, 0, 0, 0, 0, 512, 0, self.exit[0], self.exit[1],
            ticks(end) if self.exit[0] else 0, ticks(end), ticks(end), len(self.log), len(self.nodes), len(chunks), 1, 1,
            0, 0, 0, 0, 0, 0)
        states = bytes([2] * (len(chunks) - 1) + [1])
        base = os.path.join(path, f"{self.pid}-0")
        with open(base + ".info", "wb") as f:
            f.write(info.ljust(4096, b"\0") + states)
            f.seek(0x20000)
            f.write(self.log)
            f.truncate(0x20000 + (len(self.log) + 0xFFFF) // 0x10000 * 0x10000)
        with open(base + ".nodes", "wb") as f:
            f.write(b"".join(struct.pack("<QII", *n) for n in self.nodes))
            f.truncate((len(self.nodes) // 4096 + 1) * 4096 * 16)
        with open(base + ".ring", "wb") as f:
            for i, chunk in enumerate(chunks):
                f.seek(262144 * i)
                f.write(chunk)
            f.truncate(262144 * len(chunks))


# ---- samples

def fields(name):
    """Names and units of a kind's fields, as format/samples.h lists them."""
    text = open(os.path.join(ROOT, "format", "samples.h")).read()
    body = re.search(r"#define MT_%s_FIELDS\(X\)((?:.*\\\n)*.*)" % name, text).group(1)
    return re.findall(r"X\((\w+), (\w)\)", body)


SUBJECTS = {"MACHINE": 1, "CGROUP": 2, "PROCESS": 3, "MAPPING": 4, "DEVICE": 5, "DEVICE_PROCESS": 6}


class Samples:
    """say(seconds, subject, field=value...); values in bytes where the unit is K."""

    def __init__(self):
        self.subjects, self.figures = [], []

    def subject(self, kind, key=(0, 0, 0), text="", text2=""):
        self.subjects.append((kind, key, text, text2))
        return len(self.subjects) - 1

    def say(self, seconds, subject, **values):
        self.figures.append((seconds, subject, values))

    def save(self, path):
        if not self.subjects:
            return
        known = {kind: [n for n, _ in fields(kind)] for kind in SUBJECTS}
        units = {kind: dict(fields(kind)) for kind in SUBJECTS}
        self.figures.sort(key=lambda f: f[0])
        first, last = ticks(self.figures[0][0]), ticks(self.figures[-1][0])
        out, now, latest = bytearray(), first, {}
        for kind, key, text, text2 in self.subjects:
            out += varint(1) + b"".join(varint(k) for k in (SUBJECTS[kind], *key))
            out += varint(len(text.encode())) + text.encode() + varint(len(text2.encode())) + text2.encode()
        count = 0
        for seconds, subject, values in self.figures:
            delta = (ticks(seconds) - now) // 1000
            if delta > 0 or count == 0:
                out += varint(2) + varint(max(delta, 0))
                now += max(delta, 0) * 1000
            kind = self.subjects[subject][0]
            mask, body, old = 0, b"", latest.setdefault(subject, {})
            for i, name in enumerate(known[kind]):
                if name not in values:
                    continue
                value = int(values[name]) // (1024 if units[kind][name] == "K" else 1)
                mask |= 1 << i
                body += varint(zigzag(value - old.get(i, 0)))
                old[i] = value
            out += varint(3) + varint(subject) + varint(mask) + body
            count += 1
        with open(os.path.join(path, "samples"), "wb") as f:
            f.write(records.samples_head() + records.samples_block(first, last, bytes(out)))


class Trace:
    def __init__(self, path):
        self.path, self.processes, self.samples = path, [], Samples()
        os.makedirs(path)

    def process(self, pid, command, start=0.0):
        self.processes.append(Process(self, pid, command, start))
        return self.processes[-1]

    def save(self):
        session = struct.pack("<8sIIQQQIIQQ40s64s1024s", b"MTSESS1\n", 1, 1248, START, START, REAL, 2, 4096, 0, 0,
                              b"00000000-0000-0000-0000-000000000000", b"battery", b"")
        with open(os.path.join(self.path, "session"), "wb") as f:
            f.write(session.ljust(4096, b"\0"))
        for p in self.processes:
            p.save(self.path)
        self.samples.save(self.path)
