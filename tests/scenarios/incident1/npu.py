"""Tensors on an Ascend device through its C interface, and the program's own account of them."""
import atexit
import ctypes
import json
import sys
import time

OUT_OF_MEMORY = 207001
HBM = 1

acl = ctypes.CDLL("libascendcl.so")
acl.aclrtMallocAlign32.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t, ctypes.c_int]
acl.aclrtFree.argtypes = [ctypes.c_void_p]
acl.aclrtGetMemInfo.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_size_t)]

account = {"start": time.clock_gettime(time.CLOCK_MONOTONIC), "phases": [], "failure": None, "device_peak": 0}
held = 0  # bytes of all tensors


class OutOfMemory(RuntimeError):
    pass


def set_device(ordinal):
    for status in (acl.aclInit(None), acl.aclrtSetDevice(ordinal)):
        assert status == 0, status


def memory():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    assert acl.aclrtGetMemInfo(HBM, ctypes.byref(free), ctypes.byref(total)) == 0
    return free.value, total.value


class Tensor:
    """Bytes on the device until nobody refers to it any more."""

    def __init__(self, shape, item):
        global held
        self.shape, self.item, self.bytes = shape, item, size(shape, item)
        self.address = None
        address = ctypes.c_void_p()
        status = acl.aclrtMallocAlign32(ctypes.byref(address), self.bytes, 1)
        if status == OUT_OF_MEMORY:
            free, total = memory()
            account["failure"] = {"bytes": self.bytes, "free": free, "total": total, "held": held, "shape": list(shape)}
            raise OutOfMemory("Allocate memory failed: %d bytes, %d of %d free" % (self.bytes, free, total))
        assert status == 0, status
        self.address = address.value
        held += self.bytes
        account["device_peak"] = max(account["device_peak"], held)

    def __del__(self):
        global held
        if self.address:
            acl.aclrtFree(self.address)
            held -= self.bytes


def size(shape, item):
    n = item
    for side in shape:
        n *= side
    return n


def phase(name, **host):
    """The line before the caller's has done `name`; `host` are the dictionaries of arrays that are alive now."""
    lines = {k: sum(a.nbytes for a in v.values()) for k, v in host.items()}
    account["phases"].append({"name": name, "line": sys._getframe(1).f_lineno - 1, "device_bytes": held, "device_free": memory()[0],
                              "host_bytes": sum(lines.values()), "host": lines,
                              "s": time.clock_gettime(time.CLOCK_MONOTONIC) - account["start"]})
    time.sleep(0.05)


def report():
    print("ACCOUNT " + json.dumps(account))


atexit.register(report)
