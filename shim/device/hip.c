/*
 * The hooks of HIP, from hooks_hip.def, as cuda.c has them for CUDA: the outermost call is the event, a free is in the
 * trace before the real call and undone if that failed, and an allocation that failed for want of memory is a failure.
 * HIP has one library and no driver below it that is hooked.
 *
 * What must be known of the device is asked before the real call, as hip.h explains. What was free at a failure is
 * asked after it, and so only where that leaves the last error as it is (HIP 7).
 *
 * The end of a context is no row: HIP's contexts are the devices themselves, and their functions free nothing.
 * hipDeviceReset does.
 */
#include <errno.h>

#include "shim/device/cuda.h"
#include "shim/device/device.h"
#include "shim/device/hip.h"
#include "shim/device/sizes.h"
#include "shim/hooks/hooks.h"

enum {
	OUT_OF_MEMORY = 2, /* hipErrorOutOfMemory */
	SHUTTING_DOWN = 4, /* hipErrorDeinitialized */
	NO_DEVICE = 100,   /* hipErrorNoDevice: what a call is answered that no library is there for */
};

/* ---- what the rows of the table say of sizes ---- */

/* p is evaluated after success alone: it looks where a call that failed may have had nowhere to write. */
#define range_of(status, p) ((status) ? 0 : mt_hip_range((uintptr_t)(p)))

static uint64_t texels(const hipChannelFormatDesc *d, hipExtent e, unsigned levels, unsigned flags)
{
	const struct cudaExtent extent = { e.width, e.height, e.depth };

	return d ? mt_cuda_texel_bytes(&(struct cudaChannelFormatDesc){ d->x, d->y, d->z, d->w, d->f }, extent, levels,
				       flags)
		 : 0;
}

/* ---- what a call leaves in the trace ---- */

/* Before the real call. */
static void look(struct mt_device_event *event)
{
	int kept = errno;

	event->device = mt_hip_id(mt_hip_current());
	if (event->class == MT_CLASS_ASYNC && mt_hip_capturing(event->stream))
		event->class = MT_CLASS_RESERVED;
	errno = kept;
}

static __attribute__((noinline)) void note_failure(struct mt_device_event *event, int status)
{
	uint64_t free = 0, total = 0;

	if (status != OUT_OF_MEMORY)
		return;
	if (mt_hip_asks_freely())
		mt_hip_memory(&free, &total);
	mt_device_note_failure(event, (uint32_t)status, free, total);
}

static __attribute__((noinline)) void note_allocation(struct mt_device_event *event, int status)
{
	int kept = errno, ordinal = -1;

	if (status) {
		note_failure(event, status);
	} else if (event->addr) { /* nothing was asked for: there is no block */
		/* that of a stream, a pool or a handle need not be the current one */
		if (event->hook == MT_HOOK_hipMemRetainAllocationHandle ||
		    event->hook == MT_HOOK_hipMemImportFromShareableHandle)
			ordinal = mt_hip_device_of_handle(event->addr);
		else if (event->class == MT_CLASS_ASYNC || event->class == MT_CLASS_ALIAS)
			ordinal = mt_hip_device_of(event->addr);
		if (ordinal >= 0)
			event->device = mt_hip_id(ordinal);
		mt_device_note(MT_DEVICE_ALLOC, event);
	}
	errno = kept;
}

static __attribute__((noinline)) void note_free_failed(struct mt_device_event *event, int status)
{
	if (status != SHUTTING_DOWN)
		mt_device_note(MT_DEVICE_UNDO, event);
}

/* ---- bodies ---- */

enum hip_row {
#define HAND(since, name, params, args) ROW_##name,
#include "shim/hooks/hooks_hip.def"
	ROWS
};

static const struct mt_wrapped rows[ROWS];

#define WITH_SLOT(...) (struct mt_slot * slot, const void *caller, __VA_ARGS__)

/* Begins a body: `real` is the function, called at once if this call is no event. */
#define REAL(name, params) \
	hipError_t(*real) params = (hipError_t(*) params)(uintptr_t)mt_slot_real(&rows[ROW_##name], slot, caller)
#define BODY(name, params, args) \
	REAL(name, params); \
	hipError_t status; \
	if (!real) \
		return (hipError_t)NO_DEVICE; \
	if (!mt_call_begin()) \
	return real args

#define OUT(since, class_, name, params, args, address, bytes_, stream_) \
	static hipError_t body_##name WITH_SLOT params \
	{ \
		BODY(name, params, args); \
		struct mt_device_event event = { .hook = MT_HOOK_##name, \
						 .class = MT_CLASS_##class_, \
						 .caller = caller, \
						 .stream = (uintptr_t)(stream_) }; \
		look(&event); \
		status = real args; \
		event.addr = status ? 0 : (uintptr_t)(address); \
		event.bytes = bytes_; \
		note_allocation(&event, (int)status); \
		mt_call_end(); \
		return status; \
	}
#define DROP(since, class_, name, params, args, address, stream_) \
	static hipError_t body_##name WITH_SLOT params \
	{ \
		BODY(name, params, args); \
		struct mt_device_event event = { .hook = MT_HOOK_##name, \
						 .class = MT_CLASS_##class_, \
						 .addr = (uintptr_t)(address), \
						 .stream = (uintptr_t)(stream_) }; \
		if (event.addr) { \
			look(&event); \
			mt_device_note(MT_DEVICE_FREE, &event); \
		} \
		status = real args; \
		if (status && event.addr) \
			note_free_failed(&event, (int)status); \
		mt_call_end(); \
		return status; \
	}
#include "shim/hooks/hooks_hip.def"

/* ---- virtual memory ---- */

/* Physical memory belongs to the device that was asked for, which need not be the current one; or to the host. */
static hipError_t body_hipMemCreate(struct mt_slot *slot, const void *caller, hipMemGenericAllocationHandle_t *h,
				    size_t n, const hipMemAllocationProp *prop, unsigned long long flags)
{
	BODY(hipMemCreate,
	     (hipMemGenericAllocationHandle_t *, size_t, const hipMemAllocationProp *, unsigned long long),
	     (h, n, prop, flags));
	struct mt_device_event event = {
		.hook = MT_HOOK_hipMemCreate, .class = MT_CLASS_PHYSICAL, .bytes = n, .caller = caller
	};
	int kept = errno, ordinal = mt_hip_place(prop), current = mt_hip_current();

	event.device = mt_hip_id(ordinal);
	errno = kept;
	status = real(h, n, prop, flags);
	kept = errno;
	if (!status) {
		event.addr = (uintptr_t)*h;
		mt_device_note(MT_DEVICE_ALLOC, &event);
	} else if (ordinal == current) {
		note_failure(&event, (int)status);
	} else if (status == OUT_OF_MEMORY) { /* what is free is known of the current device alone */
		mt_device_note_failure(&event, (uint32_t)status, 0, 0);
	}
	errno = kept;
	mt_call_end();
	return status;
}

static hipError_t body_hipMemMap(struct mt_slot *slot, const void *caller, void *p, size_t n, size_t offset,
				 hipMemGenericAllocationHandle_t h, unsigned long long flags)
{
	BODY(hipMemMap, (void *, size_t, size_t, hipMemGenericAllocationHandle_t, unsigned long long),
	     (p, n, offset, h, flags));
	struct mt_device_event event = { .hook = MT_HOOK_hipMemMap,
					 .class = MT_CLASS_PHYSICAL,
					 .addr = (uintptr_t)p,
					 .bytes = n,
					 .stream = (uintptr_t)h,
					 .other = offset,
					 .caller = caller };

	look(&event);
	status = real(p, n, offset, h, flags);
	if (!status)
		mt_device_note(MT_DEVICE_MAP, &event);
	mt_call_end();
	return status;
}

static hipError_t body_hipMemUnmap(struct mt_slot *slot, const void *caller, void *p, size_t n)
{
	BODY(hipMemUnmap, (void *, size_t), (p, n));
	struct mt_device_event event = {
		.hook = MT_HOOK_hipMemUnmap, .class = MT_CLASS_PHYSICAL, .addr = (uintptr_t)p, .bytes = n
	};

	look(&event);
	mt_device_note(MT_DEVICE_UNMAP, &event);
	status = real(p, n);
	if (status)
		note_free_failed(&event, (int)status);
	mt_call_end();
	return status;
}

/* ---- pools: what they hold is seen in the device's free memory only ---- */

#define POOL(name, params, args) \
	static hipError_t body_##name WITH_SLOT params \
	{ \
		BODY(name, params, args); \
		struct mt_device_event event = { .hook = MT_HOOK_##name, .caller = caller }; \
		look(&event); \
		status = real args; \
		int kept = errno; \
		if (!status && mt_hip_memory(&event.addr, &event.bytes)) \
			mt_device_note(MT_DEVICE_INFO, &event); \
		errno = kept; \
		mt_call_end(); \
		return status; \
	}
POOL(hipMemPoolCreate, (hipMemPool_t * pool, const hipMemPoolProps *props), (pool, props))
POOL(hipMemPoolDestroy, (hipMemPool_t pool), (pool))
POOL(hipMemPoolTrimTo, (hipMemPool_t pool, size_t keep), (pool, keep))
POOL(hipDeviceGraphMemTrim, (int device), (device))

/* ---- everything at once ---- */

static hipError_t body_hipDeviceReset(struct mt_slot *slot, const void *caller)
{
	BODY(hipDeviceReset, (void), ());
	struct mt_device_event event = { .hook = MT_HOOK_hipDeviceReset, .caller = caller };

	look(&event);
	status = real();
	if (!status && event.device)
		mt_device_note(MT_DEVICE_RESET, &event);
	mt_call_end();
	return status;
}

/* ---- functions by name: a name means one function, whatever version is asked for. The real call comes first, and what
 * it doesn't find stays not found ---- */

#define ENTRY_POINT(name_, params, args) \
	static hipError_t body_##name_ WITH_SLOT params \
	{ \
		REAL(name_, params); \
		hipError_t status = real ? real args : (hipError_t)NO_DEVICE; \
		const struct mt_wrapped *row; \
		if (!status && name && p && *p && (row = mt_wrap_row(name)) != NULL) \
			*p = mt_wrap(row, *p); \
		return status; \
	}
ENTRY_POINT(hipGetProcAddress,
	    (const char *name, void **p, int version, uint64_t flags, hipDriverProcAddressQueryResult *found),
	    (name, p, version, flags, found))
ENTRY_POINT(hipGetDriverEntryPoint,
	    (const char *name, void **p, unsigned long long flags, hipDriverEntryPointQueryResult *found),
	    (name, p, flags, found))
ENTRY_POINT(hipGetDriverEntryPoint_spt,
	    (const char *name, void **p, unsigned long long flags, hipDriverEntryPointQueryResult *found),
	    (name, p, flags, found))

/* ---- entries, exports and the table ---- */

#define HAND(since, name, params, args) MT_ENTRIES(hipError_t, name, params, args) MT_LINK(0, name, since)
#define BARE(since, name)               MT_ENTRIES0(hipError_t, name) MT_LINK(0, name, since)
#include "shim/hooks/hooks_hip.def"

static const struct mt_wrapped rows[ROWS] = {
#define HAND(since, name, params, args) { #name, &mt_lib_HIP, slots_##name, entries_##name },
#include "shim/hooks/hooks_hip.def"
};

static const struct mt_wrap_table table = { rows, ROWS };
MT_SET_ADD(mt_wrap_table, table);
