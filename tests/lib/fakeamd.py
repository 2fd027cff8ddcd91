"""The files in which Linux tells of AMD's devices (sampler_kfd.c), as a tree below MEMTRACE_PROC_ROOT, and a program on the fake of HIP.

    tree = Tree([Device(unique_id=0x5d6c5fcd8f3a07c1, total=1 << 30)])
    tree.use(0, {pid: bytes, ...}, more=bytes)       what each process has on device 0, and what is used beyond that
    run = start(tree)
    run.take(0, 100)                                 100 MiB on hip:0, in place of what it had there
"""
import os
import shutil

import fakehip
import mt
from sampled import Running

KFD = "sys/class/kfd/kfd"
HIP = """
import ctypes, os, select, sys
hip = ctypes.CDLL("libamdhip64.so.%s" % sys.argv[1])
have = {}
print("READY", os.getpid(), flush=True)
while True:
    while not select.select([sys.stdin], [], [], 0.01)[0]:
        bytearray(10000)  # whoever rests starts no recorder
    line = sys.stdin.readline()
    if not line:
        break
    status, device, mib = map(int, line.split())
    hip.fake_set(0, device)
    if not status and device in have:
        hip.hipFree(have[device])
    hip.fake_set(status, device)
    p = ctypes.c_void_p()
    assert hip.hipMalloc(ctypes.byref(p), ctypes.c_size_t(mib << 20)) == status
    if not status:
        have[device] = p
    print("DONE", flush=True)
"""


class Device:
    """As tests/hip/fake.c has hip:N: N + 1 GiB, at 0000:03+N:00.0. bank: what the compute driver hands out of it."""

    def __init__(self, number, unique_id=0, bank=None, domain=0):
        self.number, self.unique_id, self.domain, self.total = number, unique_id, domain, (number + 1) << 30
        self.bank = self.total if bank is None else bank
        self.gpu_id, self.minor, self.location = 40000 + 7 * number, 128 + number, (3 + number) << 8

    @property
    def uuid(self):
        return "GPU-%016x" % self.unique_id if self.unique_id else "PCI-%04x:%02x:00.0" % (self.domain, self.location >> 8)


class Tree:
    def __init__(self, devices):
        self.root, self.devices, self.generation, self.pids = mt.scratch("amd"), {d.number: d for d in devices}, 1, set()
        os.makedirs(os.path.join(self.root, KFD, "proc"))
        self.list()

    def write(self, name, text):
        """Whoever reads meanwhile sees the old file or the new one."""
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + ".new", "w") as file:
            file.write(text)
        os.rename(path + ".new", path)

    def list(self):
        """A processor's node, and the devices'."""
        nodes = [None] + list(self.devices.values())
        shutil.rmtree(os.path.join(self.root, KFD, "topology/nodes"), ignore_errors=True)
        for number, d in enumerate(nodes):
            node = KFD + "/topology/nodes/%d/" % number
            self.write(node + "properties", "cpu_cores_count 8\nlocation_id 0\ndrm_render_minor 0\n" if not d else
                       "cpu_cores_count 0\nsimd_count 440\nvendor_id 4098\nlocation_id %d\ndomain %d\ndrm_render_minor %d\nhive_id 0\n"
                       "unique_id %d\nnum_xcc 1\n" % (d.location, d.domain, d.minor, d.unique_id))
            self.write(node + "mem_banks/0/properties", "heap_type 1\nsize_in_bytes %d\nflags 0\nwidth 4096\n" % (d.bank if d else 64 << 30))
            self.write(node + "gpu_id", "%d\n" % (d.gpu_id if d else 0))
            if d:
                self.write("sys/class/drm/renderD%d/device/mem_info_vram_total" % d.minor, "%d\n" % d.total)
        self.write(KFD + "/topology/generation_id", "%d\n" % self.generation)

    def use(self, number, users, more=0):
        """Every process has a file for every device."""
        self.pids |= set(users)
        for pid in self.pids:
            for d in self.devices.values():
                path = KFD + "/proc/%d/vram_%d" % (pid, d.gpu_id)
                if d.number == number or not os.path.exists(os.path.join(self.root, path)):
                    self.write(path, "%d\n" % (users.get(pid, 0) if d.number == number else 0))
        d = self.devices[number]
        self.write("sys/class/drm/renderD%d/device/mem_info_vram_used" % d.minor, "%d\n" % (sum(users.values()) + more))
        return sum(users.values()) + more

    def remove(self, number, counted=True):
        """The device: what a kernel does when one is unplugged."""
        d = self.devices.pop(number)
        shutil.rmtree(os.path.join(self.root, "sys/class/drm/renderD%d" % d.minor))
        for pid in self.pids:
            os.unlink(os.path.join(self.root, KFD, "proc/%d/vram_%d" % (pid, d.gpu_id)))
        self.generation += counted
        self.list()

    def end(self, pid):
        self.pids.discard(pid)
        shutil.rmtree(os.path.join(self.root, KFD, "proc/%d" % pid))


class Program(Running):
    def say(self, *words):
        self.tell(" ".join(map(str, words)))
        mt.equal(self.child.stdout.readline(), b"DONE\n", "what the program says")

    def take(self, number, mib):
        self.say(0, number, mib)

    def refused(self, number, mib):
        self.say(2, number, mib)

    def shows(self, number, used, users=()):
        """Waits until a sample has that much used on the device, and these bytes of processes."""
        uuid = self.tree.devices[number].uuid

        def enough(found):
            last = {}
            for row in found:
                if row["text"] == uuid:
                    last[row["kind"], row["other_pid"]] = row["fields"]
            return last.get(("device", 0), {}).get("used") == used and \
                all(last.get(("device-process", pid), {}).get("bytes") == size for pid, size in dict(users).items())
        self.sampled(enough, "%s with %d used" % (uuid, used))


def start(tree, major="7", prefix=(), **options):
    folder = mt.scratch("hip-program")
    script = os.path.join(folder, "hip.py")
    with open(script, "w") as file:
        file.write(HIP)
    run = Program(major, program=(*prefix, mt.python(), script), env={"LD_LIBRARY_PATH": fakehip.libraries(), "MEMTRACE_PROC_ROOT": tree.root},
                  **options)
    run.tree = tree
    return run.ready()
