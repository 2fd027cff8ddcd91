/*
 * libze_loader.so.1 with every function of shim/hooks/hooks_ze.def, made from that table: they hand out addresses, one after the other,
 * and fail when told to. Two drivers: one with a GPU and a processor for networks, one with a GPU that has parts.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "shim/device/ze_abi.h"

#define API __attribute__((visibility("default")))

static int status_now;
static uint64_t next = 0x10000;
static struct { uint64_t p; int type; ze_device_handle_t device; } blocks[64];

API void fake_set(int status) { status_now = status; }
static uint64_t fake_next(void) { return __atomic_fetch_add(&next, 0x10000, __ATOMIC_RELAXED); }
static uint64_t note(int type, ze_device_handle_t d)
{
	uint64_t p = fake_next();
	unsigned i = p / 0x10000 % 64;
	blocks[i].p = p, blocks[i].type = type, blocks[i].device = d;
	return p;
}

/* ---- questions ---- */
#define DEVICE(n) ((ze_device_handle_t)(uintptr_t)(n))
API ze_result_t zeDriverGet(uint32_t *n, ze_driver_handle_t *d)
{
	for (uint32_t i = 0; i < *n && i < 2; i++)
		d[i] = (ze_driver_handle_t)(uintptr_t)(i + 1);
	*n = 2;
	return 0;
}
API ze_result_t zeDeviceGet(ze_driver_handle_t driver, uint32_t *n, ze_device_handle_t *d)
{
	if ((uintptr_t)driver == 1)
		d[0] = DEVICE(0x100), d[1] = DEVICE(0x180), *n = 2;
	else
		d[0] = DEVICE(0x200), *n = 1;
	return 0;
}
API ze_result_t zeDeviceGetRootDevice(ze_device_handle_t d, ze_device_handle_t *root) { *root = d == DEVICE(0x201) ? DEVICE(0x200) : NULL; return 0; }
API ze_result_t zeDeviceGetProperties(ze_device_handle_t d, ze_device_properties_t *p)
{
	if (p->stype != 3)
		return 0x78000004;
	p->type = d == DEVICE(0x180) ? 5 : 1;
	for (int i = 0; i < 16; i++)
		p->uuid.id[i] = (uint8_t)((uintptr_t)d / 16 + i);
	snprintf(p->name, sizeof(p->name), "Fake Max %lx", (unsigned long)(uintptr_t)d);
	return 0;
}
API ze_result_t zeDeviceGetMemoryProperties(ze_device_handle_t d, uint32_t *n, ze_device_memory_properties_t *p)
{
	if (*n < 2 || p->stype != 7)
		return 0x78000004;
	*n = 2;
	p[0].totalSize = p[1].totalSize = (uint64_t)(uintptr_t)d << 20;
	return 0;
}
API ze_result_t zeMemGetAddressRange(ze_context_handle_t c, const void *p, void **b, size_t *n) { (void)c; *b = (void *)p; *n = 4096; return 0; }
API ze_result_t zeMemGetAllocProperties(ze_context_handle_t c, const void *p, ze_memory_allocation_properties_t *to, ze_device_handle_t *d)
{
	unsigned i = (uintptr_t)p / 0x10000 % 64;
	(void)c;
	if (blocks[i].p != (uintptr_t)p || to->stype != 0x17)
		return 0x78000004;
	to->type = blocks[i].type;
	*d = blocks[i].device;
	return 0;
}

/* The loader's functions call the driver's, which have the same names: here each allocates and frees on its way. */
static void enter(void)
{
	static ze_result_t (*allocate)(ze_context_handle_t, const void *, size_t, size_t, ze_device_handle_t, void **);
	static ze_result_t (*release)(ze_context_handle_t, void *);
	static __thread int inside;
	void *p;

	if (inside++ == 0) {
		if (!allocate) {
			void *self = dlopen("libze_loader.so.1", RTLD_LAZY | RTLD_NOLOAD);
			release = (__typeof__(release))(uintptr_t)dlsym(self, "zeMemFree");
			allocate = (__typeof__(allocate))(uintptr_t)dlsym(self, "zeMemAllocDevice");
		}
		if (allocate(NULL, NULL, 7, 0, DEVICE(0x100), &p) == 0)
			release(NULL, p);
	}
	inside--;
}

/* ---- the table ---- */

enum { TYPE_DEVICE = 2, TYPE_MANAGED = 3, TYPE_PINNED = 1, TYPE_RESERVED = 0, TYPE_PHYSICAL = 0, TYPE_ALIAS = 2 };
#define place_of(d, how) NULL
#define BODY(name, params, address) \
	API ze_result_t name params { \
		int result = status_now; \
		enter(); \
		if (!result) { address; } \
		return (ze_result_t)result; \
	}
#define OUT(class, name, params, args, out, bytes, device) \
	BODY(name, params, out = (__typeof__(out))(uintptr_t)note(TYPE_##class, device))
#define HAND(name, params, args) BODY(name, params, )
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "shim/hooks/hooks_ze.def"
