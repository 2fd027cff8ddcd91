"""Profiles in pprof's format, written here field by field."""
import gzip


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out) + bytes([n])


def field(number, value):
    """A varint, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value & (1 << 64) - 1)
    return varint(number << 3 | 2) + varint(len(value)) + value


class Profile:
    """types: (type, unit) of each value. Samples are (frames innermost first, values, labels); a frame is (function, file, line), or (library,
    address) where it has no name."""

    def __init__(self, types, samples, when_ns=0, packed=True):
        self.texts, self.made, self.tables = [""], {}, []
        out = [field(1, field(1, self.text(t)) + field(2, self.text(u))) for t, u in types]
        for frames, values, labels in samples:
            locations = [self.location(f) for f in frames]
            if packed:
                body = field(1, b"".join(map(varint, locations))) + field(2, b"".join(varint(v & (1 << 64) - 1) for v in values))
            else:
                body = b"".join(field(1, l) for l in locations) + b"".join(field(2, v) for v in values)
            body += b"".join(field(3, field(1, self.text(k)) + field(2, self.text(v))) for k, v in labels.items())
            out.append(field(2, body))
        self.bytes = b"".join(out + self.tables + [field(6, t.encode()) for t in self.texts]) + (field(9, when_ns) if when_ns else b"")

    def text(self, text):
        if text not in self.texts:
            self.texts.append(text)
        return self.texts.index(text)

    def made_once(self, number, key, body):
        if (number, key) not in self.made:
            self.made[number, key] = len(self.made) + 1
            self.tables.append(field(number, field(1, self.made[number, key]) + body))
        return self.made[number, key]

    def location(self, frame):
        if len(frame) == 2:
            mapping = self.made_once(3, frame[0], field(5, self.text(frame[0])))
            return self.made_once(4, frame, field(2, mapping) + field(3, frame[1]))
        name, file, line = frame
        function = self.made_once(5, (name, file), field(2, self.text(name)) + field(4, self.text(file)))
        return self.made_once(4, frame, field(4, field(1, function) + field(2, line)))

    def write(self, path):
        with gzip.open(path, "wb") as file:
            file.write(self.bytes)
        return path
