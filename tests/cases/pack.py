#!/usr/bin/env python3
"""memtrace pack: one file reads as the traces in it, without their programs; redacted it says the same in other names, and none of the old ones is
in it. What means harm in such a file opens nothing, and costs little."""
import ctypes
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

SECRETS = ("secretlib", "secretprog", "secret_native", "secret_main", "secretscript", "SecretModel", "secret_method", "secretphase", "secretlabel",
           "secretthread", "secrettag", "secretjob", "secretword", "secretfile")
LIBRARY = """
#include <stdlib.h>
__attribute__((noinline)) void *secret_native_keep(size_t n) { void *volatile p = malloc(n); return p; }
"""
PROGRAM = """
#include <stdlib.h>
#include <unistd.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <sys/mman.h>
void *secret_native_keep(size_t);
__attribute__((noinline)) static void secret_main_keep(int n) { for (int i = 0; i < n; i++) { void *volatile p = secret_native_keep(1000); (void)p; } }
int main(int n, char **words) {
	secret_main_keep(1000);
	int fd = open(words[1], O_RDWR | O_CREAT, 0600);
	if (ftruncate(fd, 1 << 20) == 0) mmap(0, 1 << 20, PROT_READ, MAP_SHARED, fd, 0);
	if (!fork()) { secret_main_keep(500); _exit(0); }
	wait(0);
	if (n > 2) execvp(words[2], words + 2);
	return 0; }
"""
SCRIPT = """
import ctypes, sys, threading
sys.path.insert(0, sys.argv[1])
import memtrace
class SecretModel:
    def secret_method(self, n):
        return [bytes(3000) for _ in range(n)]
def work(keep):
    if threading.current_thread() is not threading.main_thread():
        ctypes.CDLL(None).prctl(15, b"secretthread", 0, 0, 0) # PR_SET_NAME
    with memtrace.phase("secretphase one"):
        keep.append(SecretModel().secret_method(100))
keep = []
for i in range(20):
    memtrace.step(i)
    work(keep)
ctypes.CDLL(None).malloc.restype = ctypes.c_void_p
memtrace.label(ctypes.CDLL(None).malloc(100000), "parameters:secretlabel")
t = threading.Thread(target=work, args=(keep,), name="secretthread")
t.start()
t.join()
"""
READS = (("report",), ("peak", "-n", "1000", "--all-frames"), ("leaks", "-n", "1000"), ("timeline", "--by", "phase"), ("timeline",),
         ("peak", "--by", "category"), ("frag",))


def recorded():
    """Native code, a child, a script with marks and a thread, all with names that are not to be known; then all of it is gone."""
    home = mt.scratch("home")
    for name, source, flags in (("libsecretlib.so", LIBRARY, ["-shared", "-fPIC"]), ("secretprog", PROGRAM, [os.path.join(home, "libsecretlib.so")])):
        path = os.path.join(home, name)
        with open(path + ".c", "w") as file:
            file.write(source)
        done = mt.execute(["cc", "-O1", "-g", "-Wl,--build-id", path + ".c", "-o", path, *flags])
        mt.equal(done.status, 0, "status of cc: %s" % done.err)
    script = os.path.join(home, "secretscript.py")
    with open(script, "w") as file:
        file.write(SCRIPT)
    done = mt.shimmed([path, os.path.join(home, "secretfile"), mt.python(), script, os.path.join(mt.TOP, "scripts"), "--secretword=secretword1", "secretword two"],
                      env={"MEMTRACE_TAGS": "pp=3,zone=secrettag", "RANK": "3", "SLURM_JOB_ID": "secretjob7"})
    mt.equal((done.status, done.err), (0, ""), "of the program")
    done.trace.settle()
    done.home = home
    return done


def pack(*words, status=0, env=None):
    out = os.path.join(mt.scratch("pack"), "p.tar.zst")
    done = mt.execute([mt.MEMTRACE, "pack", "-q", "-o", out, *words], env=mt.clean_env(**(env or {})))
    mt.equal((done.status, done.out), (status, ""), "of pack: %s" % done)
    return done if status else out


def reading(path, words):
    done = mt.execute([mt.MEMTRACE, *words, "--json", path])
    mt.equal((done.status, done.err), (0, ""), "of %s" % done)
    return json.loads(done.out)


def readings(path):
    return {words: reading(path, words) for words in READS}


def alike(one, other, names, where=""):
    """The same shape and numbers in the same order; names may be others, the same one for the same one. Clocks are compared anew at each reading."""
    if isinstance(one, dict):
        mt.equal(list(one), list(other), "keys of " + where)
        for key in one:
            alike(one[key], other[key], names, where + "." + key)
    elif isinstance(one, list):
        mt.equal(len(other), len(one), "length of " + where)
        for i, (a, b) in enumerate(zip(one, other)):
            alike(a, b, names, "%s[%d]" % (where, i))
    elif isinstance(one, str) and isinstance(other, str):
        if where.rsplit(".", 1)[-1] in ("function", "file", "library", "name", "host", "category", "kind", "language", "memory"):
            mt.equal(other, names.setdefault(one, other), "another name of %r at %s" % (one, where))
    elif isinstance(one, float):
        mt.between(one - 1e-5, other, one + 1e-5, where)
    else:
        mt.equal(other, one, where)


def members(path):
    plain = subprocess.run([mt.need("zstd"), "-dc", path], stdout=subprocess.PIPE, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
        return {m.name: tar.extractfile(m).read() for m in tar.getmembers()}


class Buffer(ctypes.Structure):
    _fields_ = [("at", ctypes.c_void_p), ("size", ctypes.c_size_t), ("pos", ctypes.c_size_t)]


def frames_of(data):
    """All that any zstd frame in these bytes becomes."""
    zstd = ctypes.CDLL("libzstd.so.1")
    zstd.ZSTD_createDStream.restype, zstd.ZSTD_decompressStream.restype = ctypes.c_void_p, ctypes.c_size_t
    held, out, at = ctypes.create_string_buffer(data, len(data)), [], data.find(b"\x28\xb5\x2f\xfd")
    while at >= 0:
        stream = ctypes.c_void_p(zstd.ZSTD_createDStream())
        out += stream_of(zstd, stream, Buffer(ctypes.addressof(held) + at, len(data) - at, 0))
        zstd.ZSTD_freeDStream(stream)
        at = data.find(b"\x28\xb5\x2f\xfd", at + 4)
    return b"".join(out)


def stream_of(zstd, stream, source):
    """As far as it goes: in the samples' streams heads of ours lie between the parts."""
    space = ctypes.create_string_buffer(1 << 17)
    while True:
        to, before = Buffer(ctypes.addressof(space), len(space), 0), source.pos
        left = zstd.ZSTD_decompressStream(stream, ctypes.byref(to), ctypes.byref(source))
        yield space.raw[:to.pos]
        if zstd.ZSTD_isError(left) or left == 0 or (not to.pos and source.pos == before):
            return


def found(path, words):
    """Which of these are in the file, as they are or compressed."""
    everything = b"\0".join(part for name, data in members(path).items() for part in (name.encode(), data, frames_of(data))).lower()
    return {w for w in words if w.lower().encode() in everything}


def case_redacted():
    """Packed with its programs and read without them. Of what is not redacted the same search finds every name."""
    r = recorded()
    want = readings(r.trace.path)
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
