#!/usr/bin/env python3
"""The pictures in README.md are of pages as they are: incidents 2, 3 and 4 in Chromium. --refresh writes docs/pictures/*.png; a run without it
checks that they are there, that README shows each, and that they are small.

usage: tests/long/pictures.py [--refresh [NAME...]]"""
# timeout: 1200
import collections
import json
import os
import re
import struct
import subprocess
import sys
import zlib
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import browser
import gpu
import mt
from cgroup import Cgroup

FOLDER = os.path.join(mt.TOP, "docs/pictures")
LIMIT = 1 << 30
MOST = 150 << 10
NAMES = {"incident2": "light", "incident3": "dark", "incident4": "light"}  # and how they are drawn
# By so many steps of the wheel, at the moment that is looked at: half of a run is imports, on a busy machine more.
ZOOM = {"incident2": 5}
LOOK = """
for (const e of document.querySelectorAll('.place')) e.textContent = e.textContent.replace(%s, '');
const d = memtrace.data, over = document.querySelector('.u-over'), box = over.getBoundingClientRect(), at = memtrace.when(d, memtrace.track()).time;
const x = box.left + box.width * (at - d.times[0]) / (d.times.at(-1) - d.times[0]);
for (let i = 0; i < %d; i++) over.dispatchEvent(new WheelEvent('wheel', { deltaY: -100, clientX: x, clientY: box.top + 9, bubbles: true, cancelable: true }));
await new Promise(done => requestAnimationFrame(() => setTimeout(done, 100)));
return 1;
"""


def recorded(name):
    """Incident 4 is one of a control group."""
    if name != "incident4":
        return gpu.scenario(name, timeout=600)
    script = os.path.join(gpu.SCENARIOS, name + ".py")
    with Cgroup(LIMIT) as group:
        done = gpu.run(group.command([gpu.python(), script, "--fill", str(LIMIT * 96 // 100)]), env={"MEMTRACE_PAUSED": "1"}, **gpu.settings_of(script))
        done.trace.settle()
    return done


def pixels(png):
    """Width, height and rows of (red, green, blue), of a picture of 8 bits a channel without an alpha one, as Chromium's are."""
    data, at, width, height, depth, kind = b"", 8, 0, 0, 0, 0
    while at < len(png):
        length, name = struct.unpack(">I4s", png[at:at + 8])
        if name == b"IHDR":
            width, height, depth, kind = struct.unpack(">IIBB", png[at + 8:at + 18])
        data += png[at + 8:at + 8 + length] if name == b"IDAT" else b""
        at += 12 + length
    assert depth == 8 and kind in (2, 6), (depth, kind)
    each = 3 if kind == 2 else 4
    raw, stride, before, rows = zlib.decompress(data), width * each, bytearray(width * each), []
    for y in range(height):
        way, row = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for i in range(stride):
            left, up, corner = row[i - each] if i >= each else 0, before[i], before[i - each] if i >= each else 0
            if way == 4:
                guess = left + up - corner
                near = min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))[2]
            else:
                near = (0, left, up, (left + up) // 2)[way]
            row[i] = (row[i] + near) & 255
        rows.append([tuple(row[i:i + 3]) for i in range(0, stride, each)])
        before = row
    return width, height, rows


def smaller(png):
    """The same picture with the 256 colours that are nearest to its own: text is of hundreds of grays that nobody can tell apart."""
    width, height, rows = pixels(png)
    counts = collections.Counter(colour for row in rows for colour in row)
    coarse = collections.Counter()
    for colour, n in counts.items():
        coarse[tuple(min(255, (c + 8) // 16 * 16) for c in colour)] += n
    palette = [c for c, _ in counts.most_common(96)]
    palette += [c for c, _ in coarse.most_common(400) if c not in palette][:256 - len(palette)]
    index = {c: min(range(len(palette)), key=lambda i: sum((a - b) ** 2 for a, b in zip(palette[i], c))) for c in counts}
    chunk = lambda name, data: struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    return (png[:8] + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)) + chunk(b"PLTE", bytes(v for c in palette for v in c)) +
            chunk(b"IDAT", zlib.compress(b"".join(b"\0" + bytes(index[c] for c in row) for row in rows), 9)) + chunk(b"IEND", b""))


def draw(name, trace):
    """A picture says no folder of this machine."""
    os.makedirs(FOLDER, exist_ok=True)
    link = os.path.join(mt.scratch("pictures"), name)
    os.symlink(trace, link)
    page = link + ".html"
    subprocess.run([mt.MEMTRACE, "html", "-q", "--source", "all", "-o", page, name], cwd=os.path.dirname(link), stdout=subprocess.DEVNULL, check=True)
    browser.ask(page, LOOK % (json.dumps(mt.TOP + "/"), ZOOM.get(name, 0)), width=1280, height=720, theme=NAMES[name], shot=link + ".png")
    with open(link + ".png", "rb") as before, open(os.path.join(FOLDER, name + ".png"), "wb") as after:
        after.write(smaller(before.read()))


def refresh(names):
    for name in names or NAMES:
        draw(name, recorded(name).trace.settle().path)


def case_are_small_and_shown():
    with open(os.path.join(mt.TOP, "README.md"), encoding="utf-8") as file:
        shown = set(re.findall(r"docs/pictures/(\w+)\.png", file.read()))
    mt.equal(shown, set(NAMES))
    for name in NAMES:
        mt.between(1, os.path.getsize(os.path.join(FOLDER, name + ".png")), MOST, "bytes of the picture of %s" % name)


if sys.argv[1:2] == ["--refresh"]:
    refresh(sys.argv[2:])
else:
    mt.main()
