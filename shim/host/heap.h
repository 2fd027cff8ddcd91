/* What the hooks of the malloc family and of operator new share. */
#ifndef MT_HOST_HEAP_H
#define MT_HOST_HEAP_H

#include "shim/hooks/dlsym.h"
#include "shim/hooks/hooks.h"
#include "shim/trace/record.h"
#include "shim/trace/sampled.h"

/* Whether the real function is known; looks all of them up first if it is not. Where that is false, a look-up is under
 * way in this thread, and allocations are served by the boot pool (hooks.h). */
#define MT_READY(name) (__builtin_expect(mt_real.name != NULL, 1) || (mt_boot() && mt_real.name != NULL))

/*
 * Some allocators call public functions from within: malloc in calloc or operator new, memalign in aligned_alloc. Such
 * a call is part of the outer one, and no event. It is recognized by its return address: that is in the allocator or,
 * if the allocator jumped there as its last act, in the hook of the outer call. (A call by a signal handler or a
 * new_handler has another one.) glibc never does this, and pays one test.
 *
 * mt_heap_inside is the frame of the hook that the thread is in, or NULL. An exception may leave an old one behind,
 * which has no effect on calls further out.
 */
extern __thread const char *mt_heap_inside __attribute__((visibility("hidden")));

int mt_heap_nests(const void *caller, const char *frame);

static inline __attribute__((always_inline)) int mt_heap_is_nested(const void *caller)
{
	return __builtin_expect(mt_allocator_count != 0, 0) && mt_heap_nests(caller, __builtin_frame_address(0));
}

/* Is the call none of ours, or not to be recorded? Then the hook ends with the call of the real function. */
static inline __attribute__((always_inline)) int mt_heap_passes(const void *caller)
{
	return mt_record_is_off() || mt_heap_is_nested(caller);
}

/* Evaluates a call of the real allocator. */
#define MT_REAL(call) \
	({ \
		const char *outer = mt_heap_inside; \
		mt_heap_inside = __builtin_frame_address(0); \
		__typeof__(call) ret_ = (call); \
		mt_heap_inside = outer; \
		ret_; \
	})

/* Is a free one that is counted and no more (sampled.h)? Who has a tally has called the real function before, so it is
 * known. NULL and what the boot pool gave the filter never lets pass. */
static inline __attribute__((always_inline)) int mt_sampled_frees(const void *p)
{
	return mt_sampled_passes_free(mt_tally_alone, p);
}

static inline void mt_heap_note(unsigned hook, const void *p, size_t bytes, const void *caller,
				const struct mt_frame *frame)
{
	if (__builtin_expect(p != NULL, 1)) {
		if (!mt_sampled_is_on())
			mt_record_alloc(hook, p, bytes, caller, frame);
		else if (!mt_sampled_passes(bytes))
			mt_record_sampled(hook, p, bytes, caller, frame);
	} else {
		mt_record_fail(hook, MT_ALLOC, bytes, caller);
	}
}

/*
 * The call of a framework's pool that this thread is in, which may ask for memory to give it out in pieces: that is a
 * segment of the pool and no block of the heap (device/bfc.c). An exception may leave an old frame behind, which has no
 * effect on calls further out.
 */
struct mt_heap_pool {
	const char *frame; /* NULL = none */
	unsigned hook;     /* of the segment */
	size_t least;      /* bytes that were asked of the pool */
	uintptr_t start;   /* of the segment that it got ... */
	size_t bytes;      /* ... 0 = none */
	uint32_t device;   /* a device's memory that it got; 0 = none */
};

extern __thread struct mt_heap_pool mt_heap_pool __attribute__((visibility("hidden")));

static inline int mt_heap_is_pool(const void *frame)
{
	return __builtin_expect(mt_heap_pool.frame != NULL, 0) && (const char *)frame < mt_heap_pool.frame;
}

/* Of an allocation with alignment. */
void mt_heap_note_aligned(unsigned hook, const void *p, size_t bytes, const void *caller, const struct mt_frame *frame);

/* Of a free: there is to be no real call. */
static inline __attribute__((always_inline)) int mt_heap_keeps(const void *p)
{
	return !p || mt_boot_owns(p) || !MT_READY(free);
}

/* The body of a hook of free, with the call of the real one. */
#define MT_FREE_BY(hook, p, caller, call) \
	do { \
		if (mt_heap_keeps(p)) \
			return; \
		if (mt_heap_passes(caller)) { \
			call; \
			return; \
		} \
		if (!mt_sampled_is_on()) \
			mt_record_free(hook, p); \
		else if (!mt_sampled_passes_free(mt_tally, p)) \
			mt_record_sampled_free(hook, p); \
		MT_REAL((call, 0)); \
	} while (0)

#endif
