#!/usr/bin/env python3
"""memtrace pack: one file reads as the traces in it, without their programs; redacted it says the same in other names, and none of the old ones is
in it. What means harm in such a file opens nothing, and costs little."""
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import golden_traces
import mt
import packs
from packs import READS, SECRETS, alike, found, members, pack, reading


def case_redacted():
    """Packed with its programs and read without them. Of what is not redacted the same search finds every name."""
    r = packs.recorded()
    want = packs.readings(r.trace.path)
    plain, plain2, redacted = pack(r.trace.path), pack(r.trace.path), pack("--redact", r.trace.path)
    shutil.rmtree(r.home)
    mt.check("secret_native_keep" not in json.dumps(reading(r.trace.path, READS[1])), "the names are there still")
    for words in READS:
        names = {}
        alike(want[words], reading(plain, words), names)
        mt.equal({k for k in names if names[k] != k}, set(), "names that packing changed")
        names = {}
        alike(want[words], reading(redacted, words), names, " ".join(words))
        mt.equal(len(set(names.values())), len(names), "names with hashes of their own")
    with open(plain, "rb") as a, open(plain2, "rb") as b:
        mt.check(a.read() == b.read(), "packed twice it differs")
    mt.equal(found(plain, SECRETS), set(SECRETS), "names that a search finds in what is not redacted")
    hidden = (*SECRETS, os.path.basename(r.home), "memtrace-test-")
    mt.equal(found(redacted, hidden), set(), "names that a search finds")
    mt.equal(found(redacted, ("PyImport_ImportModuleLevelObject", "threading.py", "libc.so.6")) , {"PyImport_ImportModuleLevelObject", "threading.py", "libc.so.6"})
    host = [members(path)["memtrace-1/session"][104:168].strip(b"\0").decode() for path in (plain, redacted)]
    mt.check(host[0] == os.uname().nodename and re.fullmatch("x[0-9a-f]{10}", host[1]), "hosts %s" % host)
    mt.equal(mt.execute([mt.MEMTRACE, "check", redacted]).status, 0, "check of what was redacted")


def case_salt():
    trace = golden_traces.unpack("gpu", mt.scratch("golden"))
    one, same, other = (pack("--redact", "--salt", salt, trace) for salt in ("a", "a", "b"))
    mt.equal(members(one), members(same))
    mt.check(members(one) != members(other), "two salts make the same hashes")
    mt.check(members(pack("--redact", trace)) != members(pack("--redact", trace)), "two packs have the same hashes")
    mt.equal(pack("--salt", "a", trace, status=2).err.count("\n"), 1)


@mt.variants(*((n,) for n in golden_traces.NAMES))
def case_all_kinds_of_records(name):
    """Devices, samples, raw files of a process that was killed."""
    trace = golden_traces.unpack(name, mt.scratch("golden"))
    for words in (("report",), ("peak", "-n", "all"), ("timeline",)):
        names = {}
        want = reading(trace, (*words, "--force"))
        alike(want, reading(pack("--force", trace), (*words, "--force")), {k: k for k in names}, "plain " + name)
        alike(want, reading(pack("--force", "--redact", trace), (*words, "--force")), names, name)


def case_raw_files_elsewhere():
    """Killed with its recorder, and its raw files in another folder: all of it is in the file."""
    rings = mt.scratch("rings")
    done = mt.shimmed(["sh", "-c", "kill -9 0"], env={"MEMTRACE_RING_DIR": rings})
    mt.check(done.trace.exists(), "no trace of %s" % done)
    time.sleep(0.1)
    want = reading(done.trace.path, ("report",))
    packed = pack("--redact", done.trace.path)
    shutil.rmtree(rings)
    alike(want["host"], reading(packed, ("report",))["host"], {})


def case_several_traces():
    traces = [golden_traces.unpack(n, mt.scratch("golden")) for n in ("gpu", "tree")]
    packed = pack("--force", *traces)
    both = mt.execute([mt.MEMTRACE, "report", "--json", "--force", *traces])
    alike(json.loads(both.out), reading(packed, ("report", "--force")), {})
    alike(reading(traces[1], ("report", "--force")), reading(packed + "/memtrace-2", ("report", "--force")), {})
    mt.equal(mt.execute([mt.MEMTRACE, "report", packed + "/memtrace-3"]).status, 3)


def case_made_by_tar():
    """A directory that tar and zstd packed."""
    trace = golden_traces.unpack("gpu", mt.scratch("golden"))
    packed = os.path.join(mt.scratch("pack"), "x.tar.zst")
    done = mt.execute(["tar", "--zstd", "-C", os.path.dirname(trace), "-cf", packed, "./" + os.path.basename(trace)])
    mt.equal(done.status, 0, "tar: %s" % done.err)
    alike(reading(trace, ("report",)), reading(packed, ("report",)), {})


def case_still_recorded():
    output = os.path.join(mt.scratch("trace"), "t")
    child = subprocess.Popen(["sleep", "60"], env=mt.shim_env(output))
    try:
        mt.until(lambda: any(f.endswith(".info") for f in mt.Trace(output).files()), "the trace")
        done = pack(output, status=3)
        mt.check("still being recorded" in done.err, "it says: %s" % done)
    finally:
        child.kill()
        child.wait()


# ---- what means harm ---------------------------------------------------------------------------------------------


def compressed(data):
    return subprocess.run([mt.need("zstd"), "-q", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


def tar_of(*entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data, kind in entries:
            info = tarfile.TarInfo(name)
            info.type, info.size = kind, len(data)
            info.linkname = "/etc/passwd" if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE) else ""
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def hostile():
    trace = golden_traces.unpack("gpu", mt.scratch("golden"))
    files = [("t/" + f, open(os.path.join(trace, f), "rb").read(), tarfile.REGTYPE) for f in sorted(os.listdir(trace))]
    good = tar_of(*files)
    yield "outside", compressed(tar_of(*files, ("../escaped", b"x", tarfile.REGTYPE)))
    yield "deep outside", compressed(tar_of(*files, ("t/../../escaped", b"x", tarfile.REGTYPE)))
    yield "absolute", compressed(tar_of(*files, ("/tmp/memtrace-escaped", b"x", tarfile.REGTYPE)))
    yield "link", compressed(tar_of(*files, ("t/samples.open", b"", tarfile.SYMTYPE)))
    yield "hard link", compressed(tar_of(*files, ("t/samples.open", b"", tarfile.LNKTYPE)))
    yield "device", compressed(tar_of(*files, ("t/samples.open", b"", tarfile.CHRTYPE)))
    yield "twice", compressed(tar_of(*files, files[0]))
    yield "empty", compressed(b"\0" * 1024)
    yield "no tar", compressed(os.urandom(4096))
    yield "cut tar", compressed(good[:len(good) // 2])
    yield "cut", compressed(good)[:-100]
    yield "no zstd", good
    yield "long", compressed(tar_of(("t/" + "x" * 90, b"", tarfile.REGTYPE)))


def case_hostile():
    for what, data in hostile():
        folder, tmp = mt.scratch("hostile"), mt.scratch("tmp")
        path = os.path.join(folder, "p.tar.zst")
        with open(path, "wb") as file:
            file.write(data)
        before = set(os.listdir(os.path.dirname(folder))) | set(os.listdir("/tmp"))
        for words in (("report",), ("check",), ("dump",), ("peak", "--json")):
            done = mt.execute([mt.MEMTRACE, *words, path], env=mt.clean_env(TMPDIR=tmp))
            mt.equal((done.status, done.err.count("\n")), (3, 1), "%s of %s: %s" % (words, what, done))
        mt.equal((os.listdir(folder), os.listdir(tmp)), (["p.tar.zst"], []), "left by %s" % what)
        new = {n for n in set(os.listdir(os.path.dirname(folder))) | set(os.listdir("/tmp")) if "escaped" in n}
        mt.equal(new - before, set(), "made by %s" % what)


def case_bomb():
    """Gigabytes of zeros: refused at what such a small file may become."""
    folder, tmp = mt.scratch("bomb"), mt.scratch("tmp")
    path = os.path.join(folder, "p.tar.zst")
    with open(path, "wb") as file:
        zeros = subprocess.Popen(["head", "-c", str(3 << 30), "/dev/zero"], stdout=subprocess.PIPE)
        subprocess.run([mt.need("zstd"), "-q", "-c", "-1"], stdin=zeros.stdout, stdout=file, check=True)
        zeros.stdout.close()
        zeros.wait()
    mt.check(os.path.getsize(path) < 1 << 20, "it has %d bytes" % os.path.getsize(path))
    done = mt.execute([mt.MEMTRACE, "report", path], env=mt.clean_env(TMPDIR=tmp))
    mt.equal((done.status, os.listdir(tmp)), (3, []), "of %s" % done)
    mt.check("becomes more than" in done.err, "it says: %s" % done.err)


mt.main()
