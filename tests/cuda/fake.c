/*
 * Libraries with every function of shim/hooks/hooks_cuda.def, made from that table: they hand out addresses, one after the other, and
 * fail when told to. -DDRIVER makes libcuda.so.1, otherwise a libcudart whose functions enter the driver as the vendor's do: by
 * cuGetProcAddress, which it finds with dlsym.
 *
 * What was called is written to the file that FAKE_LOG names: library (NAME), function, address.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/device/cuda_abi.h"

#ifndef NAME
#define NAME "libcuda.so.1"
#endif
#define API __attribute__((visibility("default")))
typedef CUresult status_CUDA;
typedef cudaError_t status_CUDART;

static void say(const char *name, uint64_t address)
{
	static int fd = -2;
	const char *path;

	if (fd == -2)
		fd = (path = getenv("FAKE_LOG")) ? open(path, O_WRONLY | O_APPEND | O_CREAT, 0600) : -1;
	if (fd >= 0)
		dprintf(fd, "%s %s %#llx\n", NAME, name, (unsigned long long)address);
}

#ifdef DRIVER

static int status_now, device_now, primary_alive;
static uint64_t next = 0x10000; /* fits the 32 bits of the oldest functions */

API void fake_set(int status, int device, int alive) { status_now = status; device_now = device; primary_alive = alive; }
API int fake_status(void) { return status_now; }
API uint64_t fake_next(void) { return __atomic_fetch_add(&next, 0x10000, __ATOMIC_RELAXED); }

/* ---- questions ---- */
API CUresult cuCtxGetDevice(CUdevice *d) { *d = device_now; return device_now < 0 ? 201 : status_now == 4 ? 4 : 0; }
API CUresult cuCtxPushCurrent_v2(CUcontext c) { (void)c; return 0; }
API CUresult cuCtxPopCurrent_v2(CUcontext *c) { (void)c; return 0; }
API CUresult cuDeviceGetName(char *name, int n, CUdevice d) { snprintf(name, (size_t)n, "Fake %d", d); return 0; }
API CUresult cuDeviceTotalMem_v2(size_t *n, CUdevice d) { *n = (size_t)(d + 1) << 30; return 0; }
API CUresult cuDevicePrimaryCtxGetState(CUdevice d, unsigned *f, int *a) { (void)d; *f = 0; *a = primary_alive; return 0; }
API CUresult cuMemGetInfo_v2(size_t *f, size_t *t) { *f = 12345678; *t = (size_t)(device_now + 1) << 30; return 0; }
API CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *p, CUmemGenericAllocationHandle h)
{
	(void)h;
	p->location.type = 1;
	p->location.id = device_now;
	return 0;
}
API CUresult cuMemGetAddressRange_v2(CUdeviceptr *b, size_t *n, CUdeviceptr p) { *b = p; *n = 4096; return 0; }
API CUresult cuPointerGetAttribute(void *to, int what, CUdeviceptr p) { (void)p; *(int *)to = device_now; return what == 9 ? 0 : 1; }
API CUresult cuStreamIsCapturing(CUstream s, int *c) { *c = (uintptr_t)s >> 8 == 0xca; return 0; }
API CUresult cuStreamGetCaptureInfo_v2(CUstream s, int *c, cuuint64_t *id, CUgraph *g, const CUgraphNode **d, size_t *n)
{
	(void)g, (void)d, (void)n;
	*id = 1ull << 32 | 42;
	return cuStreamIsCapturing(s, c);
}
static void uuid(CUuuid *u, CUdevice d, int part) { for (int i = 0; i < 16; i++) u->bytes[i] = (char)(16 * d + i + part); }
/* Device 1 is an instance (MIG): its own identity differs from the whole device's. */
API CUresult cuDeviceGetUuid(CUuuid *u, CUdevice d) { uuid(u, d, 0); return 0; }
API CUresult cuDeviceGetUuid_v2(CUuuid *u, CUdevice d) { uuid(u, d, d == 1 ? 100 : 0); return 0; }

#define CUDART(...)
#define CUDA(...) __VA_ARGS__
#define ENTER()
#define STATUS status_now
#define NEXT fake_next()

#else

#define CUDA(...)
#define CUDART(...) __VA_ARGS__

static void *driver;

static void *get(const char *name, int version)
{
	static CUresult (*proc)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);
	void *p = NULL;

	if (!driver)
		driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
	if (!proc)
		proc = (__typeof__(proc))(uintptr_t)dlsym(driver, "cuGetProcAddress_v2");
	return proc && proc(name, &p, version, 0, NULL) == 0 ? p : NULL;
}

/* Every function allocates and frees in the driver on its way: none of it is an event. */
static void enter(void)
{
	static CUresult (*allocate)(CUdeviceptr *, size_t), (*release)(CUdeviceptr);
	CUdeviceptr p;

	if (!allocate) {
		allocate = (__typeof__(allocate))(uintptr_t)get("cuMemAlloc", 12000);
		release = (__typeof__(release))(uintptr_t)get("cuMemFree", 12000);
	}
	if (allocate && allocate(&p, 7) == 0)
		release(p);
}

static int status(void)
{
	int (*f)(void) = (int (*)(void))(uintptr_t)(get("cuInit", 12000), dlsym(driver, "fake_status"));

	return f ? f() : 0;
}

static uint64_t next(void)
{
	uint64_t (*f)(void) = (uint64_t(*)(void))(uintptr_t)(get("cuInit", 12000), dlsym(driver, "fake_next"));

	return f ? f() : 0;
}

#define ENTER() enter()
#define STATUS status()
#define NEXT next()

#endif

/* ---- the table ---- */

#define BODY(library, name, params, address)                                  \
	library(API status_##library name params {                            \
		int result = STATUS;                                          \
		if (result < 0)                                               \
			raise(SIGALRM);                                       \
		ENTER();                                                      \
		if (!result) { address; }                                     \
		return (status_##library)result;                              \
	})
#define OUT(library, class, name, params, args, out, bytes, stream) \
	BODY(library, name, params, out = (__typeof__(out))(uintptr_t)NEXT; say(#name, (uintptr_t)(out)))
#define DROP(library, class, name, params, args, out, stream) BODY(library, name, params, say(#name, (uintptr_t)(out)))
#define HAND(library, name, params, args) HAND_##name(library, name, params)
#define BARE(library, name) BODY(library, name, (void), say(#name, 0))
#define PLAIN(library, name, params) BODY(library, name, params, say(#name, 0))
#define HAND_cuMemCreate(library, name, params) BODY(library, name, params, *h = NEXT; say(#name, *h))
#define HAND_cuMemMap(library, name, params) BODY(library, name, params, say(#name, p))
#define HAND_cuMemUnmap HAND_cuMemMap
#define HAND_cudaMemPoolCreate(library, name, params) BODY(library, name, params, *pool = (cudaMemPool_t)(uintptr_t)NEXT; say(#name, 0))
#define HAND_cudaMemPoolDestroy PLAIN
#define HAND_cudaMemPoolTrimTo PLAIN
#define HAND_cudaDeviceGraphMemTrim PLAIN
#define HAND_cuMemPoolCreate HAND_cudaMemPoolCreate
#define HAND_cuMemPoolDestroy PLAIN
#define HAND_cuMemPoolTrimTo PLAIN
#define HAND_cuDeviceGraphMemTrim PLAIN
#define HAND_cuCtxDestroy PLAIN
#define HAND_cuCtxDestroy_v2 PLAIN
#define HAND_cuDevicePrimaryCtxReset PLAIN
#define HAND_cuDevicePrimaryCtxReset_v2 PLAIN
#define HAND_cuDevicePrimaryCtxRelease PLAIN
#define HAND_cuDevicePrimaryCtxRelease_v2 PLAIN
#define NONE(library, name, params)
#define HAND_cuGetProcAddress NONE
#define HAND_cuGetProcAddress_v2 NONE
#define HAND_cudaGetDriverEntryPoint NONE
#define HAND_cudaGetDriverEntryPoint_ptsz NONE
#define HAND_cudaGetDriverEntryPointByVersion NONE
#define HAND_cudaGetDriverEntryPointByVersion_ptsz NONE
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "shim/hooks/hooks_cuda.def"

/* ---- functions by name ---- */

#ifdef DRIVER

API CUresult cuGetProcAddress(const char *name, void **p, int version, cuuint64_t flags);
API CUresult cuGetProcAddress_v2(const char *name, void **p, int version, cuuint64_t flags, CUdriverProcAddressQueryResult *found);

struct entry { const char *name; void *function; };
static const struct entry entries[] = {
#define HAND(library, name, params, args) library({ #name, (void *)name },)
#include "shim/hooks/hooks_cuda.def"
	{ "cuInit", (void *)fake_set },
};
/* The versions as the vendor's header cudaTypedefs.h has them; not those of the table that is tested. */
static const struct { const char *base, *name; int from; } versions[] = {
	{ "cuMemAlloc", "cuMemAlloc_v2", 3020 }, { "cuMemFree", "cuMemFree_v2", 3020 }, { "cuMemAllocPitch", "cuMemAllocPitch_v2", 3020 },
	{ "cuMemAllocHost", "cuMemAllocHost_v2", 3020 }, { "cuMemHostRegister", "cuMemHostRegister_v2", 6050 },
	{ "cuArrayCreate", "cuArrayCreate_v2", 3020 }, { "cuArray3DCreate", "cuArray3DCreate_v2", 3020 },
	{ "cuIpcOpenMemHandle", "cuIpcOpenMemHandle_v2", 11000 }, { "cuCtxDestroy", "cuCtxDestroy_v2", 4000 },
	{ "cuDevicePrimaryCtxReset", "cuDevicePrimaryCtxReset_v2", 11000 },
	{ "cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxRelease_v2", 11000 }, { "cuGetProcAddress", "cuGetProcAddress_v2", 12000 },
};

static void *find(const char *name)
{
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
		if (!strcmp(entries[i].name, name))
			return entries[i].function;
	return NULL;
}

CUresult cuGetProcAddress_v2(const char *name, void **p, int version, cuuint64_t flags, CUdriverProcAddressQueryResult *found)
{
	char twin[80];

	if (found)
		*found = 0;
	if (!*name && !version) /* what some programs ask to see whether it works */
		return 1;
	snprintf(twin, sizeof(twin), "%s_ptsz", name);
	if (flags & 2 && (*p = find(twin)))
		return 0;
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
		if (!strcmp(versions[i].base, name) && version >= versions[i].from)
			name = versions[i].name;
	*p = find(name);
	return *p ? 0 : 500;
}

CUresult cuGetProcAddress(const char *name, void **p, int version, cuuint64_t flags)
{
	return cuGetProcAddress_v2(name, p, version, flags, NULL);
}

#else

typedef enum cudaDriverEntryPointQueryResult query;
#define ENTRY_POINT(name_, params, version, flags)                                                                       \
	API cudaError_t name_ params                                                                                     \
	{                                                                                                                \
		static CUresult (*proc)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);       \
		if (found)                                                                                               \
			*found = cudaDriverEntryPointSuccess;                                                            \
		if (!proc && get("cuInit", 12000))                                                                       \
			proc = (__typeof__(proc))(uintptr_t)dlsym(driver, "cuGetProcAddress_v2");                        \
		return (cudaError_t)proc(name, p, (int)(version), flags, NULL);                                          \
	}
ENTRY_POINT(cudaGetDriverEntryPoint, (const char *name, void **p, unsigned long long flags, query *found), 12000, flags)
ENTRY_POINT(cudaGetDriverEntryPoint_ptsz, (const char *name, void **p, unsigned long long flags, query *found), 12000, flags | 2)
ENTRY_POINT(cudaGetDriverEntryPointByVersion,
            (const char *name, void **p, unsigned version, unsigned long long flags, query *found), version, flags)
ENTRY_POINT(cudaGetDriverEntryPointByVersion_ptsz,
            (const char *name, void **p, unsigned version, unsigned long long flags, query *found), version, flags | 2)

#endif
