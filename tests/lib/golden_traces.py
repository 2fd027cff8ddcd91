"""The golden traces: tests/golden/NAME.tar.gz holds a trace directory, NAME.dump the text of it."""
import gzip
import io
import os
import tarfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(TOP, "tests/golden")
NAMES = sorted(n[:-len(".tar.gz")] for n in os.listdir(FOLDER) if n.endswith(".tar.gz"))


def archive(name):
    return os.path.join(FOLDER, name + ".tar.gz")


def text(name):
    return os.path.join(FOLDER, name + ".dump")


def unpack(name, folder):
    """Returns the trace directory, in `folder`."""
    with tarfile.open(archive(name)) as tar:
        for member in tar:
            with open(os.path.join(folder, os.path.basename(member.name)), "wb") as file:
                file.write(tar.extractfile(member).read())
    return folder


def pack(name, trace):
    """The same bytes for the same files: no times, owners or order of a directory."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for file in sorted(os.listdir(trace)):
            with open(os.path.join(trace, file), "rb") as source:
                data = source.read()
            member = tarfile.TarInfo(file)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    with open(archive(name), "wb") as out, gzip.GzipFile("", "wb", 9, out, mtime=0) as zipped:
        zipped.write(plain.getvalue())
