"""Virtual memory: handles are created and never mapped; they take the device's memory all the same. No framework, only the driver."""
# standin: DEVICES=2G CONTEXT=64M
import ctypes
import json

MIB = 1 << 20
CREATED, MAPPED, SIZE = 60, 10, 20 * MIB


class Properties(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("location_type", ctypes.c_int), ("location", ctypes.c_int),
                ("metadata", ctypes.c_void_p), ("flags", ctypes.c_ubyte * 8)]


def tell(**facts):
    print("ACCOUNT " + json.dumps(facts), flush=True)


def main():
    getattr(ctypes.CDLL(None), "memtrace_start", lambda: None)()
    cuda = ctypes.CDLL("libcuda.so.1")
    context, address = ctypes.c_void_p(), ctypes.c_ulonglong()
    size = ctypes.c_size_t

    def good(status):
        if status:
            raise SystemExit("driver: %d" % status)

    good(cuda.cuInit(0))
    good(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    good(cuda.cuCtxSetCurrent(context))
    good(cuda.cuMemAddressReserve(ctypes.byref(address), size(CREATED * SIZE), size(0), ctypes.c_ulonglong(0), ctypes.c_ulonglong(0)))
    handles = [ctypes.c_ulonglong() for _ in range(CREATED)]
    for handle in handles:
        good(cuda.cuMemCreate(ctypes.byref(handle), size(SIZE), ctypes.byref(Properties(1, 0, 1, 0)), ctypes.c_ulonglong(0)))
    for i, handle in enumerate(handles[:MAPPED]):
        good(cuda.cuMemMap(ctypes.c_ulonglong(address.value + i * SIZE), size(SIZE), size(0), handle, ctypes.c_ulonglong(0)))
    free, total = size(), size()
    good(cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)))
    request = 1024 * MIB
    status = cuda.cuMemAlloc_v2(ctypes.byref(ctypes.c_ulonglong()), size(request))
    tell(verdict="outside_pool", created=CREATED, created_bytes=CREATED * SIZE, mapped=MAPPED, mapped_bytes=MAPPED * SIZE,
         unmapped_bytes=(CREATED - MAPPED) * SIZE, status=status,
         oom={"device": 0, "requested_bytes": request, "free_bytes": free.value, "total_bytes": total.value, "outcome": "caught"})


main()
