/* The malloc family. C++ new and delete arrive here through malloc and free. */
#include <errno.h>
#include <string.h>

#include "shim/hooks.h"
#include "shim/record.h"

static inline size_t mt_product(size_t k, size_t n)
{
	size_t bytes;

	return __builtin_mul_overflow(k, n, &bytes) ? SIZE_MAX : bytes;
}

/* A pointer that is not there yet: look everything up, or be served by the pool meanwhile. */
#define READY(name) (__builtin_expect(mt_real.name != NULL, 1) || (mt_boot() && mt_real.name != NULL))

static inline void note(unsigned hook, const void *p, size_t bytes, const void *caller, const struct mt_frame *frame)
{
	if (__builtin_expect(p != NULL, 1))
		mt_record_alloc(hook, p, bytes, caller, frame);
	else
		mt_record_fail(hook, MT_ALLOC, bytes, caller);
}

/* What the pool needs to know of a call that comes before the real function is known. */
static void *boot_malloc(size_t n) { return mt_boot_alloc(16, n); }
static void *boot_calloc(size_t k, size_t n) { return mt_boot_alloc(16, mt_product(k, n)); }
static void *boot_memalign(size_t align, size_t n) { return mt_boot_alloc(align, n); }
static void *boot_aligned_alloc(size_t align, size_t n) { return mt_boot_alloc(align, n); }
static void *boot_valloc(size_t n) { return mt_boot_alloc(4096, n); }
static void *boot_pvalloc(size_t n) { return mt_boot_alloc(4096, n); }

/* Some allocators call the public malloc inside their own calloc or realloc. That call, made by the allocator
 * while the thread is in it, is a part of the outer one. (A signal handler's call comes from elsewhere.) glibc
 * never does it and pays one test of a constant. */
static __thread uint8_t inside;

static inline int is_nested(const void *caller)
{
	return __builtin_expect(mt_allocator_end != 0, 0) && inside &&
	       (uintptr_t)caller - mt_allocator_start < mt_allocator_end - mt_allocator_start;
}

/* Evaluates a call of the real allocator. */
#define REAL(call)                              \
	({                                      \
		uint8_t outer = inside;         \
		inside = 1;                     \
		__typeof__(call) ret_ = (call); \
		inside = outer;                 \
		ret_;                           \
	})

#define RET(name, params, args, bytes)                                     \
	MT_EXPORT void *name params                                        \
	{                                                                  \
		void *p;                                                   \
		if (!READY(name))                                          \
			return boot_##name args;                           \
		if (is_nested(MT_CALLER))                                  \
			return mt_real.name args;                          \
		p = REAL(mt_real.name args);                               \
		note(MT_HOOK_##name, p, bytes, MT_CALLER, MT_FRAME);       \
		return p;                                                  \
	}
#define HAND(type, name, params)
#include "shim/hooks_host.def"
#undef RET
#undef HAND

MT_EXPORT int posix_memalign(void **out, size_t align, size_t n)
{
	int ret;

	if (!READY(posix_memalign))
		return (*out = mt_boot_alloc(align, n)) ? 0 : ENOMEM;
	if (is_nested(MT_CALLER))
		return mt_real.posix_memalign(out, align, n);
	ret = REAL(mt_real.posix_memalign(out, align, n));
	note(MT_HOOK_posix_memalign, ret == 0 ? *out : NULL, n, MT_CALLER, MT_FRAME);
	return ret;
}

static void *move_from_pool(unsigned hook, const void *old, size_t n, const void *caller)
{
	size_t kept = mt_boot_size(old);
	void *p = READY(malloc) ? mt_real.malloc(n) : mt_boot_alloc(16, n);

	if (p)
		memcpy(p, old, kept < n ? kept : n);
	if (!mt_boot_owns(p))
		note(hook, p, n, caller, NULL);
	return p;
}

/* One free and one allocation. The free must be in the trace before the block can be somebody else's; if the
 * block was not released after all, it is undone. */
static void *reallocate(unsigned hook, void *old, size_t n, const void *caller, const struct mt_frame *frame)
{
	void *p;

	if (mt_boot_owns(old))
		return move_from_pool(hook, old, n, caller);
	if (!READY(realloc))
		return old ? NULL : mt_boot_alloc(16, n);
	if (is_nested(caller))
		return mt_real.realloc(old, n);
	if (old)
		mt_record_free(hook, old);
	p = REAL(mt_real.realloc(old, n));
	if (p) {
		mt_record_alloc(hook, p, n, caller, frame);
	} else if (n || !old) {
		if (old)
			mt_record_undo(hook, old);
		mt_record_fail(hook, MT_ALLOC, n, caller);
	}
	return p;
}

/* What MT_FRAME points to must stay: no tail call. */
#define KEEP_FRAME(p) __asm__ volatile("" : "+r"(p))

MT_EXPORT void *realloc(void *p, size_t n)
{
	void *q = reallocate(MT_HOOK_realloc, p, n, MT_CALLER, MT_FRAME);

	KEEP_FRAME(q);
	return q;
}

/* Not forwarded: libc's own calls realloc, which would be seen twice. */
MT_EXPORT void *reallocarray(void *p, size_t k, size_t n)
{
	size_t bytes;

	if (__builtin_mul_overflow(k, n, &bytes)) {
		mt_record_fail(MT_HOOK_reallocarray, MT_ALLOC, SIZE_MAX, MT_CALLER);
		errno = ENOMEM;
		return NULL;
	}
	p = reallocate(MT_HOOK_reallocarray, p, bytes, MT_CALLER, MT_FRAME);
	KEEP_FRAME(p);
	return p;
}

/* Everything but the real call, which differs. */
static int begin_free(unsigned hook, const void *p, const void *caller)
{
	if (!p || mt_boot_owns(p) || !READY(free))
		return 0;
	if (!is_nested(caller))
		mt_record_free(hook, p);
	return 1;
}

MT_EXPORT void free(void *p)
{
	if (begin_free(MT_HOOK_free, p, MT_CALLER))
		REAL((mt_real.free(p), 0));
}

MT_EXPORT void free_sized(void *p, size_t n)
{
	if (!begin_free(MT_HOOK_free_sized, p, MT_CALLER))
		return;
	if (mt_real.free_sized)
		REAL((mt_real.free_sized(p, n), 0));
	else
		REAL((mt_real.free(p), 0));
}

MT_EXPORT void free_aligned_sized(void *p, size_t align, size_t n)
{
	if (!begin_free(MT_HOOK_free_aligned_sized, p, MT_CALLER))
		return;
	if (mt_real.free_aligned_sized)
		REAL((mt_real.free_aligned_sized(p, align, n), 0));
	else
		REAL((mt_real.free(p), 0));
}
