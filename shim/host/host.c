/* The malloc family. New and delete of libstdc++ and libc++ arrive here through malloc and free; see new.h. */
#include <errno.h>
#include <string.h>

#include "shim/hooks/hooks.h"
#include "shim/host/heap.h"
#include "shim/trace/record.h"

static inline size_t mt_product(size_t k, size_t n)
{
	size_t bytes;

	return __builtin_mul_overflow(k, n, &bytes) ? SIZE_MAX : bytes;
}

__thread const char *mt_heap_inside;

int mt_heap_nests(const void *caller, const char *frame)
{
	return frame < mt_heap_inside && (mt_allocator_has(caller) || mt_is_own(caller));
}

__thread struct mt_heap_pool mt_heap_pool;

/* The pool tries with less before it gives up, and says so itself. */
void mt_heap_note_aligned(unsigned hook, const void *p, size_t bytes, const void *caller, const struct mt_frame *frame)
{
	const struct mt_ext_device segment = { .class = MT_CLASS_SEGMENT };

	if (!mt_heap_is_pool(__builtin_frame_address(0)) || bytes < mt_heap_pool.least) {
		mt_heap_note(hook, p, bytes, caller, frame);
	} else if (p) {
		mt_record_device(MT_DEVICE_ALLOC, mt_heap_pool.hook, (uintptr_t)p, bytes, &segment, caller);
		mt_sampled_put((uintptr_t)p); /* its free is to have an event */
		mt_heap_pool.start = (uintptr_t)p;
		mt_heap_pool.bytes = bytes;
	} else {
		mt_record_fail(hook, MT_ALLOC | MT_TRIAL, bytes, caller);
	}
}

/* What the pool needs to know of a call that comes before the real function is known. */
static void *boot_malloc(size_t n)
{
	return mt_boot_alloc(16, n);
}
static void *boot_calloc(size_t k, size_t n)
{
	return mt_boot_alloc(16, mt_product(k, n));
}
static void *boot_memalign(size_t align, size_t n)
{
	return mt_boot_alloc(align, n);
}
static void *boot_aligned_alloc(size_t align, size_t n)
{
	return mt_boot_alloc(align, n);
}
static void *boot_valloc(size_t n)
{
	return mt_boot_alloc(4096, n);
}
static void *boot_pvalloc(size_t n)
{
	return mt_boot_alloc(4096, n);
}

/* What MT_FRAME points to must stay: no tail call. */
#define KEEP_FRAME(p) __asm__ volatile("" : "+r"(p))
#define LIST(...)     __VA_ARGS__

/* Where only picked blocks leave events most calls end in the hook itself, which needs few registers. All others go on
 * with a jump, so that the frame of what they jump to is that of the hook. */
#define RET(name, params, args, bytes) \
	static __attribute__((noinline)) void *look_at_##name(LIST params, const void *caller) \
	{ \
		void *p; \
		if (!MT_READY(name)) \
			return boot_##name args; \
		if (mt_heap_passes(caller)) \
			return mt_real.name args; \
		p = MT_REAL(mt_real.name args); \
		mt_heap_note(MT_HOOK_##name, p, bytes, caller, MT_FRAME); \
		return p; \
	} \
	MT_EXPORT void *name params \
	{ \
		struct mt_tally *tally = mt_tally_alone; \
		void *p; \
		if (!mt_sampled_is_small(tally, bytes)) \
			return look_at_##name(LIST args, MT_CALLER); \
		p = mt_real.name args; \
		if (__builtin_expect(p != NULL, 1)) \
			mt_sampled_count(tally, bytes); \
		else \
			mt_record_fail(MT_HOOK_##name, MT_ALLOC, bytes, MT_CALLER); \
		return p; \
	}
#define HAND(type, name, params)
#include "shim/hooks/hooks_host.def"
#undef RET
#undef HAND

MT_EXPORT int posix_memalign(void **out, size_t align, size_t n)
{
	int ret;

	if (!MT_READY(posix_memalign))
		return (*out = mt_boot_alloc(align, n)) ? 0 : ENOMEM;
	if (mt_heap_passes(MT_CALLER))
		return mt_real.posix_memalign(out, align, n);
	ret = MT_REAL(mt_real.posix_memalign(out, align, n));
	mt_heap_note_aligned(MT_HOOK_posix_memalign, ret == 0 ? *out : NULL, n, MT_CALLER, MT_FRAME);
	return ret;
}

static void *move_from_pool(unsigned hook, const void *old, size_t n, const void *caller)
{
	size_t kept = mt_boot_size(old);
	void *p = MT_READY(malloc) ? mt_real.malloc(n) : mt_boot_alloc(16, n);

	if (p)
		memcpy(p, old, kept < n ? kept : n);
	if (!mt_boot_owns(p))
		mt_heap_note(hook, p, n, caller, NULL);
	return p;
}

/* Of a realloc: the hook is to end with a jump to the real one. */
static inline __attribute__((always_inline)) int passes_on(const void *old, const void *caller)
{
	return !mt_boot_owns(old) && MT_READY(realloc) && mt_heap_passes(caller);
}

/* One free and one allocation. The free must be in the trace before the block can be somebody else's; if the
 * block was not released after all, it is undone. */
static void *reallocate(unsigned hook, void *old, size_t n, const void *caller, const struct mt_frame *frame)
{
	struct mt_record_taken taken = { 0 };
	int young;
	void *p;

	if (mt_boot_owns(old))
		return move_from_pool(hook, old, n, caller);
	if (!MT_READY(realloc))
		return old ? NULL : mt_boot_alloc(16, n);
	young = old && !mt_sampled_passes_free(mt_tally, old) && mt_record_take(hook, old, &taken);
	p = MT_REAL(mt_real.realloc(old, n));
	if (young && (p || !n))
		mt_record_freed(&taken);
	if (p) {
		mt_heap_note(hook, p, n, caller, frame);
	} else if (n || !old) {
		if (old)
			mt_record_kept(hook, old, &taken);
		mt_record_fail(hook, MT_ALLOC, n, caller);
	}
	return p;
}

MT_EXPORT void *realloc(void *p, size_t n)
{
	void *q;

	if (passes_on(p, MT_CALLER))
		return mt_real.realloc(p, n);
	q = reallocate(MT_HOOK_realloc, p, n, MT_CALLER, MT_FRAME);
	KEEP_FRAME(q);
	return q;
}

/* What is recorded is not forwarded: libc's own calls realloc, which would be seen twice. */
MT_EXPORT void *reallocarray(void *p, size_t k, size_t n)
{
	size_t bytes;

	if (passes_on(p, MT_CALLER) && mt_real.reallocarray)
		return mt_real.reallocarray(p, k, n);
	if (__builtin_mul_overflow(k, n, &bytes)) {
		mt_record_fail(MT_HOOK_reallocarray, MT_ALLOC, SIZE_MAX, MT_CALLER);
		errno = ENOMEM;
		return NULL;
	}
	if (MT_READY(realloc) && mt_first.realloc)
		return mt_first.realloc(p, bytes);
	p = reallocate(MT_HOOK_reallocarray, p, bytes, MT_CALLER, MT_FRAME);
	KEEP_FRAME(p);
	return p;
}

static __attribute__((noinline)) void look_at_free(void *p, const void *caller)
{
	MT_FREE_BY(MT_HOOK_free, p, caller, mt_real.free(p));
}

MT_EXPORT void free(void *p)
{
	if (mt_sampled_frees(p))
		mt_real.free(p);
	else
		look_at_free(p, MT_CALLER);
}

MT_EXPORT void free_sized(void *p, size_t n)
{
	if (mt_first.free && !mt_real.free_sized) {
		mt_first.free(p);
		return;
	}
	MT_FREE_BY(MT_HOOK_free_sized, p, MT_CALLER, mt_real.free_sized ? mt_real.free_sized(p, n) : mt_real.free(p));
}

MT_EXPORT void free_aligned_sized(void *p, size_t align, size_t n)
{
	if (mt_first.free && !mt_real.free_aligned_sized) {
		mt_first.free(p);
		return;
	}
	MT_FREE_BY(MT_HOOK_free_aligned_sized, p, MT_CALLER,
		   mt_real.free_aligned_sized ? mt_real.free_aligned_sized(p, align, n) : mt_real.free(p));
}
