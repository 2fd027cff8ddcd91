/*
 * Ticks: the time stamp of every event, comparable across the threads and processes of a session.
 *
 * The kernel's own choice of clock source tells whether the TSC is synchronised and stable; where it isn't,
 * CLOCK_MONOTONIC (vDSO) is used. A free is stamped before the real call and an allocation after it, the
 * latter with an ordered read: a plain one may be executed before the allocator's own loads, and was seen to
 * stamp a block's allocation before the free that made room for it.
 */
#ifndef MT_BASE_CLOCK_H
#define MT_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "shim/arch/arch.h"
#include "shim/base/libc.h"

extern uint32_t mt_clock; /* enum mt_clock */

/* Set once more than one thread has recorded. Until then events are written in the order in which they happen, and
 * stamps need no ordering. A thread sets it before its first event. So a thread that gets a block which that one freed
 * sees it set: on x86-64 its load is not executed before the earlier load that found the block free. */
extern uint32_t mt_clock_shared;

void mt_clock_choose(void); /* sets mt_clock */

/* Whether the name of the kernel's current clock source begins with `name`. */
bool mt_clock_kernel_uses(const char *name);

static inline uint64_t mt_clock_ns(clockid_t id)
{
	struct timespec now;

	mt_libc()->clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The tick now. */
static inline uint64_t mt_ticks(void)
{
	return __builtin_expect(mt_clock == MT_ARCH_CLOCK, 1) ? mt_arch_ticks() : mt_clock_ns(CLOCK_MONOTONIC);
}

/* The tick now, read only after everything that precedes it in the program was executed. (clock_gettime ensures that
 * itself.) */
static inline uint64_t mt_ticks_ordered(void)
{
	if (__builtin_expect(mt_clock == MT_ARCH_CLOCK, 1))
		return mt_arch_ticks_ordered(__atomic_load_n(&mt_clock_shared, __ATOMIC_RELAXED));
	return mt_clock_ns(CLOCK_MONOTONIC);
}

#endif
