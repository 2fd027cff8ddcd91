/* The upper layer: libascendcl.so by itself, or, with -DIMPL, its twins in libruntime.so. */
#include "standin.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../cuda/shared.h"

#ifdef IMPL
#define API(name) name##Impl
#define FN(name, params, args) int API(name) params;
#include "functions.def"
#undef FN
#else
#define API(name) name
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int uses[SD_DEVICES], initialised;

/* ---- devices ---- */

/* The Nth device that ASCEND_RT_VISIBLE_DEVICES leaves, -1 if there is none. */
static int physical_of(int device)
{
	const char *at = getenv("ASCEND_RT_VISIBLE_DEVICES");

	if (!at || !*at)
		return device >= 0 && device < sd_count() ? device : -1;
	for (; device >= 0 && *at >= '0' && *at <= '9'; device--) {
		int id = (int)strtol(at, (char **)&at, 10);
		if (id >= sd_count())
			break;
		if (device == 0)
			return id;
		at += *at == ',';
	}
	return -1;
}

EXPORT int API(aclInit)(const char *config)
{
	(void)config;
	return initialised++ ? ACL_REPEATED : 0;
}

EXPORT int API(aclFinalize)(void)
{
	int status = initialised ? 0 : ACL_REPEATED_END;

	initialised = 0;
	return status;
}

static struct block on(int device, uint64_t bytes)
{
	return (struct block){ .kind = DEVICE, .device = device, .bytes = bytes };
}

EXPORT int API(aclrtSetDevice)(int32_t device)
{
	int physical = physical_of(device), status = standin_begin("aclrtSetDevice");

	if (!status && physical < 0)
		status = ACL_PARAM_INVALID;
	pthread_mutex_lock(&lock);
	if (!status && uses[physical] == 0 && !standin_charge(physical, (int64_t)sd_context()))
		status = ACL_OUT_OF_MEMORY;
	if (!status) {
		uses[physical]++;
		standin_set_device(physical);
	}
	pthread_mutex_unlock(&lock);
	return standin_end("device", on(physical, sd_context()), status);
}

static int reset(const char *name, int32_t device, bool force)
{
	int physical = physical_of(device), status = standin_begin(name);
	bool last = false;

	if (!status && (physical < 0 || uses[physical] == 0))
		status = ACL_NO_CONTEXT;
	if (!status) {
		pthread_mutex_lock(&lock);
		uses[physical] = force ? 0 : uses[physical] - 1;
		last = uses[physical] == 0;
		pthread_mutex_unlock(&lock);
	}
	if (last) {
		standin_drop_device(physical);
		standin_charge(physical, -(int64_t)sd_context());
		standin_set_device(-1);
	}
	return standin_end(last ? "reset" : "device", on(physical, 0), status);
}

EXPORT int API(aclrtResetDevice)(int32_t device) { return reset("aclrtResetDevice", device, false); }
EXPORT int API(aclrtResetDeviceForce)(int32_t device) { return reset("aclrtResetDeviceForce", device, true); }

EXPORT int API(aclrtGetDevice)(int32_t *device)
{
	for (int i = 0; standin_device() >= 0 && i < SD_DEVICES; i++)
		if (physical_of(i) == standin_device()) {
			*device = i;
			return 0;
		}
	return ACL_NO_CONTEXT;
}

EXPORT int API(aclrtGetDeviceCount)(uint32_t *number)
{
	*number = 0;
	while (physical_of((int)*number) >= 0)
		++*number;
	return 0;
}

/* A context is no more than its device here. */
EXPORT int API(aclrtCreateContext)(void **context, int32_t device)
{
	int status = API(aclrtSetDevice)(device);

	*context = status ? NULL : (void *)(uintptr_t)(physical_of(device) + 1);
	return status;
}

EXPORT int API(aclrtDestroyContext)(void *context)
{
	return context ? 0 : ACL_PARAM_INVALID;
}

EXPORT int API(aclrtSetCurrentContext)(void *context)
{
	standin_set_device((int)(uintptr_t)context - 1);
	return 0;
}

EXPORT int API(aclrtGetCurrentContext)(void **context)
{
	*context = (void *)(uintptr_t)(standin_device() + 1);
	return standin_device() < 0 ? ACL_NO_CONTEXT : 0;
}

EXPORT int API(aclrtGetMemInfo)(int kind, size_t *left, size_t *total)
{
	int device = standin_device();
	uint64_t used;

	(void)kind;
	if (device < 0)
		return ACL_NO_CONTEXT;
	used = sd_used(device);
	*total = sd_size(device);
	*left = used < *total ? *total - used : 0;
	return 0;
}

EXPORT int API(aclrtGetLogicDevIdByUserDevId)(int32_t user, int32_t *logic)
{
	*logic = physical_of(user);
	return *logic < 0 ? ACL_PARAM_INVALID : 0;
}

/* As in a container that was given cards from MEMTRACE_STANDIN_FIRST on. */
EXPORT int API(aclrtGetPhyDevIdByLogicDevId)(int32_t logic, int32_t *physical)
{
	const char *first = getenv("MEMTRACE_STANDIN_FIRST");

	*physical = logic + (first ? atoi(first) : 0);
	return 0;
}

/* ---- linear and pinned memory ---- */

/* Through the layer below, which is the truth; what comes out of it is called `kind` here. */
static int allocate(const char *name, enum kind kind, int device, void **out, uint64_t bytes)
{
	struct block b = { .kind = kind, .bytes = bytes, .device = kind == PINNED ? -1 : device };
	int was = standin_device(), status = standin_begin(name);

	if (!status && (!out || !bytes))
		status = ACL_INVALID;
	if (!status && device < 0 && kind != PINNED)
		status = ACL_NO_CONTEXT;
	if (!status) {
		standin_set_device(device);
		status = kind == PINNED ? rtMallocHost(out, bytes, 0) : rtMalloc(out, bytes, 0, 0);
		standin_set_device(was);
	}
	b.key = status ? 0 : (uint64_t)*out;
	if (!status && kind != DEVICE && kind != PINNED) {
		struct block old;
		if (standin_take(1 << DEVICE, b.key, &old))
			standin_add(b);
	}
	return standin_end("alloc", b, status);
}

static int wanted_device(const struct acl_config *config)
{
	for (size_t i = 0; config && i < config->count; i++)
		if (config->attributes[i].which == 2)
			return physical_of((int)config->attributes[i].value.device);
	return standin_device();
}

static int give_back(const char *name, void *p, int kinds)
{
	struct block b = { .key = (uint64_t)p, .device = -1 };
	int status = standin_begin(name);

	if (!status && !standin_find(kinds, b.key, &b))
		status = ACL_PARAM_INVALID;
	if (!status)
		status = b.kind == PINNED ? rtFreeHost(p) : rtFree(p);
	return standin_end("free", b, status);
}

#define LINEAR(name, params, kind, device) \
	EXPORT int API(name) params { return allocate(#name, kind, device, out, bytes); }
#define FREE(name, kinds) \
	EXPORT int API(name)(void *p) { return give_back(#name, p, kinds); }

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
LINEAR(aclrtMalloc, (void **out, size_t bytes, int policy), DEVICE, standin_device())
LINEAR(aclrtMallocAlign32, (void **out, size_t bytes, int policy), DEVICE, standin_device())
LINEAR(aclrtMallocCached, (void **out, size_t bytes, int policy), DEVICE, standin_device())
LINEAR(aclrtMallocWithCfg, (void **out, size_t bytes, int policy, struct acl_config *config), DEVICE, wanted_device(config))
LINEAR(aclrtMallocForTaskScheduler, (void **out, size_t bytes, int policy, struct acl_config *config), DEVICE,
       wanted_device(config))
LINEAR(aclrtMemAllocManaged, (void **out, uint64_t bytes, uint32_t flag), MANAGED, standin_device())
LINEAR(acldvppMalloc, (void **out, size_t bytes), DEVICE, standin_device())
LINEAR(aclrtMallocHost, (void **out, size_t bytes), PINNED, standin_device())
LINEAR(aclrtMallocHostWithCfg, (void **out, uint64_t bytes, struct acl_config *config), PINNED, standin_device())
FREE(aclrtFree, ANY_DEVICE)
FREE(aclrtFreeWithDevSync, ANY_DEVICE)
FREE(acldvppFree, ANY_DEVICE)
FREE(aclrtFreeHost, 1 << PINNED)
FREE(aclrtFreeHostWithDevSync, 1 << PINNED)

/* ---- stream-ordered ---- */

EXPORT int API(aclrtMemPoolCreate)(void **pool, const void *properties)
{
	static uint64_t last = 0x5000;

	*pool = (void *)(last += 16);
	return 0;
}

EXPORT int API(aclrtMemPoolDestroy)(void *pool)
{
	return 0;
}

EXPORT int API(aclrtMemPoolMallocAsync)(void **out, size_t bytes, void *pool, void *stream)
{
	return allocate("aclrtMemPoolMallocAsync", ASYNC, standin_device(), out, bytes);
}

EXPORT int API(aclrtMemPoolFreeAsync)(void *p, void *stream)
{
	struct block b = { .key = (uint64_t)p, .kind = ASYNC, .device = -1 };
	int status = standin_begin("aclrtMemPoolFreeAsync");

	if (!status && !standin_find(1 << ASYNC, b.key, &b))
		status = ACL_PARAM_INVALID;
	if (!status)
		halMemFree(p);
	return standin_end("free", b, status);
}

/* ---- registered ---- */

static int enlist(const char *name, void *p, uint64_t bytes)
{
	struct block b = { .key = (uint64_t)p, .bytes = bytes, .kind = REGISTERED, .device = -1 }, old;
	int status = standin_begin(name);

	if (!status && standin_find(1 << REGISTERED, b.key, &old))
		status = ACL_HOST_REGISTERED;
	if (!status)
		standin_add(b);
	return standin_end("alloc", b, status);
}

EXPORT int API(aclrtHostRegister)(void *p, uint64_t bytes, int type, void **alias)
{
	int status = enlist("aclrtHostRegister", p, bytes);

	if (!status && alias)
		*alias = p;
	return status;
}

EXPORT int API(aclrtHostRegisterV2)(void *p, uint64_t bytes, uint32_t flag)
{
	return enlist("aclrtHostRegisterV2", p, bytes);
}

EXPORT int API(aclrtHostUnregister)(void *p)
{
	struct block b = { .key = (uint64_t)p, .kind = REGISTERED, .device = -1 };
	int status = standin_begin("aclrtHostUnregister");

	if (!status && !standin_take(1 << REGISTERED, b.key, &b))
		status = ACL_HOST_UNREGISTERED;
	return standin_end("free", b, status);
}

/* ---- virtual memory ---- */

static int reserve(const char *name, void **out, uint64_t bytes)
{
	struct block b = { .bytes = bytes, .kind = RESERVED, .device = -1 };
	int status = standin_begin(name);

	if (!status) {
		void *p = sd_map(NULL, bytes, MAP_NORESERVE);
		b.key = (uint64_t)p;
		status = p == MAP_FAILED ? ACL_PARAM_INVALID : 0;
	}
	if (!status) {
		standin_add(b);
		*out = (void *)b.key;
	}
	return standin_end("alloc", b, status);
}

EXPORT int API(aclrtReserveMemAddress)(void **out, size_t bytes, size_t align, void *hint, uint64_t flags)
{
	return reserve("aclrtReserveMemAddress", out, bytes);
}

EXPORT int API(aclrtReserveMemAddressNoUCMemory)(void **out, size_t bytes, size_t align, void *hint, uint64_t flags)
{
	return reserve("aclrtReserveMemAddressNoUCMemory", out, bytes);
}

EXPORT int API(aclrtReleaseMemAddress)(void *p)
{
	struct block b = { .key = (uint64_t)p, .kind = RESERVED, .device = -1 };
	int status = standin_begin("aclrtReleaseMemAddress");

	if (!status && !standin_take(1 << RESERVED, b.key, &b))
		status = ACL_PARAM_INVALID;
	if (!status)
		sd_unmap(p, b.bytes);
	return standin_end("free", b, status);
}

EXPORT int API(aclrtMallocPhysical)(void **handle, size_t bytes, const struct acl_physical *prop, uint64_t flags)
{
	struct rt_physical below = { .side = prop && prop->place == 1 };
	struct block b = { .bytes = bytes, .kind = PHYSICAL, .device = -1 };
	int status = standin_begin("aclrtMallocPhysical");

	if (!status && (!handle || !prop || !bytes))
		status = ACL_INVALID;
	if (!status && below.side) {
		b.device = physical_of((int)prop->place_id);
		below.device = (uint32_t)b.device;
		status = b.device < 0 ? ACL_PARAM_INVALID : 0;
	}
	if (!status)
		status = rtMallocPhysical(handle, bytes, &below, flags);
	b.key = status ? 0 : (uint64_t)*handle;
	return standin_end("alloc", b, status);
}

EXPORT int API(aclrtFreePhysical)(void *handle)
{
	struct block b = { .key = (uint64_t)handle, .kind = PHYSICAL, .device = -1 };
	int status = standin_begin("aclrtFreePhysical"), left;

	standin_find(1 << PHYSICAL | 1 << ALIAS, b.key, &b);
	left = b.references - 1;
	if (!status)
		status = rtFreePhysical(handle);
	return standin_end(left > 0 ? "dereference" : "free", b, status);
}

EXPORT int API(aclrtMapMem)(void *p, size_t bytes, size_t offset, void *handle, uint64_t flags)
{
	struct block b = { .key = (uint64_t)p, .bytes = bytes, .handle = (uint64_t)handle, .kind = MAPPING, .device = -1 }, of;
	int status = standin_begin("aclrtMapMem");

	if (!status && !standin_find(1 << PHYSICAL | 1 << ALIAS, b.handle, &of))
		status = ACL_BAD_HANDLE;
	if (!status) {
		b.device = of.device;
		standin_add(b);
	}
	return standin_end("map", b, status);
}

EXPORT int API(aclrtUnmapMem)(void *p)
{
	struct block b = { .key = (uint64_t)p, .kind = MAPPING, .device = -1 };
	int status = standin_begin("aclrtUnmapMem");

	if (!status && !standin_take(1 << MAPPING, b.key, &b))
		status = ACL_PARAM_INVALID;
	return standin_end("unmap", b, status);
}

EXPORT int API(aclrtMemRetainAllocationHandle)(void *p, void **handle)
{
	struct block b;

	if (!standin_find(1 << MAPPING, (uint64_t)p, &b) || standin_refer(b.handle, 1) < 0)
		return ACL_PARAM_INVALID;
	*handle = (void *)b.handle;
	return 0;
}

EXPORT int API(aclrtMemGetAddressRange)(void *p, void **base, size_t *bytes)
{
	struct block b;

	if (!standin_find(ANY_DEVICE | 1 << ASYNC | 1 << ALIAS, (uint64_t)p, &b))
		return ACL_PARAM_INVALID;
	if (base)
		*base = p;
	if (bytes)
		*bytes = b.bytes;
	return 0;
}

/* ---- shared between processes: the name of a piece of memory says its size ---- */

EXPORT int API(aclrtMemExportToShareableHandle)(void *handle, int type, uint64_t flags, uint64_t *shared)
{
	struct block b;

	if (!standin_find(1 << PHYSICAL, (uint64_t)handle, &b))
		return ACL_BAD_HANDLE;
	*shared = b.bytes;
	return 0;
}

EXPORT int API(aclrtMemExportToShareableHandleV2)(void *handle, uint64_t flags, int type, void *shared)
{
	return API(aclrtMemExportToShareableHandle)(handle, 0, 0, shared);
}

static int import(const char *name, uint64_t bytes, int device, void **handle)
{
	static uint64_t last = 0x6000;
	struct block b = { .key = __atomic_add_fetch(&last, 16, __ATOMIC_RELAXED), .bytes = bytes, .kind = ALIAS, .device = device,
	                   .references = 1 };
	int status = standin_begin(name);

	if (!status) {
		standin_add(b);
		*handle = (void *)b.key;
	}
	return standin_end("alloc", b, status);
}

EXPORT int API(aclrtMemImportFromShareableHandle)(uint64_t shared, int32_t device, void **handle)
{
	return import("aclrtMemImportFromShareableHandle", shared, physical_of(device), handle);
}

EXPORT int API(aclrtMemImportFromShareableHandleV2)(void *shared, int type, uint64_t flags, void **handle)
{
	return import("aclrtMemImportFromShareableHandleV2", *(uint64_t *)shared, standin_device(), handle);
}

EXPORT int API(aclrtIpcMemGetExportKey)(void *p, size_t bytes, char *key, size_t room, uint64_t flags)
{
	snprintf(key, room, "stand-in %d %llx %zu", (int)getpid(), (unsigned long long)(uintptr_t)p, bytes);
	return 0;
}

static struct { char key[65]; void *start; } imports[256];

EXPORT int API(aclrtIpcMemImportByKey)(void **out, const char *key, uint64_t flags)
{
	struct block b = { .kind = ALIAS, .device = standin_device() };
	int status = standin_begin("aclrtIpcMemImportByKey"), i = 0;
	unsigned long long bytes;

	while (i < 255 && imports[i].start)
		i++;
	if (!status && (b.device < 0 || sscanf(key, "stand-in %*d %*x %llu", &bytes) != 1))
		status = ACL_PARAM_INVALID;
	if (!status) {
		b.bytes = bytes;
		*out = sd_map(NULL, bytes, MAP_NORESERVE);
		b.key = (uint64_t)*out;
		imports[i].start = *out;
		snprintf(imports[i].key, sizeof imports[i].key, "%s", key);
		standin_add(b);
	}
	return standin_end("alloc", b, status);
}

EXPORT int API(aclrtIpcMemClose)(const char *key)
{
	struct block b = { .kind = ALIAS, .device = -1 };
	int status = standin_begin("aclrtIpcMemClose"), i = 0;

	while (i < 256 && strcmp(imports[i].key, key))
		i++;
	if (!status && (i == 256 || !standin_take(1 << ALIAS, (uint64_t)imports[i].start, &b)))
		status = ACL_PARAM_INVALID;
	if (!status) {
		sd_unmap(imports[i].start, b.bytes);
		memset(&imports[i], 0, sizeof imports[i]);
	}
	return standin_end("free", b, status);
}

EXPORT int API(aclrtMemcpy)(void *to, size_t room, const void *from, size_t bytes, int kind)
{
	if (bytes > room)
		return ACL_PARAM_INVALID;
	memmove(to, from, bytes);
	return 0;
}
#pragma GCC diagnostic pop

#ifndef IMPL
EXPORT const char *aclrtGetSocName(void)
{
	return "Ascend910B2";
}
#endif
