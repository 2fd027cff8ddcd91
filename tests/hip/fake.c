/*
 * libamdhip64.so with every function of shim/hooks/hooks_hip.def, made from that table: they hand out addresses, one after the other, and
 * fail when told to. -DMAJOR=N is the major version, which says what the last error is: before 7 the status of the last call, from then
 * on the last status that was an error.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "shim/device/hip_abi.h"

#define API __attribute__((visibility("default")))

static int status_now, device_now;
static uint64_t next = 0x10000;
static __thread int last;

API void fake_set(int status, int device) { status_now = status; device_now = device; }
static uint64_t fake_next(void) { return __atomic_fetch_add(&next, 0x10000, __ATOMIC_RELAXED); }

/* What every call ends with. */
static hipError_t end(int status)
{
	if (status || MAJOR < 7)
		last = status;
	return (hipError_t)status;
}

API hipError_t hipPeekAtLastError(void) { return (hipError_t)last; }
API hipError_t hipGetLastError(void) { int was = last; last = 0; return (hipError_t)was; }

/* ---- questions ---- */
API hipError_t hipGetDevice(int *d) { *d = device_now; return end(device_now < 0 ? 100 : 0); }
API hipError_t hipRuntimeGetVersion(int *v) { *v = MAJOR * 10000000 + 151802; return end(0); }
API hipError_t hipDeviceGetName(char *name, int n, hipDevice_t d) { snprintf(name, (size_t)n, "Fake Instinct %d", d); return end(0); }
API hipError_t hipDeviceTotalMem(size_t *n, hipDevice_t d) { *n = (size_t)(d + 1) << 30; return end(0); }
API hipError_t hipMemGetInfo(size_t *f, size_t *t) { *f = 12345678; *t = (size_t)(device_now + 1) << 30; return end(0); }
API hipError_t hipMemGetAllocationPropertiesFromHandle(hipMemAllocationProp *p, hipMemGenericAllocationHandle_t h)
{
	(void)h;
	p->location.type = 1;
	p->location.id = device_now;
	return end(0);
}
API hipError_t hipMemGetAddressRange(hipDeviceptr_t *b, size_t *n, hipDeviceptr_t p) { *b = p; *n = 4096; return end(0); }
API hipError_t hipPointerGetAttribute(void *to, int what, hipDeviceptr_t p) { (void)p; *(int *)to = device_now; return end(what == 9 ? 0 : 1); }
API hipError_t hipStreamIsCapturing(hipStream_t s, int *c) { *c = (uintptr_t)s >> 8 == 0xca; return end(0); }
API hipError_t hipStreamGetCaptureInfo(hipStream_t s, int *c, unsigned long long *id) { *id = 1ull << 32 | 42; return hipStreamIsCapturing(s, c); }
API hipError_t hipDeviceGetPCIBusId(char *to, int n, int d)
{
	snprintf(to, (size_t)n, "%04x:%02x:%02x.%x", 0, 3 + d, 0, 0);
	return end(0);
}
/* Device 1 has no number of its own. */
API hipError_t hipDeviceGetUuid(hipUUID *u, hipDevice_t d)
{
	memcpy(u->bytes, d ? "XX\0\0\0\0\0\0\0\0\0\0\0\0\0" : "5d6c5fcd8f3a07c1", 16);
	return end(0);
}

/* Every function allocates and frees on its way, as a library above HIP would: none of it is an event. */
static void enter(void)
{
	static hipError_t (*allocate)(void **, size_t), (*release)(void *);
	static __thread int inside;
	void *p;

	if (inside++ == 0) {
		if (!allocate) {
			void *self = dlopen(NAME, RTLD_LAZY | RTLD_NOLOAD);
			release = (__typeof__(release))(uintptr_t)dlsym(self, "hipFree");
			allocate = (__typeof__(allocate))(uintptr_t)dlsym(self, "hipMalloc");
		}
		if (allocate(&p, 7) == 0)
			release(p);
	}
	inside--;
}

/* ---- the table ---- */

#define BODY(name, params, address) \
	API hipError_t name params { \
		int result = status_now; \
		enter(); \
		if (!result) { address; } \
		return end(result); \
	}
#define OUT(since, class, name, params, args, out, bytes, stream) BODY(name, params, out = (__typeof__(out))(uintptr_t)fake_next())
#define DROP(since, class, name, params, args, out, stream) BODY(name, params, )
#define HAND(since, name, params, args) HAND_##name(name, params)
#define BARE(since, name) BODY(name, (void), )
#define PLAIN(name, params) BODY(name, params, )
#define HAND_hipMemCreate(name, params) BODY(name, params, *h = (__typeof__(*h))(uintptr_t)fake_next())
#define HAND_hipMemMap PLAIN
#define HAND_hipMemUnmap PLAIN
#define HAND_hipMemPoolCreate(name, params) BODY(name, params, *pool = (hipMemPool_t)(uintptr_t)fake_next())
#define HAND_hipMemPoolDestroy PLAIN
#define HAND_hipMemPoolTrimTo PLAIN
#define HAND_hipDeviceGraphMemTrim PLAIN
#define NONE(name, params)
#define HAND_hipGetProcAddress NONE
#define HAND_hipGetDriverEntryPoint NONE
#define HAND_hipGetDriverEntryPoint_spt NONE
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "shim/hooks/hooks_hip.def"

/* ---- functions by name ---- */

API hipError_t hipGetProcAddress(const char *name, void **p, int version, uint64_t flags, hipDriverProcAddressQueryResult *found);
API hipError_t hipGetDriverEntryPoint(const char *name, void **p, unsigned long long flags, hipDriverEntryPointQueryResult *found);
API hipError_t hipGetDriverEntryPoint_spt(const char *name, void **p, unsigned long long flags, hipDriverEntryPointQueryResult *found);

static const struct { const char *name; void *function; } entries[] = {
#define HAND(since, name, params, args) { #name, (void *)name },
#include "shim/hooks/hooks_hip.def"
};

hipError_t hipGetProcAddress(const char *name, void **p, int version, uint64_t flags, hipDriverProcAddressQueryResult *found)
{
	*p = NULL;
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
		if (!strcmp(entries[i].name, name))
			*p = entries[i].function;
	if (found)
		*found = !*p;
	return end(*p ? 0 : 500);
}

hipError_t hipGetDriverEntryPoint(const char *name, void **p, unsigned long long flags, hipDriverEntryPointQueryResult *found)
{
	return hipGetProcAddress(name, p, 70100000, flags, found);
}

hipError_t hipGetDriverEntryPoint_spt(const char *name, void **p, unsigned long long flags, hipDriverEntryPointQueryResult *found)
{
	return hipGetProcAddress(name, p, 70100000, flags, found);
}
