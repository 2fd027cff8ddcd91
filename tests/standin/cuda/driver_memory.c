/* The stand-in libcuda.so.1, second part: linear, managed, stream-ordered, pinned and registered memory, arrays, IPC. */
#include "memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct CUmemPoolHandle_st {
	int device;
	bool imported;
	uint64_t threshold, used, reserved, used_high, reserved_high;
	CUmemoryPool next;
};

struct CUarray_st {
	uint64_t bytes;
	int device;
	CUcontext context;
	CUDA_ARRAY3D_DESCRIPTOR descriptor;
	struct CUmipmappedArray_st *parent; /* levels are part of it */
	CUarray next;
};

struct CUmipmappedArray_st {
	struct CUarray_st whole;
	unsigned count;
	struct CUarray_st *levels;
};

static struct CUmemPoolHandle_st defaults[SD_DEVICES];
static CUmemoryPool chosen[SD_DEVICES]; /* cuDeviceSetMemPool */
static CUmemoryPool pools;		/* the made ones */
static CUarray arrays;

/* ---- linear ---- */

/* Allocates BYTES of a kind that is charged to its device at once. */
static CUresult linear_new(uint64_t *address, uint64_t bytes, int device, enum kind kind)
{
	uint64_t alignment = bytes < 2 << 20 ? 512 : 2 << 20, size = round_up(bytes, alignment);
	if (!address || !bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (device < 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (size < bytes || !charge(device, bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	uint64_t base = space_find(size, alignment);
	if (!base || !block_add(base, size, bytes, device, kind)) {
		refund(device, bytes);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*address = base;
	return CUDA_SUCCESS;
}

static CUresult allocate(const char *function, CUdeviceptr *address, uint64_t bytes, enum kind kind)
{
	ALIVE();
	uint64_t base = 0;
	driver_lock();
	int device = current() ? current()->device : -1;
	CUresult status = linear_new(&base, bytes, device, kind);
	note(status == CUDA_SUCCESS ? "alloc" : "fail", function, kind_names[kind], device, base, bytes, 0, status);
	driver_unlock();
	if (status == CUDA_SUCCESS)
		*address = base;
	return status;
}

API CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
	return allocate("cuMemAlloc_v2", address, bytes, LINEAR);
}

API CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned flags)
{
	return allocate("cuMemAllocManaged", address, bytes, MANAGED);
}

API CUresult cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height, unsigned element)
{
	*pitch = round_up(width, 512);
	return allocate("cuMemAllocPitch_v2", address, *pitch * height, LINEAR);
}

static void pool_give_back(CUmemoryPool pool, uint64_t bytes);

/* Frees what any of the linear kinds allocated. */
void linear_free(const char *function, struct block *block)
{
	struct block was = *block;
	if (was.kind == ASYNC)
		pool_give_back(was.pool, round_up(was.bytes, 512));
	else if (was.kind == GRAPH ? was.opened : DEVICE_KINDS >> was.kind & 1)
		refund(was.device, was.bytes);
	block_remove(block);
	space_clear(was.base, was.size);
	note("free", function, kind_names[was.kind], was.device, was.base, was.bytes, 0, CUDA_SUCCESS);
}

static CUresult release(const char *function, CUdeviceptr address)
{
	ALIVE();
	if (!address)
		return CUDA_SUCCESS;
	driver_lock();
	struct block *block = read_block_header(address, DEVICE_KINDS);
	if (block)
		linear_free(function, block);
	driver_unlock();
	return block ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuMemFree_v2(CUdeviceptr address)
{
	return release("cuMemFree_v2", address);
}

API CUresult cuMemGetInfo_v2(size_t *left, size_t *all)
{
	ALIVE();
	if (!current())
		return CUDA_ERROR_INVALID_CONTEXT;
	uint64_t size = sd_size(current()->device), used = sd_used(current()->device);
	*all = size;
	*left = used < size ? size - used : 0;
	return CUDA_SUCCESS;
}

/* ---- pools: memory is kept on a free, and given back to the device at a synchronisation or when it runs short ---- */

static uint64_t pool_unit(void)
{
	return sd_granularity() > 1 ? sd_granularity() : 512;
}

/* Changes in whole units are all "large" to the books, so they add up. */
static void pool_shrink(CUmemoryPool pool, uint64_t keep)
{
	uint64_t least = round_up(pool->used, pool_unit());
	keep = round_up(keep, pool_unit());
	if (keep < least)
		keep = least;
	if (keep >= pool->reserved)
		return;
	uint64_t bytes = pool->reserved - keep;
	refund(pool->device, bytes);
	pool->reserved = keep;
	note("shrink", "pool", "pool", pool->device, 0, bytes, (uint64_t)(uintptr_t)pool, CUDA_SUCCESS);
}

/* Where the device runs short, all pools give back what they have unused, this one too: then it needs more. */
static bool pool_grow(CUmemoryPool pool, uint64_t need)
{
	uint64_t more = round_up(need - pool->reserved, pool_unit());
	while (!charge_at_once(pool->device, more)) {
		if (!pools_trim(pool->device))
			return false;
		more = round_up(need - pool->reserved, pool_unit());
	}
	pool->reserved += more;
	note("grow", "pool", "pool", pool->device, 0, more, (uint64_t)(uintptr_t)pool, CUDA_SUCCESS);
	return true;
}

static bool pool_take(CUmemoryPool pool, uint64_t bytes)
{
	uint64_t need = pool->used + bytes;
	if (need > pool->reserved && !pool_grow(pool, need))
		return false;
	pool->used = need;
	if (pool->used > pool->used_high)
		pool->used_high = pool->used;
	if (pool->reserved > pool->reserved_high)
		pool->reserved_high = pool->reserved;
	return true;
}

static void pool_give_back(CUmemoryPool pool, uint64_t bytes)
{
	pool->used -= bytes;
}

static void each_pool(int device, void (*act)(CUmemoryPool pool))
{
	act(&defaults[device]);
	for (CUmemoryPool pool = pools; pool; pool = pool->next)
		if (pool->device == device)
			act(pool);
}

static uint64_t reserved_sum;

static void add_reserved(CUmemoryPool pool)
{
	reserved_sum += pool->reserved;
}

static void empty(CUmemoryPool pool)
{
	pool_shrink(pool, 0);
}

static void settle(CUmemoryPool pool)
{
	pool_shrink(pool, pool->threshold);
}

bool pools_trim(int device)
{
	reserved_sum = 0;
	each_pool(device, add_reserved);
	uint64_t before = reserved_sum;
	each_pool(device, empty);
	reserved_sum = 0;
	each_pool(device, add_reserved);
	return reserved_sum < before;
}

void pools_synchronize(int device)
{
	each_pool(device, settle);
}

void pools_reset(int device)
{
	each_pool(device, empty);
}

static CUmemoryPool default_pool(int device)
{
	defaults[device].device = device;
	return &defaults[device];
}

static CUmemoryPool device_pool(int device)
{
	return chosen[device] ? chosen[device] : default_pool(device);
}

static CUresult pool_allocate(const char *function, CUdeviceptr *address, uint64_t bytes, CUmemoryPool pool, CUstream stream)
{
	ALIVE();
	if (!address || !bytes)
		return CUDA_ERROR_INVALID_VALUE;
	driver_lock();
	int device = pool ? pool->device : stream_device(stream);
	CUresult status = device < 0 ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_OUT_OF_MEMORY;
	uint64_t size = round_up(bytes, bytes < 2 << 20 ? 512 : 2 << 20), base = 0;
	if (device >= 0 && !pool)
		pool = device_pool(device);
	if (device >= 0 && pool_take(pool, round_up(bytes, 512))) {
		base = space_find(size, bytes < 2 << 20 ? 512 : 2 << 20);
		struct block *block = base ? block_add(base, size, bytes, device, ASYNC) : NULL;
		if (block) {
			block->pool = pool;
			status = CUDA_SUCCESS;
		} else {
			pool_give_back(pool, round_up(bytes, 512));
		}
	}
	note(status == CUDA_SUCCESS ? "alloc" : "fail", function, "async", device, base, bytes, (uint64_t)(uintptr_t)pool, status);
	driver_unlock();
	if (status == CUDA_SUCCESS)
		*address = base;
	return status;
}

/* Every stream-ordered call has a twin for programs whose default stream is the thread's. */
#define TWINS(name, parameters, call) \
	API CUresult name parameters { const char *function = #name; return call; } \
	API CUresult name##_ptsz parameters { const char *function = #name "_ptsz"; return call; }
TWINS(cuMemAllocAsync, (CUdeviceptr *address, size_t bytes, CUstream stream), pool_allocate(function, address, bytes, NULL, stream))
TWINS(cuMemAllocFromPoolAsync, (CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream),
      pool_allocate(function, address, bytes, pool, stream))
TWINS(cuMemFreeAsync, (CUdeviceptr address, CUstream stream), release(function, address))

API CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *properties)
{
	ALIVE();
	int device = physical(properties->location.id);
	if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE || device < 0)
		return CUDA_ERROR_INVALID_VALUE;
	CUmemoryPool pool = calloc(1, sizeof *pool);
	if (!pool)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pool->device = device;
	driver_lock();
	pool->next = pools;
	pools = pool;
	driver_unlock();
	note("create", "cuMemPoolCreate", "pool", device, 0, 0, (uint64_t)(uintptr_t)pool, CUDA_SUCCESS);
	*out = pool;
	return CUDA_SUCCESS;
}

/* Blocks that are still in use outlive their pool, as the manual says; the struct stays for them. */
API CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	ALIVE();
	if (!pool || pool == &defaults[pool->device])
		return CUDA_ERROR_INVALID_VALUE;
	driver_lock();
	pool->threshold = 0;
	pool_shrink(pool, 0);
	if (chosen[pool->device] == pool)
		chosen[pool->device] = NULL;
	driver_unlock();
	note("destroy", "cuMemPoolDestroy", "pool", pool->device, 0, 0, (uint64_t)(uintptr_t)pool, CUDA_SUCCESS);
	return CUDA_SUCCESS;
}

API CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
	ALIVE();
	driver_lock();
	pool_shrink(pool, keep);
	driver_unlock();
	return CUDA_SUCCESS;
}

API CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	ALIVE();
	driver_lock();
	switch ((int)attribute) {
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: pool->threshold = *(cuuint64_t *)value; break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: pool->reserved_high = pool->reserved; break;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH: pool->used_high = pool->used; break;
	}
	driver_unlock();
	return CUDA_SUCCESS;
}

API CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	ALIVE();
	switch ((int)attribute) {
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: *(cuuint64_t *)value = pool->threshold; break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: *(cuuint64_t *)value = pool->reserved; break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: *(cuuint64_t *)value = pool->reserved_high; break;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: *(cuuint64_t *)value = pool->used; break;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH: *(cuuint64_t *)value = pool->used_high; break;
	default: *(int *)value = 1;
	}
	return CUDA_SUCCESS;
}

API CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access, size_t n)
{
	ALIVE();
	return CUDA_SUCCESS;
}

API CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *location)
{
	ALIVE();
	*flags = 3;
	return CUDA_SUCCESS;
}

API CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice ordinal)
{
	ALIVE();
	int device = physical(ordinal);
	if (device < 0)
		return CUDA_ERROR_INVALID_DEVICE;
	*pool = default_pool(device);
	return CUDA_SUCCESS;
}

API CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice ordinal)
{
	ALIVE();
	int device = physical(ordinal);
	if (device < 0)
		return CUDA_ERROR_INVALID_DEVICE;
	*pool = device_pool(device);
	return CUDA_SUCCESS;
}

API CUresult cuDeviceSetMemPool(CUdevice ordinal, CUmemoryPool pool)
{
	ALIVE();
	int device = physical(ordinal);
	if (device < 0 || pool->device != device)
		return CUDA_ERROR_INVALID_VALUE;
	chosen[device] = pool;
	return CUDA_SUCCESS;
}

/* ---- pinned and registered ---- */

static CUresult pin(const char *function, void **address, size_t bytes)
{
	ALIVE();
	if (!address || !bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (!current())
		return CUDA_ERROR_INVALID_CONTEXT;
	uint64_t size = round_up(bytes, 4096);
	driver_lock();
	void *start = sd_map(NULL, size, MAP_POPULATE);
	bool good = start != MAP_FAILED && block_add((uint64_t)(uintptr_t)start, size, bytes, current()->device, PINNED);
	CUresult status = good ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	note(good ? "alloc" : "fail", function, "pinned", current()->device, good ? (uint64_t)(uintptr_t)start : 0, bytes, 0, status);
	driver_unlock();
	if (good)
		*address = start;
	return status;
}

API CUresult cuMemAllocHost_v2(void **address, size_t bytes)
{
	return pin("cuMemAllocHost_v2", address, bytes);
}

API CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned flags)
{
	return pin("cuMemHostAlloc", address, bytes);
}

static void unpin(const char *function, struct block *block)
{
	struct block was = *block;
	block_remove(block);
	sd_unmap((void *)(uintptr_t)was.base, was.size);
	note("free", function, "pinned", was.device, was.base, was.bytes, 0, CUDA_SUCCESS);
}

API CUresult cuMemFreeHost(void *address)
{
	ALIVE();
	driver_lock();
	struct block *block = read_block_header((uint64_t)(uintptr_t)address, 1 << PINNED);
	if (block)
		unpin("cuMemFreeHost", block);
	driver_unlock();
	return block || !address ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuMemHostRegister_v2(void *address, size_t bytes, unsigned flags)
{
	ALIVE();
	uint64_t start = (uint64_t)(uintptr_t)address;
	if (!address || !bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (!current())
		return CUDA_ERROR_INVALID_CONTEXT;
	CUresult status = CUDA_SUCCESS;
	driver_lock();
	if (block_around(start) || block_around(start + bytes - 1))
		status = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	else if (!block_add(start, bytes, bytes, current()->device, REGISTERED))
		status = CUDA_ERROR_OUT_OF_MEMORY;
	note(status == CUDA_SUCCESS ? "alloc" : "fail", "cuMemHostRegister_v2", "registered", current()->device, start, bytes, 0, status);
	driver_unlock();
	return status;
}

API CUresult cuMemHostUnregister(void *address)
{
	ALIVE();
	driver_lock();
	struct block *block = read_block_header((uint64_t)(uintptr_t)address, 1 << REGISTERED);
	if (block) {
		note("free", "cuMemHostUnregister", "registered", block->device, block->base, block->bytes, 0, CUDA_SUCCESS);
		block_remove(block);
	}
	driver_unlock();
	return block ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

API CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *host, unsigned flags)
{
	ALIVE();
	*device = (uint64_t)(uintptr_t)host;
	return CUDA_SUCCESS;
}

API CUresult cuMemHostGetFlags(unsigned *flags, void *address)
{
	ALIVE();
	*flags = 0;
	return CUDA_SUCCESS;
}

/* ---- arrays ---- */

static unsigned format_bytes(CUarray_format format)
{
	switch ((int)format) {
	case 1: case 8: return 1;
	case 2: case 9: case 0x10: return 2;
	case 3: case 10: case 0x20: return 4;
	}
	return 0;
}

static uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	uint64_t height = d->Height ? d->Height : 1, depth = d->Depth ? d->Depth : 1;
	return (uint64_t)d->Width * height * depth * format_bytes(d->Format) * d->NumChannels;
}

static void array_link(CUarray array)
{
	array->next = arrays;
	arrays = array;
}

static bool array_unlink(CUarray array)
{
	for (CUarray *at = &arrays; *at; at = &(*at)->next)
		if (*at == array) {
			*at = array->next;
			return true;
		}
	return false;
}

static CUresult array_begin(const char *function, const char *kind, CUarray array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor, uint64_t bytes)
{
	array->bytes = bytes;
	array->descriptor = *descriptor;
	array->context = current();
	array->device = current() ? current()->device : -1;
	CUresult status = !current() ? CUDA_ERROR_INVALID_CONTEXT : !bytes ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	driver_lock();
	if (status == CUDA_SUCCESS && !charge(array->device, bytes))
		status = CUDA_ERROR_OUT_OF_MEMORY;
	if (status == CUDA_SUCCESS)
		array_link(array);
	note(status == CUDA_SUCCESS ? "alloc" : "fail", function, kind, array->device, 0, bytes, (uint64_t)(uintptr_t)array, status);
	driver_unlock();
	return status;
}

static CUresult array_new(const char *function, CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
	ALIVE();
	CUarray array = calloc(1, sizeof *array);
	if (!array)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult status = array_begin(function, "array", array, descriptor, array_bytes(descriptor));
	if (status == CUDA_SUCCESS)
		*out = array;
	else
		free(array);
	return status;
}

API CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *d)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor = {.Width = d->Width, .Height = d->Height, .Format = d->Format, .NumChannels = d->NumChannels};
	return array_new("cuArrayCreate_v2", array, &descriptor);
}

API CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
	return array_new("cuArray3DCreate_v2", array, descriptor);
}

static void array_end(const char *function, const char *kind, CUarray array)
{
	refund(array->device, array->bytes);
	note("free", function, kind, array->device, 0, array->bytes, (uint64_t)(uintptr_t)array, CUDA_SUCCESS);
}

API CUresult cuArrayDestroy(CUarray array)
{
	ALIVE();
	driver_lock();
	bool known = array && array_unlink(array);
	if (known)
		array_end("cuArrayDestroy", "array", array);
	driver_unlock();
	if (known)
		free(array);
	return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

API CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *d, CUarray array)
{
	ALIVE();
	*d = (CUDA_ARRAY_DESCRIPTOR){array->descriptor.Width, array->descriptor.Height, array->descriptor.Format, array->descriptor.NumChannels};
	return CUDA_SUCCESS;
}

API CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *d, CUarray array)
{
	ALIVE();
	*d = array->descriptor;
	return CUDA_SUCCESS;
}

static size_t half(size_t n, unsigned times)
{
	return n >> times || !n ? n >> times : 1;
}

API CUresult cuMipmappedArrayCreate(CUmipmappedArray *out, const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned levels)
{
	ALIVE();
	CUmipmappedArray array = calloc(1, sizeof *array);
	uint64_t bytes = 0;
	if (!array || !(array->levels = calloc(levels + 1, sizeof *array->levels))) {
		free(array);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	for (array->count = 0; array->count < levels; array->count++) {
		CUarray level = &array->levels[array->count];
		level->descriptor = *descriptor;
		level->descriptor.Width = half(descriptor->Width, array->count);
		level->descriptor.Height = half(descriptor->Height, array->count);
		level->descriptor.Depth = half(descriptor->Depth, array->count);
		level->parent = array;
		bytes += level->bytes = array_bytes(&level->descriptor);
	}
	array->whole.parent = array;
	CUresult status = array_begin("cuMipmappedArrayCreate", "mipmapped", &array->whole, descriptor, bytes);
	if (status == CUDA_SUCCESS) {
		*out = array;
	} else {
		free(array->levels);
		free(array);
	}
	return status;
}

API CUresult cuMipmappedArrayGetLevel(CUarray *level, CUmipmappedArray array, unsigned n)
{
	ALIVE();
	if (n >= array->count)
		return CUDA_ERROR_INVALID_VALUE;
	*level = &array->levels[n];
	return CUDA_SUCCESS;
}

API CUresult cuMipmappedArrayDestroy(CUmipmappedArray array)
{
	ALIVE();
	driver_lock();
	bool known = array && array_unlink(&array->whole);
	if (known)
		array_end("cuMipmappedArrayDestroy", "mipmapped", &array->whole);
	driver_unlock();
	if (known) {
		free(array->levels);
		free(array);
	}
	return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* The structs stay: programs may still hold the handles. */
void arrays_release(const char *function, CUcontext context)
{
	for (CUarray array = arrays, next; array; array = next) {
		next = array->next;
		if (array->context == context && array_unlink(array))
			array_end(function, array->parent ? "mipmapped" : "array", array);
	}
}

/* ---- what ends with a context ---- */

void context_release_memory(const char *function, CUcontext context)
{
	for (struct block *block = block_first(); block < block_end();) {
		if (block->context != context || block->kind == RESERVATION) {
			block++;
		} else if (block->kind == PINNED) {
			unpin(function, block);
		} else if (block->kind == REGISTERED || block->kind == ALIAS) {
			note("free", function, kind_names[block->kind], block->device, block->base, block->bytes, 0, CUDA_SUCCESS);
			block_remove(block);
		} else {
			linear_free(function, block);
		}
	}
	arrays_release(function, context);
	pools_reset(context->device);
}

/* ---- memory shared between processes: a second address for it, never new bytes (and, here, not its contents) ---- */

struct ipc { char magic[8]; int pid, device; uint64_t base, bytes; };
_Static_assert(sizeof(struct ipc) <= sizeof(CUipcMemHandle), "fits");
static const char ipc_magic[8] = "standin";

static CUresult export(void *handle, uint64_t address, int kinds)
{
	ALIVE();
	driver_lock();
	struct block *block = block_around(address);
	bool good = block && (kinds >> block->kind & 1);
	struct ipc ipc = {.pid = getpid()};
	memcpy(ipc.magic, ipc_magic, sizeof ipc.magic);
	if (good) {
		ipc.device = block->device;
		ipc.base = block->base;
		ipc.bytes = block->bytes;
	}
	driver_unlock();
	memset(handle, 0, sizeof(CUipcMemHandle));
	memcpy(handle, &ipc, sizeof ipc);
	return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult import(const char *function, CUdeviceptr *address, const void *handle)
{
	ALIVE();
	struct ipc ipc;
	memcpy(&ipc, handle, sizeof ipc);
	if (memcmp(ipc.magic, ipc_magic, sizeof ipc.magic) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!current() || ipc.pid == getpid()) /* the exporter itself can't open it */
		return CUDA_ERROR_INVALID_CONTEXT;
	uint64_t size = round_up(ipc.bytes, 2 << 20), origin = (uint64_t)ipc.pid << 48 ^ ipc.base;
	driver_lock();
	struct block *block = block_first();
	while (block < block_end() && (block->kind != ALIAS || block->origin != origin))
		block++;
	if (block == block_end()) { /* a second opening gives the same address */
		uint64_t base = space_find(size, 2 << 20);
		block = base ? block_add(base, size, ipc.bytes, ipc.device, ALIAS) : NULL;
	}
	CUresult status = block ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	if (block) {
		block->origin = origin;
		block->opened++;
		*address = block->base;
	}
	note(block ? "open" : "fail", function, "alias", ipc.device, block ? block->base : 0, ipc.bytes, 0, status);
	driver_unlock();
	return status;
}

static CUresult close_alias(const char *function, CUdeviceptr address)
{
	ALIVE();
	driver_lock();
	struct block *block = read_block_header(address, 1 << ALIAS);
	if (block) {
		note("close", function, "alias", block->device, block->base, block->bytes, 0, CUDA_SUCCESS);
		if (--block->opened == 0)
			block_remove(block);
	}
	driver_unlock();
	return block ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr address)
{
	return export(handle, address, 1 << LINEAR);
}

API CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *address, CUipcMemHandle handle, unsigned flags)
{
	return import("cuIpcOpenMemHandle_v2", address, &handle);
}

#ifndef VENDOR
API CUresult cuIpcOpenMemHandle(CUdeviceptr *address, CUipcMemHandle handle, unsigned flags)
{
	return import("cuIpcOpenMemHandle", address, &handle);
}
#endif

API CUresult cuIpcCloseMemHandle(CUdeviceptr address)
{
	return close_alias("cuIpcCloseMemHandle", address);
}

API CUresult cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event)
{
	ALIVE();
	memset(handle, 0, sizeof *handle);
	return CUDA_SUCCESS;
}

API CUresult cuEventCreate(CUevent *event, unsigned flags);

API CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle)
{
	return cuEventCreate(event, 0);
}

API CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr address)
{
	return export(data, address, 1 << ASYNC);
}

API CUresult cuMemPoolImportPointer(CUdeviceptr *address, CUmemoryPool pool, CUmemPoolPtrExportData *data)
{
	return import("cuMemPoolImportPointer", address, data);
}

/* A pool travels as a descriptor whose contents say which device it is on. */
API CUresult cuMemPoolExportToShareableHandle(void *handle, CUmemoryPool pool, CUmemAllocationHandleType type, unsigned long long flags)
{
	ALIVE();
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	int fd = memfd_create("standin-pool", MFD_CLOEXEC);
	if (fd < 0 || write(fd, &pool->device, sizeof pool->device) != sizeof pool->device)
		return CUDA_ERROR_OPERATING_SYSTEM;
	*(int *)handle = fd;
	return CUDA_SUCCESS;
}

API CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *handle, CUmemAllocationHandleType type, unsigned long long flags)
{
	ALIVE();
	int device;
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (pread((int)(intptr_t)handle, &device, sizeof device, 0) != sizeof device)
		return CUDA_ERROR_INVALID_VALUE;
	*pool = calloc(1, sizeof **pool);
	if (!*pool)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(*pool)->device = device;
	(*pool)->imported = true;
	return CUDA_SUCCESS;
}

/* ---- questions about pointers ---- */

API CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
	ALIVE();
	driver_lock();
	struct block *block = block_around(address);
	if (block && base)
		*base = block->base;
	if (block && bytes)
		*bytes = block->bytes;
	driver_unlock();
	return block ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

static CUresult attribute_of(void *value, CUpointer_attribute attribute, const struct block *block, uint64_t address)
{
	bool host = block->kind == PINNED || block->kind == REGISTERED;
	switch ((int)attribute) {
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: *(unsigned *)value = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE; break;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)value = ordinal_of(block->device >= 0 ? block->device : mapped_device(address)); break;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED: *(unsigned *)value = block->kind == MANAGED; break;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *(uint64_t *)value = block->base; break;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *(uint64_t *)value = block->bytes; break;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID: *(uint64_t *)value = block->base; break;
	case CU_POINTER_ATTRIBUTE_CONTEXT: *(CUcontext *)value = block->context; break;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

API CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr address)
{
	ALIVE();
	driver_lock();
	struct block *block = block_around(address);
	CUresult status = CUDA_ERROR_INVALID_VALUE;
	if (block && (attribute == CU_POINTER_ATTRIBUTE_DEVICE_POINTER || attribute == CU_POINTER_ATTRIBUTE_HOST_POINTER)) {
		*(CUdeviceptr *)value = address;
		status = CUDA_SUCCESS;
	} else if (block) {
		status = attribute_of(value, attribute, block, address);
	}
	driver_unlock();
	return status;
}

API CUresult cuPointerGetAttributes(unsigned n, CUpointer_attribute *attributes, void **values, CUdeviceptr address)
{
	for (unsigned i = 0; i < n; i++)
		cuPointerGetAttribute(values[i], attributes[i], address);
	return ready();
}

#ifndef VENDOR
API CUresult cuMemAdvise(CUdeviceptr address, size_t bytes, int advice, CUdevice device)
{
	ALIVE();
	return CUDA_SUCCESS;
}

API CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream)
{
	ALIVE();
	return CUDA_SUCCESS;
}
#endif
