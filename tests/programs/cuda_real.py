"""A program that does something with every kind of CUDA memory, by ctypes, as a real device allows it."""
import ctypes as c

runtime, driver = c.CDLL("libcudart.so.13"), c.CDLL("libcuda.so.1")
P, U, N = c.c_void_p, c.c_uint64, c.c_size_t


def do(library, name, *arguments, want=0):
    status = getattr(library, name)(*arguments)
    assert status == want, "%s returned %d" % (name, status)


class Extent(c.Structure):
    _fields_ = [("width", N), ("height", N), ("depth", N)]


class Pitched(c.Structure):
    _fields_ = [("p", P), ("pitch", N), ("x", N), ("y", N)]


class Channels(c.Structure):
    _fields_ = [(x, c.c_int) for x in "xyzwf"]


class Array3D(c.Structure):
    _fields_ = [("width", N), ("height", N), ("depth", N), ("format", c.c_int), ("channels", c.c_uint), ("flags", c.c_uint)]


class Prop(c.Structure):
    _fields_ = [("type", c.c_int), ("handles", c.c_int), ("where", c.c_int), ("id", c.c_int), ("meta", P), ("flags", c.c_ubyte * 8)]


class PoolProps(c.Structure):
    _fields_ = [("type", c.c_int), ("handles", c.c_int), ("where", c.c_int), ("id", c.c_int), ("meta", P), ("max", N), ("rest", c.c_ubyte * 56)]


def linear():
    p, pitch, q = P(), N(), Pitched()
    do(runtime, "cudaMalloc", c.byref(p), N(1000))
    do(runtime, "cudaFree", p)
    do(runtime, "cudaMallocPitch", c.byref(p), c.byref(pitch), N(100), N(10))
    do(runtime, "cudaFree", p)
    do(runtime, "cudaMalloc3D", c.byref(q), Extent(100, 3, 5))
    do(runtime, "cudaFree", P(q.p))
    do(runtime, "cudaMallocManaged", c.byref(p), N(2000), c.c_uint(1))
    do(runtime, "cudaFree", p)
    do(runtime, "cudaMalloc", c.byref(p), N(1 << 40), want=2)
    do(runtime, "cudaFree", P(0x1234567), want=1)
    do(runtime, "cudaGetLastError", want=1)


def stream_ordered():
    p, s, pool, props = P(), P(), P(), PoolProps(type=1, where=1, id=1)
    do(runtime, "cudaStreamCreate", c.byref(s))
    do(runtime, "cudaMallocAsync", c.byref(p), N(3000), s)
    do(runtime, "cudaFreeAsync", p, s)
    do(runtime, "cudaMallocAsync", c.byref(p), N(3001), s)
    do(runtime, "cudaFree", p)
    do(driver, "cuMemPoolCreate", c.byref(pool), c.byref(props))  # of the other device
    do(runtime, "cudaMallocFromPoolAsync", c.byref(p), N(3002), pool, s)
    do(runtime, "cudaFreeAsync", p, s)
    do(driver, "cuMemPoolTrimTo", pool, N(0))
    do(driver, "cuMemPoolDestroy", pool)


def host():
    p = P()
    do(runtime, "cudaMallocHost", c.byref(p), N(4000))
    do(runtime, "cudaFreeHost", p)
    do(runtime, "cudaHostAlloc", c.byref(p), N(4001), c.c_uint(0))
    do(runtime, "cudaFreeHost", p)
    own = c.create_string_buffer(8192)
    do(runtime, "cudaHostRegister", own, N(8000), c.c_uint(0))
    do(runtime, "cudaHostRegister", own, N(8000), c.c_uint(0), want=712)
    do(runtime, "cudaHostUnregister", own)


def arrays():
    a, d, e = P(), Channels(8, 8, 8, 8, 1), Array3D(16, 8, 4, 0x20, 2, 0)
    do(runtime, "cudaMallocArray", c.byref(a), c.byref(d), N(10), N(20), c.c_uint(0))
    do(runtime, "cudaFreeArray", a)
    do(runtime, "cudaMalloc3DArray", c.byref(a), c.byref(d), Extent(10, 20, 3), c.c_uint(0))
    do(runtime, "cudaFreeArray", a)
    do(runtime, "cudaMallocMipmappedArray", c.byref(a), c.byref(d), Extent(16, 8, 0), c.c_uint(4), c.c_uint(0))
    do(runtime, "cudaFreeMipmappedArray", a)
    do(driver, "cuArray3DCreate_v2", c.byref(a), c.byref(e))
    do(driver, "cuArrayDestroy", a)
    do(driver, "cuMipmappedArrayCreate", c.byref(a), c.byref(e), c.c_uint(3))
    do(driver, "cuMipmappedArrayDestroy", a)


def virtual():
    size = 2 << 20
    d, h, h2 = U(), U(), U()
    do(driver, "cuMemAddressReserve", c.byref(d), N(2 * size), N(0), U(0), U(0))
    for device in (0, 1):
        prop = Prop(type=1, where=1, id=device)
        do(driver, "cuMemCreate", c.byref(h), N(size), c.byref(prop), U(0))
        do(driver, "cuMemMap", U(d.value + device * size), N(size), N(0), h, U(0))
        do(driver, "cuMemRetainAllocationHandle", c.byref(h2), P(d.value + device * size))
        do(driver, "cuMemRelease", h2)
        do(driver, "cuMemUnmap", U(d.value + device * size), N(size))
        do(driver, "cuMemRelease", h)
    do(driver, "cuMemAddressFree", d, N(2 * size))


def reset():
    p = P()
    do(runtime, "cudaSetDevice", 1)
    do(runtime, "cudaMalloc", c.byref(p), N(7000))
    do(runtime, "cudaMalloc", c.byref(p), N(7001))
    do(runtime, "cudaDeviceReset")
    do(runtime, "cudaMalloc", c.byref(p), N(7002))


if __name__ == "__main__":
    for part in (linear, stream_ordered, host, arrays, virtual, reset):
        part()
