/* What the hooks of the malloc family and of operator new have in common. */
#ifndef MT_HEAP_H
#define MT_HEAP_H

#include "shim/dlsym.h"
#include "shim/hooks.h"
#include "shim/record.h"

/* A pointer that is not there yet: look everything up, or be served by the pool meanwhile. */
#define MT_READY(name) (__builtin_expect(mt_real.name != NULL, 1) || (mt_boot() && mt_real.name != NULL))

/*
 * Some allocators call public functions inside their own: malloc in calloc or operator new, memalign in aligned_alloc.
 * Such a call, made by the allocator while the thread is in it, is a part of the outer one. As a jump at the function's
 * end it comes from us, who called the outer one. (A signal handler's call, or a new_handler's, comes from elsewhere.)
 * glibc never does it and pays one test.
 *
 * This is the frame of the hook that the thread is in. What an exception left behind is of no meaning further out.
 */
extern __thread const char *mt_heap_inside __attribute__((visibility("hidden")));

int mt_heap_nests(const void *caller, const char *frame);

static inline __attribute__((always_inline)) int mt_heap_is_nested(const void *caller)
{
	return __builtin_expect(mt_allocator_count != 0, 0) && mt_heap_nests(caller, __builtin_frame_address(0));
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

static inline void mt_heap_note(unsigned hook, const void *p, size_t bytes, const void *caller,
				const struct mt_frame *frame)
{
	if (__builtin_expect(p != NULL, 1))
		mt_record_alloc(hook, p, bytes, caller, frame);
	else
		mt_record_fail(hook, MT_ALLOC, bytes, caller);
}

/* Everything of a free but the real call, which differs; 0: there is none. */
static inline __attribute__((always_inline)) int mt_heap_begin_free(unsigned hook, const void *p, const void *caller)
{
	if (!p || mt_boot_owns(p) || !MT_READY(free))
		return 0;
	if (!mt_heap_is_nested(caller))
		mt_record_free(hook, p);
	return 1;
}

#endif
