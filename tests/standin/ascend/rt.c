/* The middle layer: libruntime.so. */
#include "standin.h"

enum { HUGE_FROM = 1 << 20 };

static int status_of(int hal)
{
	return hal == 0 ? 0 : hal == HAL_OUT_OF_MEMORY ? ACL_OUT_OF_MEMORY : 507899;
}

/* Huge pages first, if it is worth it; what is left of them says nothing of ordinary ones. */
static int allocate(const char *name, void **out, uint64_t bytes, uint64_t space)
{
	int device = space == HAL_HOST ? 0 : standin_device();
	uint64_t flag = space << HAL_SPACE_SHIFT | (uint64_t)(unsigned)device;
	struct block b = { .bytes = bytes, .kind = space == HAL_HOST ? PINNED : DEVICE, .device = space == HAL_HOST ? -1 : device };
	int status = standin_begin(name), hal = -1;

	if (!status && device < 0)
		status = ACL_NO_CONTEXT;
	if (!status && space != HAL_HOST && bytes > HUGE_FROM)
		hal = halMemAlloc(out, bytes, flag | HAL_HUGE);
	if (!status && hal)
		status = status_of(halMemAlloc(out, bytes, flag));
	b.key = status ? 0 : (uint64_t)*out;
	return standin_end("alloc", b, status);
}

static int give_back(const char *name, void *p, int kinds)
{
	struct block b = { .key = (uint64_t)p, .device = -1 };
	int status = standin_begin(name);

	if (!status && !standin_find(kinds, b.key, &b))
		status = ACL_PARAM_INVALID;
	if (!status)
		status = status_of(halMemFree(p));
	return standin_end("free", b, status);
}

EXPORT int rtMalloc(void **out, uint64_t bytes, uint32_t type, uint16_t module)
{
	(void)type, (void)module;
	return allocate("rtMalloc", out, bytes, HAL_SVM);
}

EXPORT int rtDvppMalloc(void **out, uint64_t bytes, uint16_t module)
{
	(void)module;
	return allocate("rtDvppMalloc", out, bytes, HAL_SVM);
}

EXPORT int rtMallocHost(void **out, uint64_t bytes, uint16_t module)
{
	(void)module;
	return allocate("rtMallocHost", out, bytes, HAL_HOST);
}

EXPORT int rtFree(void *p) { return give_back("rtFree", p, ANY_DEVICE); }
EXPORT int rtFreeWithDevSync(void *p) { return give_back("rtFreeWithDevSync", p, ANY_DEVICE); }
EXPORT int rtDvppFree(void *p) { return give_back("rtDvppFree", p, ANY_DEVICE); }
EXPORT int rtFreeHost(void *p) { return give_back("rtFreeHost", p, 1 << PINNED); }
EXPORT int rtFreeHostWithDevSync(void *p) { return give_back("rtFreeHostWithDevSync", p, 1 << PINNED); }

EXPORT int rtMallocPhysical(void **handle, size_t bytes, struct rt_physical *prop, uint64_t flags)
{
	static uint64_t last = 0x7000;
	struct block b = { .bytes = bytes, .kind = PHYSICAL, .device = prop->side ? (int)prop->device : -1, .references = 1 };
	int status = standin_begin("rtMallocPhysical");

	(void)flags;
	if (!status && !standin_charge(b.device, (int64_t)bytes))
		status = ACL_OUT_OF_MEMORY;
	if (!status) {
		b.key = __atomic_add_fetch(&last, 16, __ATOMIC_RELAXED);
		standin_add(b);
		*handle = (void *)b.key;
	}
	return standin_end("alloc", b, status);
}

/* Only the last reference gives memory back. */
EXPORT int rtFreePhysical(void *handle)
{
	struct block b = { .key = (uint64_t)handle, .device = -1, .kind = PHYSICAL };
	int status = standin_begin("rtFreePhysical"), references = standin_refer(b.key, status ? 0 : -1);

	if (!status && references < 0)
		status = ACL_BAD_HANDLE;
	if (!status && references > 0) {
		standin_find(1 << PHYSICAL | 1 << ALIAS, b.key, &b);
		return standin_end("dereference", b, 0);
	}
	if (!status && standin_take(1 << PHYSICAL | 1 << ALIAS, b.key, &b) && b.kind == PHYSICAL)
		standin_charge(b.device, -(int64_t)b.bytes);
	return standin_end("free", b, status);
}
