"""Packed traces: something that is recorded under names that nobody may know, what a file reads as, and what a search finds in it."""
import ctypes
import io
import json
import os
import subprocess
import tarfile

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
        key = where.rsplit(".", 1)[-1]
        if key in ("kind", "language", "memory"):  # words of memtrace's own, also where a function has the same name
            mt.equal(other, one, where)
        elif key in ("function", "file", "library", "name", "host", "category"):
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
