"""Tensors on an Ascend device through its C interface, and the program's own account of them."""
import atexit
import ctypes
import json
import os
import resource
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import recording

recording.begin()

OUT_OF_MEMORY = 207001
HBM = 1

acl = ctypes.CDLL("libascendcl.so")
acl.aclrtMallocAlign32.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t, ctypes.c_int]
acl.aclrtFree.argtypes = [ctypes.c_void_p]
acl.aclrtGetMemInfo.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_size_t)]

account = {"phases": [], "device_peak": 0}
held = {}  # {address: bytes} of all tensors


class OutOfMemory(RuntimeError):
    pass


def set_device(ordinal):
    for status in (acl.aclInit(None), acl.aclrtSetDevice(ordinal)):
        assert status == 0, status


def memory():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    assert acl.aclrtGetMemInfo(HBM, ctypes.byref(free), ctypes.byref(total)) == 0
    account["total_bytes"] = total.value
    return free.value, total.value


class Tensor:
    """Bytes on the device until nobody refers to it any more."""

    def __init__(self, shape, item):
        self.shape, self.item, self.bytes = shape, item, size(shape, item)
        self.address = None
        address = ctypes.c_void_p()
        status = acl.aclrtMallocAlign32(ctypes.byref(address), self.bytes, 1)
        if status == OUT_OF_MEMORY:
            free, total = memory()
            tell(oom={"requested_bytes": self.bytes, "tried_bytes": self.bytes, "free_bytes": free, "total_bytes": total, "at_ns": time.monotonic_ns(),
                      "allocated_bytes": sum(held.values()), "largest_blocks": largest_blocks()})
            raise OutOfMemory("Allocate memory failed: %d bytes, %d of %d free" % (self.bytes, free, total))
        assert status == 0, status
        self.address = address.value
        held[self.address] = self.bytes
        account["device_peak"] = max(account["device_peak"], sum(held.values()))

    def __del__(self):
        if self.address:
            acl.aclrtFree(self.address)
            del held[self.address]


def size(shape, item):
    n = item
    for side in shape:
        n *= side
    return n


def largest_blocks():
    return sorted(held.values(), reverse=True)[:5]


def phase(name, **host):
    """The line before the caller's has done `name`; `host` are the dictionaries of arrays that are alive now."""
    lines = {k: sum(a.nbytes for a in v.values()) for k, v in host.items()}
    account["phases"].append({"name": name, "line": sys._getframe(1).f_lineno - 1, "device_bytes": sum(held.values()), "device_free": memory()[0],
                              "host_bytes": sum(lines.values()), "host": lines})
    time.sleep(0.05)


def tell(**facts):
    print("ACCOUNT " + json.dumps(facts), flush=True)


def report():
    tell(rss_peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10, **account)


atexit.register(report)
