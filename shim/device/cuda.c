/*
 * The hooks of CUDA's runtime and driver, from hooks_cuda.def.
 *
 * The outermost call is the event and names it: cudaMalloc enters cuMemAlloc_v2, which then is only passed on. A free
 * is in the trace before the real call and undone if that failed; an allocation is there after it. An allocation that
 * failed for want of memory is a failure; what else fails was no request for memory, as where PyTorch and NCCL try
 * whether handles may be shared by a fabric. Status 4 (the driver is shutting down) means that the process ends: there
 * is nothing to undo. A thread without a context has no device.
 *
 * The addresses of graphs' memory nodes, and of allocations on a stream that is being captured, are MT_CLASS_RESERVED:
 * their memory comes and goes with the graph's launches, which is not known here.
 */
#include <errno.h>
#include <string.h>

#include "shim/device/cuda.h"
#include "shim/device/device.h"
#include "shim/device/sizes.h"
#include "shim/hooks/hooks.h"

enum {
	OUT_OF_MEMORY = 2, /* CUDA_ERROR_OUT_OF_MEMORY, cudaErrorMemoryAllocation */
	SHUTTING_DOWN = 4, /* CUDA_ERROR_DEINITIALIZED, cudaErrorCudartUnloading */
};

/* What a call is answered that no library is there for: who asked by calling goes on without a GPU. */
enum { NONE_CUDA = 100 /* CUDA_ERROR_NO_DEVICE */, NONE_CUDART = 35 /* cudaErrorInsufficientDriver */ };

const struct mt_library mt_lib_CUDART = {
	.prefix = "libcudart",
	.linked = 3,
	.link = { { "libcudart.so.11.0", "libcudart.so.11.0" },
		  { "libcudart.so.12", "libcudart.so.12" },
		  { "libcudart.so.13", "libcudart.so.13" } },
};

typedef CUresult status_CUDA;
typedef cudaError_t status_CUDART;

/* ---- what the rows of the table say of sizes ---- */

/* p is evaluated after success alone: it looks where a call that failed may have had nowhere to write. */
#define range_of(status, p) ((status) ? 0 : mt_cuda_range((uintptr_t)(p)))

static inline uint64_t texels(const struct cudaChannelFormatDesc *d, struct cudaExtent e, unsigned levels,
			      unsigned flags)
{
	return mt_cuda_texel_bytes(d, e, levels, flags);
}

/* ---- what a call leaves in the trace ---- */

static __attribute__((noinline)) void note_failure(struct mt_device_event *event, int ordinal, int status)
{
	uint64_t free = 0, total = 0;

	if (status != OUT_OF_MEMORY)
		return;
	event->device = mt_cuda_id(ordinal);
	mt_cuda_memory(ordinal, &free, &total);
	mt_device_note_failure(event, (uint32_t)status, free, total);
}

static int device_of(const struct mt_device_event *event)
{
	int ordinal = -1;

	/* that of a stream, a pool or a handle need not be the current one */
	if (event->hook == MT_HOOK_cuMemRetainAllocationHandle || event->hook == MT_HOOK_cuMemImportFromShareableHandle)
		ordinal = mt_cuda_device_of_handle(event->addr);
	else if (event->class == MT_CLASS_ASYNC || event->class == MT_CLASS_ALIAS)
		ordinal = mt_cuda_device_of(event->addr);
	return ordinal >= 0 ? ordinal : mt_cuda_current();
}

static __attribute__((noinline)) void note_allocation(struct mt_device_event *event, int status)
{
	int kept = errno;

	if (event->class == MT_CLASS_ASYNC && mt_cuda_capturing(event->stream))
		event->class = MT_CLASS_RESERVED;
	if (status) {
		note_failure(event, mt_cuda_current(), status);
	} else if (event->addr) { /* nothing was asked for: there is no block */
		event->device = mt_cuda_id(device_of(event));
		mt_device_note(MT_DEVICE_ALLOC, event);
	}
	errno = kept;
}

static __attribute__((noinline)) void note_free(struct mt_device_event *event)
{
	int kept = errno;

	event->device = mt_cuda_id(mt_cuda_current());
	if (event->class == MT_CLASS_ASYNC && mt_cuda_capturing(event->stream))
		event->class = MT_CLASS_RESERVED;
	mt_device_note(MT_DEVICE_FREE, event);
	errno = kept;
}

static __attribute__((noinline)) void note_free_failed(struct mt_device_event *event, int status)
{
	if (status == SHUTTING_DOWN)
		return;
	event->caller = NULL;
	mt_device_note(MT_DEVICE_UNDO, event);
}

/* The device's memory as it is now: after a pool gave memory back, or was made. */
static void note_memory(unsigned hook, const void *caller)
{
	struct mt_device_event event = { .hook = hook, .caller = caller };
	int kept = errno, ordinal = mt_cuda_current();

	event.device = mt_cuda_id(ordinal);
	if (mt_cuda_memory(ordinal, &event.addr, &event.bytes))
		mt_device_note(MT_DEVICE_INFO, &event);
	errno = kept;
}

static void note_reset(unsigned hook, int ordinal, const void *caller)
{
	struct mt_device_event event = { .hook = hook, .caller = caller };
	int kept = errno;

	event.device = mt_cuda_id(ordinal);
	if (event.device)
		mt_device_note(MT_DEVICE_RESET, &event);
	errno = kept;
}

/* ---- bodies ---- */

enum cuda_row {
#define HAND(library, name, params, args) ROW_##name,
#include "shim/hooks/hooks_cuda.def"
	ROWS
};

static const struct mt_wrapped rows[ROWS];

#define WITH_SLOT(...) (struct mt_slot * slot, const void *caller, __VA_ARGS__)

/* Begins a body: `real` is the function, called at once if this call is no event. */
#define BODY(library, name, params, args) \
	status_##library(*real) params = \
		(status_##library(*) params)(uintptr_t)mt_slot_real(&rows[ROW_##name], slot, caller); \
	status_##library status; \
	if (!real) \
		return (status_##library)NONE_##library; \
	if (!mt_call_begin()) \
	return real args

#define OUT(library, class_, name, params, args, address, bytes_, stream_) \
	static status_##library body_##name WITH_SLOT params \
	{ \
		BODY(library, name, params, args); \
		status = real args; \
		struct mt_device_event event = { .hook = MT_HOOK_##name, \
						 .class = MT_CLASS_##class_, \
						 .caller = caller, \
						 .addr = status ? 0 : (uintptr_t)(address), \
						 .bytes = bytes_, \
						 .stream = (uintptr_t)(stream_) }; \
		note_allocation(&event, (int)status); \
		mt_call_end(); \
		return status; \
	}
#define DROP(library, class_, name, params, args, address, stream_) \
	static status_##library body_##name WITH_SLOT params \
	{ \
		BODY(library, name, params, args); \
		struct mt_device_event event = { .hook = MT_HOOK_##name, \
						 .class = MT_CLASS_##class_, \
						 .addr = (uintptr_t)(address), \
						 .stream = (uintptr_t)(stream_) }; \
		(void)caller; \
		if (event.addr) \
			note_free(&event); \
		status = real args; \
		if (status && event.addr) \
			note_free_failed(&event, (int)status); \
		mt_call_end(); \
		return status; \
	}
#include "shim/hooks/hooks_cuda.def"

/* ---- virtual memory ---- */

/* Physical memory belongs to the device that was asked for, which need not be the current one; or to the host. */
static CUresult body_cuMemCreate(struct mt_slot *slot, const void *caller, CUmemGenericAllocationHandle *h, size_t n,
				 const CUmemAllocationProp *prop, unsigned long long flags)
{
	BODY(CUDA, cuMemCreate,
	     (CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *, unsigned long long),
	     (h, n, prop, flags));
	struct mt_device_event event = {
		.hook = MT_HOOK_cuMemCreate, .class = MT_CLASS_PHYSICAL, .bytes = n, .caller = caller
	};
	int ordinal = prop && prop->location.type == 1 ? prop->location.id : -1;

	status = real(h, n, prop, flags);
	if (status) {
		note_failure(&event, ordinal, (int)status);
	} else {
		event.addr = *h;
		event.device = mt_cuda_id(ordinal);
		mt_device_note(MT_DEVICE_ALLOC, &event);
	}
	mt_call_end();
	return status;
}

static CUresult body_cuMemMap(struct mt_slot *slot, const void *caller, CUdeviceptr p, size_t n, size_t offset,
			      CUmemGenericAllocationHandle h, unsigned long long flags)
{
	BODY(CUDA, cuMemMap, (CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long),
	     (p, n, offset, h, flags));
	struct mt_device_event event = { .hook = MT_HOOK_cuMemMap,
					 .class = MT_CLASS_PHYSICAL,
					 .addr = p,
					 .bytes = n,
					 .stream = h,
					 .other = offset,
					 .caller = caller };

	status = real(p, n, offset, h, flags);
	if (!status) {
		event.device = mt_cuda_id(mt_cuda_current());
		mt_device_note(MT_DEVICE_MAP, &event);
	}
	mt_call_end();
	return status;
}

static CUresult body_cuMemUnmap(struct mt_slot *slot, const void *caller, CUdeviceptr p, size_t n)
{
	BODY(CUDA, cuMemUnmap, (CUdeviceptr, size_t), (p, n));
	struct mt_device_event event = {
		.hook = MT_HOOK_cuMemUnmap, .class = MT_CLASS_PHYSICAL, .addr = p, .bytes = n
	};

	(void)caller;
	event.device = mt_cuda_id(mt_cuda_current());
	mt_device_note(MT_DEVICE_UNMAP, &event);
	status = real(p, n);
	if (status)
		note_free_failed(&event, (int)status);
	mt_call_end();
	return status;
}

/* ---- pools: what they hold is seen in the device's free memory only ---- */

#define POOL(library, name, params, args) \
	static status_##library body_##name WITH_SLOT params \
	{ \
		BODY(library, name, params, args); \
		status = real args; \
		if (!status) \
			note_memory(MT_HOOK_##name, caller); \
		mt_call_end(); \
		return status; \
	}
POOL(CUDART, cudaMemPoolCreate, (cudaMemPool_t * pool, const struct cudaMemPoolProps *props), (pool, props))
POOL(CUDART, cudaMemPoolDestroy, (cudaMemPool_t pool), (pool))
POOL(CUDART, cudaMemPoolTrimTo, (cudaMemPool_t pool, size_t keep), (pool, keep))
POOL(CUDART, cudaDeviceGraphMemTrim, (int device), (device))
POOL(CUDA, cuMemPoolCreate, (CUmemoryPool * pool, const CUmemPoolProps *props), (pool, props))
POOL(CUDA, cuMemPoolDestroy, (CUmemoryPool pool), (pool))
POOL(CUDA, cuMemPoolTrimTo, (CUmemoryPool pool, size_t keep), (pool, keep))
POOL(CUDA, cuDeviceGraphMemTrim, (CUdevice device), (device))

/* ---- everything at once ---- */

#define RESET_CURRENT(name) \
	static cudaError_t body_##name(struct mt_slot *slot, const void *caller) \
	{ \
		BODY(CUDART, name, (void), ()); \
		int ordinal = mt_cuda_current(); \
		status = real(); \
		if (!status) \
			note_reset(MT_HOOK_##name, ordinal, caller); \
		mt_call_end(); \
		return status; \
	}
RESET_CURRENT(cudaDeviceReset)
RESET_CURRENT(cudaThreadExit)

/* A context takes what was allocated in it along. Which blocks those are is not known where the device's primary
 * context lives on: they then stay, which the report shows as memory that the driver says is free. */
#define DESTROY(name) \
	static CUresult body_##name(struct mt_slot *slot, const void *caller, CUcontext context) \
	{ \
		BODY(CUDA, name, (CUcontext), (context)); \
		int ordinal = mt_cuda_context_device(context); \
		status = real(context); \
		if (!status && !mt_cuda_primary_alive(ordinal)) \
			note_reset(MT_HOOK_##name, ordinal, caller); \
		mt_call_end(); \
		return status; \
	}
DESTROY(cuCtxDestroy)
DESTROY(cuCtxDestroy_v2)

/* Each retain of the primary context needs a release; the last one destroys it. */
#define PRIMARY(name, is_gone) \
	static CUresult body_##name(struct mt_slot *slot, const void *caller, CUdevice device) \
	{ \
		BODY(CUDA, name, (CUdevice), (device)); \
		status = real(device); \
		if (!status && (is_gone)) \
			note_reset(MT_HOOK_##name, device, caller); \
		mt_call_end(); \
		return status; \
	}
PRIMARY(cuDevicePrimaryCtxReset, 1)
PRIMARY(cuDevicePrimaryCtxReset_v2, 1)
PRIMARY(cuDevicePrimaryCtxRelease, !mt_cuda_primary_alive(device))
PRIMARY(cuDevicePrimaryCtxRelease_v2, !mt_cuda_primary_alive(device))

/* ---- functions by name ---- */

static const struct mt_wrapped *row_if(const char *name, const char *suffix)
{
	char full[64];
	size_t n = strlen(name);

	if (n + strlen(suffix) >= sizeof(full))
		return NULL;
	memcpy(full, name, n);
	strcpy(full + n, suffix);
	return mt_wrap_row(full);
}

/* Which row the driver means by a name without suffix, for a version and flags. */
static const struct mt_wrapped *row_of(const char *name, int version, unsigned long long flags)
{
	static const struct {
		const char *base, *name;
		int version;
	} since[] = {
#define SINCE(base, version, name) { #base, #name, version },
#include "shim/hooks/hooks_cuda.def"
	};
	const struct mt_wrapped *row;

	if (flags & 2 /* PER_THREAD_DEFAULT_STREAM */ && (row = row_if(name, "_ptsz")) != NULL)
		return row;
	for (size_t i = 0; i < sizeof(since) / sizeof(since[0]); i++)
		if (version >= since[i].version && !strcmp(name, since[i].base))
			return mt_wrap_row(since[i].name);
	return mt_wrap_row(name);
}

/* The real call comes first, and what it doesn't find stays not found. */
static void wrap_result(const char *name, void **p, int version, unsigned long long flags)
{
	const struct mt_wrapped *row;

	if (name && name[0] == 'c' && name[1] == 'u' && p && *p && (row = row_of(name, version, flags)) != NULL)
		*p = mt_wrap(row, *p);
}

static CUresult body_cuGetProcAddress(struct mt_slot *slot, const void *caller, const char *name, void **p, int version,
				      cuuint64_t flags)
{
	CUresult (*real)(const char *, void **, int, cuuint64_t) =
		(CUresult(*)(const char *, void **, int, cuuint64_t))(
			uintptr_t)mt_slot_real(&rows[ROW_cuGetProcAddress], slot, caller);
	CUresult status = real ? real(name, p, version, flags) : (CUresult)NONE_CUDA;

	(void)caller;
	if (!status)
		wrap_result(name, p, version, flags);
	return status;
}

static CUresult body_cuGetProcAddress_v2(struct mt_slot *slot, const void *caller, const char *name, void **p,
					 int version, cuuint64_t flags, CUdriverProcAddressQueryResult *found)
{
	CUresult (*real)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *) =
		(CUresult(*)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *))(
			uintptr_t)mt_slot_real(&rows[ROW_cuGetProcAddress_v2], slot, caller);
	CUresult status = real ? real(name, p, version, flags, found) : (CUresult)NONE_CUDA;

	(void)caller;
	if (!status)
		wrap_result(name, p, version, flags);
	return status;
}

/* Without a version the runtime asks for that of its own headers, which has all suffixes. */
#define ENTRY_POINT(name_, params, args, version, flags) \
	static cudaError_t body_##name_ WITH_SLOT params \
	{ \
		cudaError_t(*real) params = \
			(cudaError_t(*) params)(uintptr_t)mt_slot_real(&rows[ROW_##name_], slot, caller); \
		cudaError_t status = real ? real args : (cudaError_t)NONE_CUDART; \
		(void)caller; \
		if (!status) \
			wrap_result(name, p, (int)(version), flags); \
		return status; \
	}
typedef enum cudaDriverEntryPointQueryResult query_result;
ENTRY_POINT(cudaGetDriverEntryPoint, (const char *name, void **p, unsigned long long flags, query_result *found),
	    (name, p, flags, found), 11000, flags)
ENTRY_POINT(cudaGetDriverEntryPoint_ptsz, (const char *name, void **p, unsigned long long flags, query_result *found),
	    (name, p, flags, found), 11000, flags | 2)
ENTRY_POINT(cudaGetDriverEntryPointByVersion,
	    (const char *name, void **p, unsigned version, unsigned long long flags, query_result *found),
	    (name, p, version, flags, found), version, flags)
ENTRY_POINT(cudaGetDriverEntryPointByVersion_ptsz,
	    (const char *name, void **p, unsigned version, unsigned long long flags, query_result *found),
	    (name, p, version, flags, found), version, flags | 2)

/* ---- entries, exports and the table ---- */

#define LINK_CUDA(name) MT_LINK(0, name, "MEMTRACE_HOOKS")
#define LINK_CUDART(name) \
	MT_LINK(0, name, "libcudart.so.11.0") \
	MT_LINK(1, name, "libcudart.so.12") \
	MT_LINK(2, name, "libcudart.so.13")

#define HAND(library, name, params, args) MT_ENTRIES(status_##library, name, params, args) LINK_##library(name)
#define BARE(library, name)               MT_ENTRIES0(status_##library, name) LINK_##library(name)
#include "shim/hooks/hooks_cuda.def"

static const struct mt_wrapped rows[ROWS] = {
#define HAND(library, name, params, args) { #name, &mt_lib_##library, slots_##name, entries_##name },
#include "shim/hooks/hooks_cuda.def"
};

static const struct mt_wrap_table table = { rows, ROWS };
MT_SET_ADD(mt_wrap_table, table);
